// Package guard keeps web pages of other sites from the servers of the stack, which let in
// everybody on this host: a browser on it is one.
package guard

import (
	"net/http"

	"github.com/dendrascience/dendra-jobs/internal/localnet"
)

// Reads says whether pages of other sites may send requests that only read.
type Reads bool

const (
	// RefuseReads is for a server that answers to other origins, or changes things by GET.
	RefuseReads Reads = false
	// AllowReads is for a server with pages, which people come to by links.
	AllowReads Reads = true
)

// Handler refuses requests that name another host than a loopback one, and those that a
// browser sends for a page of another origin, with status 403.
func Handler(next http.Handler, reads Reads) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		checked := r
		if reads == RefuseReads {
			checked = r.Clone(r.Context())
			checked.Method = http.MethodPost
		}
		if _, loopback := localnet.Named(r); !loopback || protection.Check(checked) != nil {
			http.Error(w, "this server is for programs on this host alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
