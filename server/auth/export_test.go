package auth

import "time"

// SetNow has the issuer of an authenticator read another clock. It is called before the first
// token comes.
func (a *Authenticator) SetNow(now func() time.Time) { a.issuer.now = now }
