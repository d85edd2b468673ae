// Package s3 embeds an S3 gateway over a folder: a bucket is a folder, an
// object a file in it.
package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/embedgw"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
)

// The credentials of every development store. They open nothing but a server
// on the loopback interface.
const (
	AccessKey = "dendra-dev"
	SecretKey = "dendra-dev-secret"
	Region    = "us-east-1"
)

// Options of the gateway.
type Options struct {
	Port    int
	Objects string // absolute folder of the buckets
	Sidecar string // absolute folder of the metadata where the file system has no extended attributes
	Buckets []string
	Failed  func(error) // called when the gateway ends by itself
}

// Server is a running gateway. There can be one in a process.
type Server struct {
	address string
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the gateway returned
	err     error         // why it did; read it after ended
}

// Start starts the gateway, waits until it answers and makes the buckets that
// are missing. It changes the working directory of the process, as the
// gateway's folder backend works from there.
func Start(ctx context.Context, o Options) (*Server, error) {
	store, err := newBackend(o.Objects, o.Sidecar)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(ports.Host, strconv.Itoa(o.Port))
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{address: address, cancel: cancel, ended: make(chan struct{})}
	go func() {
		s.err = embedgw.RunVersityGW(run, store, &embedgw.Config{
			RootUserAccess:    AccessKey,
			RootUserSecret:    SecretKey,
			IAMService:        auth.NewIAMServiceSingle(auth.Account{Access: AccessKey, Secret: SecretKey, Role: auth.RoleAdmin}),
			Region:            Region,
			Ports:             []string{address},
			MaxConnections:    4096,
			MaxRequests:       2048,
			MultipartMaxParts: 10000,
			KeepAlive:         true,
			CORSAllowOrigin:   "*", // Signed URLs are for browsers too, and nothing else is let in.
			Quiet:             true,
		})
		if run.Err() == nil && s.err == nil {
			s.err = errors.New("the gateway returned")
		}
		close(s.ended)
		if run.Err() == nil {
			o.Failed(s.err)
		}
	}()
	if err := s.makeBuckets(ctx, o.Buckets); err != nil {
		return nil, err
	}
	return s, nil
}

// URL of the S3 API.
func (s *Server) URL() string { return "http://" + s.address }

// Stop ends the gateway after the requests under way.
func (s *Server) Stop() error {
	s.cancel()
	<-s.ended
	return s.err
}

// makeBuckets waits for the gateway to answer by asking for what it needs anyway.
func (s *Server) makeBuckets(ctx context.Context, buckets []string) error {
	client, err := minio.New(s.address, &minio.Options{
		Creds:  credentials.NewStaticV4(AccessKey, SecretKey, ""),
		Region: Region,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := s.waitListening(ctx); err != nil {
		return err
	}
	for _, name := range buckets {
		exists, err := client.BucketExists(ctx, name)
		if err == nil && !exists {
			err = client.MakeBucket(ctx, name, minio.MakeBucketOptions{Region: Region})
		}
		if err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	return nil
}

func (s *Server) waitListening(ctx context.Context) error {
	var dialer net.Dialer
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := dialer.DialContext(ctx, "tcp", s.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-s.ended:
			return s.err
		case <-ctx.Done():
			return fmt.Errorf("does not answer on %s: %w", s.address, err)
		case <-tick.C:
		}
	}
}
