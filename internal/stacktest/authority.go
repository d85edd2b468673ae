package stacktest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority issues certificates, for 127.0.0.1 and for clients.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one that lasts an hour.
func NewAuthority(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{}
	a.Cert, a.key, _ = a.Issue(t, "an authority", true)
	return a
}

// Issue makes a certificate with its key in PEM.
func (a *Authority) Issue(t *testing.T, commonName string, isCA bool) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	number, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: commonName}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: isCA, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if isCA {
		template.KeyUsage |= x509.KeyUsageCertSign
	} else {
		parent, signer = a.Cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	return cert, key, text
}

// Pool is what trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

// File writes the certificate of the authority, and gives its path. It is alone in its
// folder, as SSL_CERT_DIR takes it.
func (a *Authority) File(t *testing.T) string {
	t.Helper()
	return writeFile(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Cert.Raw}))
}

// Pair writes a new certificate with its key, and gives the path.
func (a *Authority) Pair(t *testing.T, commonName string) string {
	t.Helper()
	_, _, text := a.Issue(t, commonName, false)
	return writeFile(t, "pair.pem", text)
}

func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// Proxy takes HTTPS with a certificate of the authority for a server that has none, until
// the end of the test. It gives its URL.
func (a *Authority) Proxy(t *testing.T, target string) string {
	t.Helper()
	_, _, text := a.Issue(t, "proxy", false)
	certificate, err := tls.X509KeyPair(text, text)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(ReverseProxy(t, target))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// Tunnel takes TLS with a certificate of the authority for a server that has none, and only from
// clients that have one too, until the end of the test. It gives its address.
func (a *Authority) Tunnel(t *testing.T, target string) string {
	t.Helper()
	_, _, text := a.Issue(t, "tunnel", false)
	certificate, err := tls.X509KeyPair(text, text)
	require.NoError(t, err)
	plain, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	listener := tls.NewListener(plain, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
	})
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // The test ends.
			}
			connections.Go(func() { join(t.Context(), from, target) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait()
	})
	return plain.Addr().String()
}

// join copies what either side of a connection sends to the other, until one has left or ctx ends.
func join(ctx context.Context, from net.Conn, target string) {
	defer func() { _ = from.Close() }()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp4", target)
	if err != nil {
		return // Whoever called sees that.
	}
	hangUp := func() {
		_ = from.Close()
		_ = to.Close()
	}
	defer hangUp()
	defer context.AfterFunc(ctx, hangUp)()
	go func() {
		defer hangUp()
		_, _ = io.Copy(to, from)
	}()
	_, _ = io.Copy(from, to)
}
