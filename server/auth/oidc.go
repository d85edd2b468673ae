package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/dendrascience/dendra-jobs/verbs"
)

// OIDC says whose JSON Web Tokens are taken.
type OIDC struct {
	// Issuer is its URL. Its keys are read from there.
	Issuer string
	// Audience is what a token must be made for.
	Audience string
	// RoleClaim is the claim with the role: viewer, operator or admin, or a list with one
	// of these among others. Of several the highest counts. Defaults to role.
	RoleClaim string
}

// issuerTimeout bounds calls of the issuer, and how long a call waits for them.
const issuerTimeout = 10 * time.Second

// issuer verifies tokens of an OIDC issuer. The issuer is asked when the first token comes,
// so that it need not be up when this process begins.
type issuer struct {
	OIDC
	client *http.Client

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
}

func newIssuer(config OIDC) *issuer {
	if config.RoleClaim == "" {
		config.RoleClaim = "role"
	}
	return &issuer{OIDC: config, client: &http.Client{Timeout: issuerTimeout}}
}

// errIssuerDown says that a token can be neither taken nor refused.
var errIssuerDown = errors.New("the OIDC issuer does not answer: try again later")

// ready finds the keys of the issuer.
func (i *issuer) ready() (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier == nil {
		// The context lives on in the set of keys, and so is not that of a request.
		provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), i.client), i.Issuer)
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", errIssuerDown, err)
		}
		i.verifier = provider.Verifier(&oidc.Config{ClientID: i.Audience})
	}
	return i.verifier, nil
}

// token finds the caller of a JSON Web Token.
func (i *issuer) token(ctx context.Context, text string) (Caller, error) {
	verifier, err := i.ready()
	if err != nil {
		return Caller{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	token, err := verifier.Verify(ctx, text)
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
	caller := Caller{Name: token.Subject, Role: highest(claims[i.RoleClaim])}
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
