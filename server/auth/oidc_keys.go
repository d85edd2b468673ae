package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Times of the keys of an issuer.
const (
	// keysFresh is how long keys are used before the issuer is asked again: a key that it has
	// retired is taken that long.
	keysFresh = 5 * time.Minute
	// keysKept is how long keys are used while the issuer does not answer.
	keysKept = time.Hour
	// askAgain is how often the issuer is asked at most, whatever tokens come.
	askAgain = 30 * time.Second
	// maxKeys bounds the answer of the issuer in bytes.
	maxKeys = 1 << 20
)

// keySet are the keys of an issuer. It implements oidc.KeySet.
type keySet struct {
	url    string
	client *http.Client
	now    func() time.Time

	asking sync.Mutex // One request at a time. It guards asked.
	asked  time.Time

	mu     sync.Mutex
	keys   []jose.JSONWebKey
	read   time.Time // when keys was read
	failed error     // of the latest request
}

// signatures are the algorithms of the library. The verifier has narrowed them before.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

// keyOf is the id of the key that has signed a token, "" if it names none.
func keyOf(signed *jose.JSONWebSignature) string {
	if len(signed.Signatures) == 0 {
		return ""
	}
	return signed.Signatures[0].Header.KeyID
}

// prepare reads the keys again if they are old, or if the key of a token is not among them. The
// error says that the issuer does not answer.
func (s *keySet) prepare(token string) error {
	signed, err := jose.ParseSigned(token, signatures)
	if err != nil {
		return nil //nolint:nilerr // The verifier says what is wrong.
	}
	id := keyOf(signed)
	if age, known := s.state(id); age >= keysFresh || !known {
		s.ask()
	}
	age, known := s.state(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil && (age >= keysKept || !known) {
		return fmt.Errorf("%w (%w)", errIssuerDown, s.failed)
	}
	return nil
}

// state is the age of the keys, and whether one of an id is among them.
func (s *keySet) state(id string) (age time.Duration, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known = len(s.keys) > 0 && id == "" || slices.ContainsFunc(s.keys, func(key jose.JSONWebKey) bool { return key.KeyID == id })
	return s.now().Sub(s.read), known
}

// ask reads the keys, unless the issuer was asked a moment ago.
func (s *keySet) ask() {
	s.asking.Lock()
	defer s.asking.Unlock()
	now := s.now()
	if now.Sub(s.asked) < askAgain {
		return
	}
	s.asked = now
	keys, err := s.fetch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = err; err == nil {
		s.keys, s.read = keys, now
	}
}

func (s *keySet) fetch() ([]jose.JSONWebKey, error) {
	// The keys are for all callers: a request that ends does not end this one.
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeys))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", s.url, response.Status)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("%s has no set of keys: %w", s.url, err)
	}
	var keys []jose.JSONWebKey
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(text, &key) == nil { // RFC 7517, section 5: others are ignored.
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// VerifySignature implements oidc.KeySet. It gives the payload of a token.
func (s *keySet) VerifySignature(_ context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token, signatures)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	keys := s.keys
	s.mu.Unlock()
	id := keyOf(signed)
	for _, key := range keys {
		if id == "" || key.KeyID == id {
			if payload, err := signed.Verify(key); err == nil {
				return payload, nil
			}
		}
	}
	return nil, errors.New("no key of the issuer has signed it")
}
