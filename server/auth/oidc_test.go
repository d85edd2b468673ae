package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
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

	mu    sync.Mutex
	ids   []string // of the key, as it is published
	asked int      // for the keys
	away  bool
}

// publish says under which ids the key is published, and whether the issuer is away.
func (i *issuer) publish(away bool, ids ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.away, i.ids = away, ids
}

// requests is how often the keys were asked for.
func (i *issuer) requests() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{ids: []string{"one"}}
	var err error
	i.key, err = rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	mux := http.NewServeMux()
	answer := func(path string, value func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.away {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
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
		i.asked++
		keys := []any{map[string]string{"kty": "a kind of key to come"}}
		for _, id := range i.ids {
			keys = append(keys, jose.JSONWebKey{Key: i.key.Public(), KeyID: id, Algorithm: "RS256", Use: "sig"})
		}
		return map[string]any{"keys": keys}
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// sign makes a token with the claims, on top of usual ones.
func (i *issuer) sign(t *testing.T, key any, algorithm jose.SignatureAlgorithm, claims map[string]any) string {
	t.Helper()
	return i.signAs(t, "one", key, algorithm, claims)
}

// signAs is sign with the id of a key.
func (i *issuer) signAs(t *testing.T, id string, key any, algorithm jose.SignatureAlgorithm, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id).WithType("JWT"))
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
		require.Equal(t, auth.Caller{Name: "alice@example.org", Role: c.role, KnownBy: auth.ByOIDC, Address: "192.0.2.1"}, caller)
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
	i.publish(true)
	a, clock := withClock(i)
	token := i.sign(t, i.key, jose.RS256, map[string]any{"role": "viewer"})
	_, failed := a.Authenticate(bearer(token))
	require.Equal(t, connect.CodeUnavailable, failed.Code())
	i.publish(false, "one")
	_, failed = a.Authenticate(bearer(token))
	require.Equal(t, connect.CodeUnavailable, failed.Code(), "it was asked a moment ago")
	clock.pass(time.Minute)
	caller, failed := a.Authenticate(bearer(token))
	require.Nil(t, failed)
	require.Equal(t, verbs.RoleViewer, caller.Role)
}

// clock is a time that passes when a test says so.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// withClock takes tokens of an issuer.
func withClock(i *issuer) (*auth.Authenticator, *clock) {
	c := &clock{now: time.Now()}
	a := auth.New(auth.Config{OIDC: &auth.OIDC{Issuer: i.URL, Audience: "dendra-jobs"}, Logger: slog.New(slog.DiscardHandler)})
	a.SetNow(c.read)
	return a, c
}

// TestKeysOfTheIssuer change: a retired one ends, a new one is found, and unknown ones are not
// asked for again and again.
func TestKeysOfTheIssuer(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	a, clock := withClock(i)
	code := func(id string) connect.Code {
		_, failed := a.Authenticate(bearer(i.signAs(t, id, i.key, jose.RS256, map[string]any{"role": "viewer"})))
		if failed == nil {
			return 0
		}
		return failed.Code()
	}
	require.Zero(t, code("one"))
	for range 50 {
		require.Equal(t, connect.CodeUnauthenticated, code("unknown"))
	}
	require.Equal(t, 1, i.requests())

	i.publish(false, "two")
	clock.pass(time.Minute)
	require.Zero(t, code("two"), "a new key")
	require.Equal(t, connect.CodeUnauthenticated, code("one"), "a retired one")
	i.publish(false, "three")
	require.Zero(t, code("two"))
	clock.pass(5 * time.Minute)
	require.Equal(t, connect.CodeUnauthenticated, code("two"), "a retired one, although no new one was seen")
	require.Equal(t, 3, i.requests())

	i.publish(true)
	clock.pass(30 * time.Minute)
	require.Zero(t, code("three"), "the issuer is away for a while")
	require.Equal(t, connect.CodeUnavailable, code("four"), "nobody knows")
	clock.pass(time.Hour)
	require.Equal(t, connect.CodeUnavailable, code("three"), "for too long")
}

func TestInsecureIssuers(t *testing.T) {
	t.Parallel()
	for issuer, secure := range map[string]bool{
		"https://login.example.org/realms/a": true, "http://127.0.0.1:8080": true, "http://localhost/a": true, "http://[::1]:1": true,
		"http://login.example.org": false, "http://192.168.0.1": false, "http://localhost.example.org": false, "login.example.org": false, "ftp://localhost": false,
	} {
		err := auth.OIDC{Issuer: issuer, Audience: "a"}.Validate()
		if secure {
			require.NoError(t, err, issuer)
		} else {
			require.ErrorContains(t, err, "is not of the form https://HOST", issuer)
		}
	}
	require.ErrorContains(t, auth.OIDC{Issuer: "https://login.example.org"}.Validate(), "an audience")
}
