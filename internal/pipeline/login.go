package pipeline

import (
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
)

// Names of the environment variables with paths of files that [FromEnv] reads. Files are
// read again with each connection, so that what is in them may change.
const (
	EnvCreds = "DENDRA_NATS_CREDS" // a user's JWT and seed, as `nsc generate creds` writes them
	EnvNKey  = "DENDRA_NATS_NKEY"  // the seed of an NKEY
	EnvCA    = "DENDRA_NATS_CA"    // certificates, PEM, of who may sign that of the server
	EnvCert  = "DENDRA_NATS_CERT"  // the client's own certificate, PEM
	EnvKey   = "DENDRA_NATS_KEY"   // its key, PEM
)

// FromEnv takes what the environment says of streams, and of who logs in, with a function
// like os.Getenv when the client connects.
func FromEnv(getenv func(string) string) Option {
	return func(c *Client) {
		c.settings = func() (StreamSettings, error) { return StreamSettingsFromEnv(getenv) }
		c.login = func() ([]nats.Option, error) { return loginFromEnv(getenv) }
	}
}

// loginFromEnv is how a client proves who it is. Its error names every variable that is wrong.
func loginFromEnv(getenv func(string) string) ([]nats.Option, error) {
	var problems []error
	paths := map[string]string{}
	for _, name := range []string{EnvCreds, EnvNKey, EnvCA, EnvCert, EnvKey} {
		path := getenv(name)
		if path == "" {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		_ = file.Close()
		paths[name] = path
	}
	if getenv(EnvCreds) != "" && getenv(EnvNKey) != "" {
		problems = append(problems, fmt.Errorf("%s and %s are both set: a client logs in as one user", EnvCreds, EnvNKey))
	}
	if (getenv(EnvCert) == "") != (getenv(EnvKey) == "") {
		problems = append(problems, fmt.Errorf("%s and %s are set together or not at all", EnvCert, EnvKey))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	var options []nats.Option
	if path := paths[EnvCreds]; path != "" {
		options = append(options, nats.UserCredentials(path))
	}
	if path := paths[EnvNKey]; path != "" {
		option, err := nats.NkeyOptionFromSeed(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %s has no seed of an NKEY", EnvNKey, path) // The error could quote it.
		}
		options = append(options, option)
	}
	if path := paths[EnvCA]; path != "" {
		options = append(options, nats.RootCAs(path))
	}
	if path := paths[EnvCert]; path != "" {
		options = append(options, nats.ClientCert(path, paths[EnvKey]))
	}
	return options, nil
}
