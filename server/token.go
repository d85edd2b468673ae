package server

import (
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Token is a token that was made, and the line for the file of credentials, which has its
// hash alone.
type Token struct {
	Token string `json:"token"`
	Line  string `json:"line"`
}

// NewToken makes a token of a caller with a role. It is valid until a time, or for ever if
// that is zero. An error begins with what is wrong: name or role.
func NewToken(name, role string, until time.Time) (Token, error) {
	if err := auth.CheckName(name); err != nil {
		return Token{}, fmt.Errorf("name: %w", err)
	}
	given, err := verbs.ParseRole(role)
	if err != nil {
		return Token{}, fmt.Errorf("role: %w", err)
	}
	token := auth.NewToken()
	return Token{Token: token, Line: auth.Line(name, given, auth.Hash(token), until)}, nil
}

// AddToken adds the line of a token to a file of credentials, which is made if it is missing.
// It leaves a file alone that has a token of the name, and says so.
func AddToken(path, name string, made Token) (added bool, err error) {
	return auth.AddLine(path, name, made.Line)
}
