package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/dendrascience/dendra-jobs/verbs"
)

// Caller is who makes a call.
type Caller struct {
	// Name is that of the token or the certificate, or the subject that an issuer names.
	Name string
	Role verbs.Role
	// KnownBy is how the caller is known: token, oidc, certificate, or local, which is this
	// process itself, or everybody on this host while no authentication is set up.
	KnownBy string
	// Address is the remote address, empty for calls of this process itself.
	Address string
}

// Values of Caller.KnownBy.
const (
	ByToken       = "token" //nolint:gosec // A word, not a token.
	ByOIDC        = "oidc"
	ByCertificate = "certificate"
	ByLocal       = "local"
)

type callerKey struct{}

// WithCaller says in a context who makes the calls.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf is who makes a call; false if nobody was authenticated.
func CallerOf(ctx context.Context) (Caller, bool) {
	caller, ok := ctx.Value(callerKey{}).(Caller)
	return caller, ok
}

// RoleOf is the role of whoever makes a request.
func RoleOf(r *http.Request) verbs.Role {
	caller, _ := CallerOf(r.Context())
	return caller.Role
}

// CheckName refuses names that logs and histories could not show on one line.
func CheckName(name string) error {
	if name == "" || len(name) > 200 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%.40q is no name: it has from 1 to 200 bytes, and no control characters", name)
	}
	return nil
}
