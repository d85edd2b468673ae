package platform

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/dendrascience/dendra-jobs/internal/answers"
)

// HTTPClient is shared, so that connections are. It sets no limit to the time of a request.
var HTTPClient = answers.Client(nil, answers.Limits{})

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
