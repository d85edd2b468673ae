// Package auth says who calls the Job API, and what that caller may do.
//
// A [Authenticator] finds out who sends a request: by a bearer token, by the cookie of the
// status page, by a client certificate, or by a token of an OIDC issuer. [Least] is the one
// table of roles: the least role that each procedure needs. [CheckRoles] is the interceptor
// that holds every call against it, whether it comes over HTTP or from this process.
//
// Tokens and certificates are in one file of hashes and names, which is read again when it
// changes.
package auth
