package localnet

import (
	"net"
	"net/http"
	"strings"
)

// Named reports whether a request names a loopback address or localhost as its host, and gives
// the host. A page of another site can have its own name lead to a loopback address.
func Named(r *http.Request) (host string, loopback bool) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	return host, Loopback(host)
}
