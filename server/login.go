package server

import (
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/dendrascience/dendra-jobs/server/auth"
)

//go:embed login.html
var loginText string

var loginPage = template.Must(template.New("login").Parse(loginText))

const (
	loginPath  = "/login"
	logoutPath = "/logout"
	// maxForm bounds the form in bytes.
	maxForm = 16 << 10
)

// loginForm is what the form shows.
type loginForm struct {
	Next, Problem string
}

// login shows the form, and begins a session with a token that is valid. Scripts cannot read
// its cookie, and browsers do not send it with requests of other sites.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.showLogin(w, r, http.StatusOK, loginForm{Next: localPath(r.URL.Query().Get("next"))})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	token := strings.TrimSpace(r.PostFormValue("token"))
	next := localPath(r.PostFormValue("next"))
	session, err := s.authenticator.LogIn(r, token)
	if err != nil {
		s.config.Audit.Refused(auth.Caller{Address: auth.Address(r)}, loginPath, auth.Unauthenticated("the log-in is refused"))
		s.config.Logger.InfoContext(r.Context(), "a login was refused", "address", auth.Address(r), "error", err)
		s.showLogin(w, r, http.StatusUnauthorized, loginForm{Next: next, Problem: "This token is not valid, or has expired."})
		return
	}
	http.SetCookie(w, cookie(r, session, 0))
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath leads nowhere else.
}

// logout ends the session, and takes the cookie away.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	s.authenticator.LogOut(r)
	http.SetCookie(w, cookie(r, "", -1))
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// cookie holds the name of a session until the browser ends.
func cookie(r *http.Request, session string, maxAge int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Without TLS a secure cookie would not come back.
		Name: auth.Cookie, Value: session, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// A proxy that ends TLS says so. Whoever says so wrongly gets no cookie back.
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request, status int, form loginForm) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	if err := loginPage.Execute(w, form); err != nil {
		s.config.Logger.DebugContext(r.Context(), "the form of the login was not read to its end", "error", err)
	}
}

// toLogin sends a browser to the form, and back afterwards.
func toLogin(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, loginPath+"?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
}

// localPath is a path of this server, / if the text is none: it never leads elsewhere.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	return text
}
