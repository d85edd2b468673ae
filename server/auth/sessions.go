package auth

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Cookie is the name of the cookie with the session of a browser.
const Cookie = "dendra_jobs_session"

// Bounds of sessions.
const (
	// SessionAge is how long a session lasts at most.
	SessionAge = 30 * 24 * time.Hour
	// maxSessions is how many a caller has. The oldest gives way.
	maxSessions = 50
)

// sessions are those of browsers that have logged in, in the memory of this process. A browser
// has a random name alone, which is of no use elsewhere.
type sessions struct {
	mu     sync.Mutex
	byName map[string]session
}

type session struct {
	token, caller string
	began         time.Time
}

func newSessions() *sessions { return &sessions{byName: map[string]session{}} }

// begin gives the name of a new session.
func (s *sessions) begin(token, caller string, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, oldest := 0, ""
	for name, other := range s.byName {
		switch {
		case now.Sub(other.began) >= SessionAge:
			delete(s.byName, name)
		case other.caller == caller:
			own++
			if oldest == "" || other.began.Before(s.byName[oldest].began) {
				oldest = name
			}
		}
	}
	if own >= maxSessions {
		delete(s.byName, oldest)
	}
	name := rand.Text()
	s.byName[name] = session{token, caller, now}
	return name
}

func (s *sessions) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}

// token is the token of a session, false if there is no such session.
func (s *sessions) token(name string, now time.Time) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.byName[name]
	return found.token, ok && now.Sub(found.began) < SessionAge
}

// LogIn begins the session of a browser with a token, and gives its name for the cookie. The
// session ends with the token, or when the process does.
func (a *Authenticator) LogIn(r *http.Request, token string) (name string, err error) {
	caller, err := a.token(r, token)
	if err != nil {
		return "", err
	}
	return a.sessions.begin(token, caller.Name, time.Now()), nil
}

// LogOut ends the session of a request, if it has one.
func (a *Authenticator) LogOut(r *http.Request) {
	if cookie, err := r.Cookie(Cookie); err == nil {
		a.sessions.end(cookie.Value)
	}
}

// session finds the caller of a session.
func (a *Authenticator) session(r *http.Request, name string) (Caller, error) {
	token, ok := a.sessions.token(name, time.Now())
	if !ok {
		return Caller{}, errors.New("the session is not known, or has ended: log in again")
	}
	return a.token(r, token)
}
