package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// issuer is an OIDC issuer with one key.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	var err error
	i.key, err = rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	mux := http.NewServeMux()
	answer := func(path string, value func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(value())
		})
	}
	answer("/.well-known/openid-configuration", func() any {
		return map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
	})
	answer("/keys", func() any {
		return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "one", Algorithm: "RS256", Use: "sig"}}}
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// sign makes a token with the claims, on top of usual ones.
func (i *issuer) sign(t *testing.T, key any, algorithm jose.SignatureAlgorithm, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "one").WithType("JWT"))
	require.NoError(t, err)
	all := map[string]any{"iss": i.URL, "aud": "dendra-jobs", "sub": "alice@example.org", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for name, value := range claims {
		all[name] = value
	}
	token, err := jwt.Signed(signer).Claims(all).Serialize()
	require.NoError(t, err)
	return token
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	a := auth.New(auth.Config{OIDC: &auth.OIDC{Issuer: i.URL, Audience: "dendra-jobs", RoleClaim: "roles"}, Logger: slog.New(slog.DiscardHandler)})
	for _, c := range []struct {
		claim any
		role  verbs.Role
	}{
		{"operator", verbs.RoleOperator}, {[]string{"staff", "viewer", "admin"}, verbs.RoleAdmin}, {nil, verbs.RoleNone}, {"root", verbs.RoleNone}, {7, verbs.RoleNone},
	} {
		caller, failed := a.Authenticate(bearer(i.sign(t, i.key, jose.RS256, map[string]any{"roles": c.claim})))
		require.Nil(t, failed)
		require.Equal(t, auth.Caller{Name: "alice@example.org", Role: c.role, Address: "192.0.2.1"}, caller)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for want, token := range map[string]string{
		"the token expired at":       i.sign(t, i.key, jose.RS256, map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
		"expected audience":          i.sign(t, i.key, jose.RS256, map[string]any{"aud": "somebody-else"}),
		"issued by a different":      i.sign(t, i.key, jose.RS256, map[string]any{"iss": "https://elsewhere.example.org"}),
		"failed to verify signature": i.sign(t, other, jose.RS256, nil),
		"signature algorithm":        i.sign(t, []byte("0123456789abcdef0123456789abcdef"), jose.HS256, nil),
		"malformed jwt":              auth.NewToken(),
		"is no name":                 i.sign(t, i.key, jose.RS256, map[string]any{"sub": "a\nb"}),
	} {
		_, failed := a.Authenticate(bearer(token))
		require.Equal(t, connect.CodeUnauthenticated, failed.Code(), want)
		require.Contains(t, failed.Message(), want)
		require.NotContains(t, failed.Message(), token)
	}
}

// TestIssuerAway lets nobody in, and does so once the issuer answers.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	handler, away := i.Config.Handler, true
	i.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		handler.ServeHTTP(w, r)
	})
	a := auth.New(auth.Config{OIDC: &auth.OIDC{Issuer: i.URL, Audience: "dendra-jobs"}, Logger: slog.New(slog.DiscardHandler)})
	token := i.sign(t, i.key, jose.RS256, map[string]any{"role": "viewer"})
	_, failed := a.Authenticate(bearer(token))
	require.Equal(t, connect.CodeUnavailable, failed.Code())
	away = false
	caller, failed := a.Authenticate(bearer(token))
	require.Nil(t, failed)
	require.Equal(t, verbs.RoleViewer, caller.Role)
}
