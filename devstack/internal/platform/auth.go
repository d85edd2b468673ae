package platform

import (
	"context"
	"net/http"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
)

// Token is the bearer token of the service account of the jobs. Token:NAME is that of
// somebody else, by name.
const Token = "platform-dev-token"

// Actor is the service account of the jobs.
const Actor = "service:jobs"

type actorKey struct{}

// actorOf is who makes the call.
func actorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

// authenticated refuses requests without a token.
func authenticated(next http.Handler) http.Handler {
	errors := connecthttp.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, ok := authenticate(r.Header.Get("Authorization"))
		switch {
		case ok:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
		case errors.IsSupported(r):
			_ = errors.Write(w, r, connect.NewError(connect.CodeUnauthenticated, "the bearer token is missing or not known"))
		default:
			http.Error(w, "the bearer token is missing or not known", http.StatusUnauthorized)
		}
	})
}

func authenticate(header string) (actor string, ok bool) {
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return "", false
	}
	token, name, named := strings.Cut(token, ":")
	if token != Token || named && name == "" {
		return "", false
	}
	if named {
		return name, true
	}
	return Actor, true
}
