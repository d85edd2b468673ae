package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Role is what a caller may do. A higher role may do all that a lower one may.
type Role int

// The roles.
const (
	// RoleNone may do nothing.
	RoleNone Role = iota
	// RoleViewer may read.
	RoleViewer
	// RoleOperator may also run, stop, pause and retry what is declared.
	RoleOperator
	// RoleAdmin may also declare, change and delete, and end things for good.
	RoleAdmin
)

var roleNames = map[Role]string{RoleNone: "none", RoleViewer: "viewer", RoleOperator: "operator", RoleAdmin: "admin"}

// String implements fmt.Stringer.
func (r Role) String() string { return roleNames[r] }

// ParseRole reads viewer, operator or admin.
func ParseRole(text string) (Role, error) {
	for _, role := range []Role{RoleViewer, RoleOperator, RoleAdmin} {
		if role.String() == text {
			return role, nil
		}
	}
	return RoleNone, fmt.Errorf("%.40q is no role: the roles are viewer, operator and admin", text)
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(text []byte) error {
	role, err := ParseRole(string(text))
	*r = role
	return err
}

// Caller is who makes a call.
type Caller struct {
	// Name is that of the token or the certificate, or the subject that an issuer names.
	Name string
	Role Role
	// Address is the remote address, empty for calls of this process itself.
	Address string
}

type callerKey struct{}

// WithCaller says in a context who makes the calls.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf is who makes a call; false if nobody was authenticated.
func CallerOf(ctx context.Context) (Caller, bool) {
	caller, ok := ctx.Value(callerKey{}).(Caller)
	return caller, ok
}

// ReadOnly says that whoever makes a request may change nothing.
func ReadOnly(r *http.Request) bool {
	caller, _ := CallerOf(r.Context())
	return caller.Role < RoleOperator
}

// CheckName refuses names that logs and histories could not show on one line.
func CheckName(name string) error {
	if name == "" || len(name) > 200 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%.40q is no name: it has from 1 to 200 bytes, and no control characters", name)
	}
	return nil
}
