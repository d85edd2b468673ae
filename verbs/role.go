package verbs

import "fmt"

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
