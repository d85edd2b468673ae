package platform

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// HTTPClient is shared, so that connections are. A redirect is an error: it would take the
// token elsewhere. It sets no limit to the time of a request.
var HTTPClient = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: 16,
	},
}

// Setting is an environment variable of a client.
type Setting struct {
	Name, Value string
	// Meaning says what it is, such as the URL of the Platform API. May be empty.
	Meaning string
	// Example is a URL, if the variable has to be one.
	Example string
}

// CheckSettings lists every setting that is missing or wrong.
func CheckSettings(settings ...Setting) error {
	var problems []error
	for _, s := range settings {
		switch {
		case s.Value == "" && s.Meaning == "":
			problems = append(problems, fmt.Errorf("%s is not set", s.Name))
		case s.Value == "":
			problems = append(problems, fmt.Errorf("%s is not set: it is %s", s.Name, s.Meaning))
		case s.Example != "" && !isURL(s.Value):
			problems = append(problems, fmt.Errorf("%s is not a URL such as %s", s.Name, s.Example))
		}
	}
	return errors.Join(problems...)
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}
