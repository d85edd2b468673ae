package auth

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Config says how callers are known. Without any of it everybody is an admin.
type Config struct {
	// File has tokens and the names of client certificates. Nil means none.
	File *File
	// OIDC takes tokens of an issuer. Nil means none.
	OIDC *OIDC
	// Logger gets what callers are not told. Defaults to slog.Default().
	Logger *slog.Logger
}

// Authenticator finds out who sends a request.
type Authenticator struct {
	file     *File
	issuer   *issuer
	logger   *slog.Logger
	sessions *sessions
}

// New makes an authenticator.
func New(config Config) *Authenticator {
	a := &Authenticator{file: config.File, logger: config.Logger, sessions: newSessions()}
	if a.logger == nil {
		a.logger = slog.Default()
	}
	if config.OIDC != nil {
		a.issuer = newIssuer(*config.OIDC)
	}
	return a
}

// Open reports whether everybody is let in, because nothing says how to know callers.
func (a *Authenticator) Open() bool { return a.file == nil && a.issuer == nil }

// Usable reports whether the file of credentials, if there is one, can be read as it is now.
func (a *Authenticator) Usable() bool { return a.file == nil || a.file.usable() }

// Authenticate finds out who sends a request: by the bearer token, else by the session of its cookie, else
// by the client certificate. What is given and not valid is refused, whatever else is given.
func (a *Authenticator) Authenticate(r *http.Request) (Caller, *connect.Error) {
	caller, err := a.find(r)
	switch {
	case errors.Is(err, errIssuerDown):
		a.logger.ErrorContext(r.Context(), "a token cannot be checked", "error", err)
		return Caller{}, api.NewError(connect.CodeUnavailable, jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE, "%s", errIssuerDown)
	case err != nil:
		return Caller{}, Unauthenticated("%.500s", err)
	}
	caller.Address = Address(r)
	return caller, nil
}

func (a *Authenticator) find(r *http.Request) (Caller, error) {
	if a.Open() {
		return Caller{Name: "local", Role: verbs.RoleAdmin, KnownBy: ByLocal}, nil
	}
	if given := r.Header.Values("Authorization"); len(given) > 0 {
		scheme, token, _ := strings.Cut(given[0], " ")
		if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return Caller{}, errors.New("the header Authorization is not of the form: Bearer TOKEN")
		}
		return a.token(r, strings.TrimSpace(token))
	}
	if cookie, err := r.Cookie(Cookie); err == nil {
		return a.session(r, cookie.Value)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && a.file != nil {
		return a.file.certificate(r.TLS.VerifiedChains[0][0].Subject.CommonName)
	}
	return Caller{}, errors.New("the request has no credentials: send the header Authorization: Bearer TOKEN")
}

// token finds the caller of a token.
func (a *Authenticator) token(r *http.Request, token string) (Caller, error) {
	switch {
	case a.file != nil && (a.issuer == nil || strings.HasPrefix(token, tokenPrefix)):
		return a.file.token(token)
	case a.issuer != nil:
		return a.issuer.token(r.Context(), token)
	}
	return Caller{}, errors.New("no tokens are taken here")
}

// Network is the address of HOST:PORT or HOST, and of IPv6 the network of 64 bits: whoever has
// one of its addresses mostly has all.
func Network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Unmap().Is4() {
		return host
	}
	return netip.PrefixFrom(ip.WithZone(""), 64).Masked().String()
}

// Address is the remote address of a request, without the port. What proxies say of it is
// not believed.
func Address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
