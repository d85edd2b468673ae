package platform

import (
	"context"
	"net/http"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
)

// Token is the usual bearer token of the service account of the jobs. Token:NAME is that
// of somebody else, by name.
const Token = "platform-dev-token"

// Actor is the service account of the jobs.
const Actor = "service:jobs"

type actorKey struct{}

// actorOf is who makes the call.
func actorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

// authenticated refuses requests without the token.
func authenticated(token string, next http.Handler) http.Handler {
	errors := connecthttp.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, ok := authenticate(token, r.Header.Get("Authorization"))
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

func authenticate(token, header string) (actor string, ok bool) {
	given, ok := strings.CutPrefix(header, "Bearer "+token)
	if !ok {
		return "", false
	}
	if given == "" {
		return Actor, true
	}
	name, named := strings.CutPrefix(given, ":")
	return name, named && name != ""
}
