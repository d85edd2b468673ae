package watchdog_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

// post is an SMTP server that keeps what it gets.
type post struct {
	port int
	tls  *tls.Config // of clients

	mu       sync.Mutex
	mails    []string
	to       []string
	tries    int
	refusals []error
}

type session struct {
	*post
	loggedIn bool
}

func (p *post) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{post: p}, nil }

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if s.loggedIn = user == "watch" && password == "s3cr3t"; !s.loggedIn {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if len(s.refusals) > 0 {
		err := s.refusals[0]
		s.refusals = s.refusals[1:]
		return err
	}
	if !s.loggedIn {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, string(text))
	return err
}

func (*session) Reset() {}

func (*session) Logout() error { return nil }

// newPost serves, with TLS from the begin if asked.
func newPost(t *testing.T, implicit bool, refusals ...error) *post {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)
	pool := x509.NewCertPool()
	pool.AddCert(certified.Certificate())
	p := &post{refusals: refusals, tls: &tls.Config{RootCAs: pool, ServerName: "example.com", MinVersion: tls.VersionTLS12}}
	serverTLS := &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	server := smtp.NewServer(p)
	server.Domain, server.TLSConfig = "localhost", serverTLS
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.port = listener.Addr().(*net.TCPAddr).Port
	if implicit {
		listener = tls.NewListener(listener, serverTLS)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, <-done)
	})
	return p
}

func (p *post) config(security string) watchdog.EmailConfig {
	return watchdog.EmailConfig{
		Host: "127.0.0.1", Port: p.port, Security: security, From: "jobs@example.org", To: []string{"a@example.org", "b@example.org"},
		User: "watch", Password: "s3cr3t", TLS: p.tls, Retry: fast,
	}
}

func TestEmail(t *testing.T) {
	t.Parallel()
	for _, security := range []string{"starttls", "tls"} {
		t.Run(security, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, security == "tls")
			receiver, err := watchdog.NewEmail(p.config(security))
			require.NoError(t, err)
			require.NoError(t, receiver.Send(t.Context(), aMessage()))
			require.Len(t, p.mails, 1)
			require.Equal(t, []string{"a@example.org", "b@example.org"}, p.to)
			require.Contains(t, p.mails[0], "Subject: [firing] job-failing/probe.a")
			require.Contains(t, p.mails[0], "Message-ID: <msg1@dendra-jobs>")
			require.Contains(t, p.mails[0], "Job probe.a is failing.")
			require.Contains(t, p.mails[0], "Owner: organization:demo")
		})
	}
}

func TestEmailOfSeveralAlerts(t *testing.T) {
	t.Parallel()
	p := newPost(t, false)
	receiver, err := watchdog.NewEmail(p.config("starttls"))
	require.NoError(t, err)
	m, other := aMessage(), aMessage().Notice
	other.Alert, other.Text = "job-failing/probe.b", "Job probe.b is failing."
	m.Text, m.Alerts = "2 alerts fire: job-failing/probe.a, job-failing/probe.b", append(m.Alerts, other)
	require.NoError(t, receiver.Send(t.Context(), m))
	require.Len(t, p.mails, 1)
	mail := strings.ReplaceAll(p.mails[0], "\r\n", "\n")
	require.Contains(t, strings.ReplaceAll(mail, "\n ", " "), "Subject: [firing] 2 alerts fire: job-failing/probe.a, job-failing/probe.b")
	for _, block := range []string{"job-failing/probe.a\n\nJob probe.a is failing.\n", "job-failing/probe.b\n\nJob probe.b is failing.\n"} {
		require.Contains(t, mail, block)
	}
}

func TestEmailOfARunThatHasEnded(t *testing.T) {
	t.Parallel()
	p := newPost(t, false)
	receiver, err := watchdog.NewEmail(p.config("starttls"))
	require.NoError(t, err)
	m := aMessage()
	m.Rule, m.Link = "run-ended", "https://store.example.org/links"
	m.Alerts = []watchdog.Notice{m.Notice}
	require.NoError(t, receiver.Send(t.Context(), m))
	require.Contains(t, p.mails[0], "It ended at ")
	require.Contains(t, p.mails[0], "Link: https://store.example.org/links")
	var lines bytes.Buffer
	require.NoError(t, watchdog.Log{Logger: slog.New(slog.NewTextHandler(&lines, nil))}.Send(t.Context(), m))
	require.Contains(t, lines.String(), "a run has ended: ")
	require.NotContains(t, lines.String(), "store.example.org", "whoever reads the log has no key to the files")
}

func TestEmailIsTriedAgainUnlessRefused(t *testing.T) {
	t.Parallel()
	busy := &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again later"}
	p := newPost(t, false, busy, busy)
	receiver, err := watchdog.NewEmail(p.config("starttls"))
	require.NoError(t, err)
	require.NoError(t, receiver.Send(t.Context(), aMessage()))
	require.Len(t, p.mails, 1)
	require.Equal(t, 3, p.tries)

	p = newPost(t, false, &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "no"})
	receiver, err = watchdog.NewEmail(p.config("starttls"))
	require.NoError(t, err)
	require.Error(t, receiver.Send(t.Context(), aMessage()))
	require.Equal(t, 1, p.tries)
}

func TestNoPasswordWithoutTLS(t *testing.T) {
	t.Parallel()
	p := newPost(t, false)
	_, err := watchdog.NewEmail(p.config("none"))
	require.ErrorContains(t, err, "not sent without TLS")

	config := p.config("starttls")
	config.TLS = nil // The authorities of the system do not know the server.
	config.Retry.Tries = 1
	receiver, err := watchdog.NewEmail(config)
	require.NoError(t, err)
	var unknown x509.UnknownAuthorityError
	require.True(t, errors.As(receiver.Send(t.Context(), aMessage()), &unknown) || len(p.mails) == 0)
	require.Zero(t, p.tries, "nobody has logged in")
}
