package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
)

// TLS are files in PEM. They are read again when they change.
type TLS struct {
	// Cert has the certificate and those between it and its authority, Key its key.
	Cert, Key string
	// ClientCA has the authorities of client certificates. Empty means that none are
	// asked for. A client without one may still send a token.
	ClientCA string
}

// certificates serves connections with what the files have now.
type certificates struct {
	TLS
	logger *slog.Logger

	mu    sync.Mutex
	files []fs.FileInfo
	now   *tls.Config
}

func newCertificates(files TLS, logger *slog.Logger) (*certificates, error) {
	c := &certificates{TLS: files, logger: logger}
	var err error
	if c.files, err = c.stat(); err == nil {
		c.now, err = c.load()
	}
	if err != nil {
		return nil, fmt.Errorf("the certificates cannot be used: %w", err)
	}
	return c, nil
}

// config is that of the listener.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         protocolNames(),
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

func protocolNames() []string { return []string{"h2", "http/1.1"} }

func (c *certificates) stat() ([]fs.FileInfo, error) {
	var infos []fs.FileInfo
	for _, path := range []string{c.Cert, c.Key, c.ClientCA} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func (c *certificates) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocolNames(), Certificates: []tls.Certificate{pair}}
	if c.ClientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, err
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New(c.ClientCA + " has no certificate in PEM")
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return config, nil
}

// current is the configuration of a new connection. Files that cannot be used, as when one
// of a pair was not replaced yet, leave what was read last in force.
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	infos, err := c.stat()
	if err != nil || same(infos, c.files) {
		return c.now
	}
	next, err := c.load()
	if err != nil {
		c.logger.Warn("the certificates cannot be used: what was read before stays in force", "error", err)
		return c.now
	}
	c.now, c.files = next, infos
	c.logger.Info("the certificates were read again")
	return c.now
}

func same(a, b []fs.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}
