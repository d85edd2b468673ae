package server

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"
)

// selfTimeout is how long the server may take to answer itself.
const selfTimeout = 5 * time.Second

// self calls this server as others do, over a connection of its own that stays open: one more
// would have to wait while others hold all of them.
func (s *Server) self() *http.Client {
	var dialer net.Dialer
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			from := c.LocalAddr().String()
			s.ownAddress.Store(&from)
		}
		return c, err
	}
	return &http.Client{Timeout: selfTimeout, Transport: &http.Transport{
		DialContext:     dial,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // It asks whether, not who.
	}}
}

// alive reports whether the server answers /livez. One that stops ends by itself.
func (s *Server) alive(self *http.Client) bool {
	if s.stopping.Err() != nil {
		return true
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL()+"/livez", nil)
	if err != nil {
		return false
	}
	response, err := self.Do(request)
	if err != nil {
		return s.stopping.Err() != nil
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}
