package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/server/auth"
)

func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".next", text, 0o600))
	require.NoError(t, os.Rename(path+".next", path))
}

// mutualTLS knows callers by their certificates, and reads its own again.
func mutualTLS(t *testing.T, w *world) {
	ca, other := stacktest.NewAuthority(t), stacktest.NewAuthority(t)
	dir := t.TempDir()
	pair, clientCA := filepath.Join(dir, "server.pem"), filepath.Join(dir, "ca.pem")
	first, _, text := ca.Issue(t, "server one", false)
	replace(t, pair, text)
	replace(t, clientCA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw}))
	s := w.guarded(t, func(c *server.Config) { c.TLS = &server.TLS{Cert: pair, Key: pair, ClientCA: clientCA} })
	s.write(t, append(s.lines(), `certificates."gateway 1" = { role = "operator" }`)...)

	client := func(trusted *stacktest.Authority, by *stacktest.Authority, commonName, token string, options ...connecthttp.Option) *api.Clients {
		config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted.Pool()}
		if by != nil {
			_, _, text := by.Issue(t, commonName, false)
			certificate, err := tls.X509KeyPair(text, text)
			require.NoError(t, err)
			config.Certificates = []tls.Certificate{certificate}
		}
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		return api.NewClients(connecthttp.NewTransport(&http.Client{Transport: bearer{token, transport}}, s.url, options...))
	}
	pause := func(clients *api.Clients) error {
		_, err := clients.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: "take_steps.no-such-job"})
		return err
	}
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(pause(client(ca, ca, "gateway 1", ""))))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(pause(client(ca, ca, "gateway 1", "", connecthttp.WithGRPC()))))
	records := s.audit.records(t)
	require.Equal(t, []string{"gateway 1", "certificate", "operator"}, []string{records[0].Caller, records[0].KnownBy, records[0].Role})
	requireError(t, pause(client(ca, ca, "gateway 2", "")), connect.CodeUnauthenticated, unauthenticated)
	requireError(t, pause(client(ca, nil, "", "")), connect.CodeUnauthenticated, unauthenticated)
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(pause(client(ca, nil, "", s.tokens["otto"]))), "a token does without")
	requireError(t, pause(client(ca, ca, "gateway 1", s.tokens["vera"])), connect.CodePermissionDenied, denied)
	requireError(t, pause(client(ca, ca, "gateway 1", auth.NewToken())), connect.CodeUnauthenticated, unauthenticated)
	err := pause(client(ca, other, "gateway 1", ""))
	require.Error(t, err, "the handshake fails")
	require.Error(t, pause(client(other, nil, "", s.tokens["otto"])), "the client does not know the server")

	served := func() *x509.Certificate {
		c, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ca.Pool()}}).DialContext(t.Context(), "tcp", s.url[len("https://"):])
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		connection, ok := c.(*tls.Conn)
		require.True(t, ok)
		return connection.ConnectionState().PeerCertificates[0]
	}
	require.True(t, first.Equal(served()))
	require.True(t, s.Alive())
	replace(t, pair, []byte("no certificate"))
	require.True(t, first.Equal(served()), "what cannot be used leaves the last in force")
	second, _, text := ca.Issue(t, "server two", false)
	replace(t, pair, text)
	require.True(t, second.Equal(served()))

	_, err = server.New(server.Config{API: api.Config{Client: w.client}, Audit: newAudit(), TLS: &server.TLS{Cert: pair, Key: pair, ClientCA: clientCA}})
	require.ErrorContains(t, err, "client certificates need a file of credentials")
}
