package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/dendrascience/dendra-jobs/internal/localnet"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// OIDC says whose JSON Web Tokens are taken.
type OIDC struct {
	// Issuer is its URL: https, or http at a loopback address. Its keys are read from there.
	Issuer string
	// Audience is what a token must be made for.
	Audience string
	// RoleClaim is the claim with the role: viewer, operator or admin, or a list with one
	// of these among others. Of several the highest counts. Defaults to role.
	RoleClaim string
}

// Validate lists what is wrong.
func (o OIDC) Validate() error {
	if o.Issuer == "" || o.Audience == "" {
		return errors.New("an OIDC issuer needs its URL and an audience")
	}
	return checkSecure("the OIDC issuer", o.Issuer)
}

// checkSecure refuses URLs whose answers others could change on the way.
func checkSecure(what, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !localnet.Loopback(u.Hostname())) {
		return fmt.Errorf("%s %q is not of the form https://HOST: http is for loopback addresses alone", what, address)
	}
	return nil
}

const (
	// issuerTimeout bounds calls of the issuer, and how long a call waits for them.
	issuerTimeout = 10 * time.Second
	// discoverAgain is how often an issuer is asked at most that has not answered yet.
	discoverAgain = 5 * time.Second
)

// issuer verifies tokens of an OIDC issuer. The issuer is asked when the first token comes,
// so that it need not be up when this process begins.
type issuer struct {
	OIDC
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	asked    time.Time
	failed   error // of the latest request
	keys     *keySet
	verifier *oidc.IDTokenVerifier
}

func newIssuer(config OIDC) *issuer {
	if config.RoleClaim == "" {
		config.RoleClaim = "role"
	}
	return &issuer{OIDC: config, now: time.Now, client: &http.Client{
		Timeout: issuerTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// errIssuerDown says that a token can be neither taken nor refused.
var errIssuerDown = errors.New("the OIDC issuer does not answer: try again later")

// ready finds out where the keys of the issuer are.
func (i *issuer) ready() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return nil
	}
	if now := i.now(); now.Sub(i.asked) >= discoverAgain {
		i.asked = now
		i.failed = i.discover()
	}
	if i.failed != nil {
		return fmt.Errorf("%w (%w)", errIssuerDown, i.failed)
	}
	return nil
}

func (i *issuer) discover() error {
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), i.Issuer)
	if err != nil {
		return err
	}
	var described struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&described); err != nil {
		return err
	}
	if err := checkSecure("the jwks_uri of the OIDC issuer", described.Keys); err != nil {
		return err
	}
	i.keys = &keySet{url: described.Keys, client: i.client, now: i.now}
	i.verifier = oidc.NewVerifier(i.Issuer, i.keys, &oidc.Config{ClientID: i.Audience, SupportedSigningAlgs: supported(described.Algorithms)})
	return nil
}

// supported are those of the algorithms that issuer and library have. None means RS256.
func supported(announced []string) []string {
	return slices.DeleteFunc(announced, func(name string) bool { return !slices.Contains(signatures, jose.SignatureAlgorithm(name)) })
}

// token finds the caller of a JSON Web Token.
func (i *issuer) token(ctx context.Context, text string) (Caller, error) {
	if err := i.ready(); err != nil {
		return Caller{}, err
	}
	if err := i.keys.prepare(text); err != nil {
		return Caller{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	token, err := i.verifier.Verify(ctx, text)
	if err != nil {
		if expired, ok := errors.AsType[*oidc.TokenExpiredError](err); ok {
			return Caller{}, fmt.Errorf("the token expired at %s", expired.Expiry.UTC().Format(time.RFC3339))
		}
		return Caller{}, fmt.Errorf("the token is not valid: %w", err)
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return Caller{}, fmt.Errorf("the claims of the token cannot be read: %w", err)
	}
	caller := Caller{Name: token.Subject, Role: highest(claims[i.RoleClaim]), KnownBy: ByOIDC}
	if err := CheckName(caller.Name); err != nil {
		return Caller{}, fmt.Errorf("the subject of the token: %w", err)
	}
	return caller, nil
}

// highest is the highest role in a claim.
func highest(claim any) verbs.Role {
	values, ok := claim.([]any)
	if !ok {
		values = []any{claim}
	}
	best := verbs.RoleNone
	for _, value := range values {
		text, _ := value.(string)
		if role, err := verbs.ParseRole(text); err == nil {
			best = max(best, role)
		}
	}
	return best
}
