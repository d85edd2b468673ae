package objects

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Config says how to reach an S3 store.
type Config struct {
	// AccessKey names the credentials. Required, unless there is a CredentialsFile.
	AccessKey string
	// CredentialsFile is the path of a file of credentials, as the AWS CLI has them. It is
	// read again when it has changed. Defaults to none.
	CredentialsFile string
	// Endpoint is the URL of the store, http or https, without a path:
	// http://127.0.0.1:9000. Required.
	Endpoint string
	// PublicEndpoint is the URL by which those who get signed URLs reach the store. Defaults to
	// the Endpoint.
	PublicEndpoint string
	// Profile is the part of the CredentialsFile that counts. Defaults to default.
	Profile string
	// Region is the store's region. Defaults to us-east-1.
	Region string
	// SecretKey belongs to AccessKey.
	SecretKey string
	// SessionToken belongs to an AccessKey that is valid for a time. Defaults to none.
	SessionToken string
}

// Names of the environment variables that [ConfigFromEnv] reads.
const (
	EnvAccessKey       = "DENDRA_S3_ACCESS_KEY"
	EnvCredentialsFile = "DENDRA_S3_CREDENTIALS_FILE"
	EnvEndpoint        = "DENDRA_S3_ENDPOINT"
	EnvProfile         = "DENDRA_S3_PROFILE"
	EnvPublicEndpoint  = "DENDRA_S3_PUBLIC_ENDPOINT"
	EnvRegion          = "DENDRA_S3_REGION"
	EnvSecretKey       = "DENDRA_S3_SECRET_KEY"
	EnvSessionToken    = "DENDRA_S3_SESSION_TOKEN"
)

// DefaultRegion is the region of a store that names none.
const DefaultRegion = "us-east-1"

// ConfigFromEnv reads the configuration through a function like os.Getenv. It
// lists every variable that is missing or wrong.
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	c := Config{
		AccessKey: getenv(EnvAccessKey),
		Endpoint:  getenv(EnvEndpoint),
		Region:    getenv(EnvRegion),
		SecretKey: getenv(EnvSecretKey),

		PublicEndpoint: getenv(EnvPublicEndpoint),

		CredentialsFile: getenv(EnvCredentialsFile), Profile: getenv(EnvProfile), SessionToken: getenv(EnvSessionToken),
	}
	var problems []error
	if c.Endpoint == "" {
		problems = append(problems, fmt.Errorf("%s is not set: it is the URL of the S3 store", EnvEndpoint))
	} else if _, err := addressOf(c.Endpoint); err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", EnvEndpoint, err))
	}
	if c.PublicEndpoint != "" {
		if _, err := addressOf(c.PublicEndpoint); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", EnvPublicEndpoint, err))
		}
	}
	if c.CredentialsFile != "" {
		if c.AccessKey != "" || c.SecretKey != "" || c.SessionToken != "" {
			problems = append(problems, fmt.Errorf("%s is set: %s, %s and %s are not set beside it", EnvCredentialsFile, EnvAccessKey, EnvSecretKey, EnvSessionToken))
		}
		if _, err := c.credentials().GetWithContext(nil); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", EnvCredentialsFile, err))
		}
		return c, errors.Join(problems...)
	}
	if c.AccessKey == "" {
		problems = append(problems, fmt.Errorf("%s is not set", EnvAccessKey))
	}
	if c.SecretKey == "" {
		problems = append(problems, fmt.Errorf("%s is not set", EnvSecretKey))
	}
	return c, errors.Join(problems...)
}

func addressOf(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:9000", endpoint)
	case strings.Trim(u.Path, "/") != "", u.RawQuery != "", u.Fragment != "", u.User != nil:
		return nil, fmt.Errorf("S3 endpoint on %s: the URL may have scheme, host and port alone", u.Host)
	}
	return u, nil
}
