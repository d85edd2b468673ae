// Package platform calls Dendra's Platform API.
package platform

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/dendrascience/dendra-jobs/internal/redact"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

// maxMessage is the most that an answer, or a message of a stream, may have.
const maxMessage = 16 << 20

// Client calls the services of the Platform API.
type Client struct {
	Changes       platformv1connect.ChangeServiceClient
	Integrations  platformv1connect.IntegrationServiceClient
	Metadata      platformv1connect.MetadataServiceClient
	Organizations platformv1connect.OrganizationServiceClient
	Tables        platformv1connect.TableServiceClient
}

// New makes a client. It connects when it is used. Interceptors see its calls.
func New(c Config, interceptors ...connect.ClientInterceptor) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	transport := connecthttp.NewTransport(cmp.Or(c.HTTPClient, HTTPClient), c.URL, connecthttp.WithReadMaxBytes(maxMessage))
	client := connect.NewClient(transport, slices.Concat([]connect.ClientInterceptor{limited}, interceptors, []connect.ClientInterceptor{bearer(c.Token)})...)
	return &Client{
		Changes:       platformv1connect.NewChangeServiceClient(client),
		Integrations:  platformv1connect.NewIntegrationServiceClient(client),
		Metadata:      platformv1connect.NewMetadataServiceClient(client),
		Organizations: platformv1connect.NewOrganizationServiceClient(client),
		Tables:        platformv1connect.NewTableServiceClient(client),
	}, nil
}

// timeout is how long a call may take that is no stream.
const timeout = 30 * time.Second

// limited gives up a call that takes too long. A stream of changes has no limit.
func limited(next connect.ClientFunc) connect.ClientFunc {
	return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
		if spec.StreamType != connect.StreamTypeUnary {
			return next(ctx, spec)
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		stream, err := next(ctx, spec)
		if err != nil {
			cancel()
			return stream, err
		}
		return limitedStream{stream, cancel}, nil
	}
}

// limitedStream is the stream of a call, which closes it.
type limitedStream struct {
	connect.ClientStream
	cancel context.CancelFunc
}

func (l limitedStream) Close() error {
	defer l.cancel()
	return l.ClientStream.Close()
}

// bearer sends the token with every call, and takes it out of the server's errors.
func bearer(token string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if info, ok := connect.CallInfoForClientContext(ctx); ok {
				info.RequestHeader().Set("Authorization", "Bearer "+token)
			}
			stream, err := next(ctx, spec)
			if err != nil {
				return stream, mask(err, token)
			}
			return masked{stream, token}, nil
		}
	}
}

// masked is a stream whose errors do not have the token.
type masked struct {
	connect.ClientStream
	token string
}

func (m masked) SendHeaders() error    { return mask(m.ClientStream.SendHeaders(), m.token) }
func (m masked) Send(msg any) error    { return mask(m.ClientStream.Send(msg), m.token) }
func (m masked) CloseSend() error      { return mask(m.ClientStream.CloseSend(), m.token) }
func (m masked) Receive(msg any) error { return mask(m.ClientStream.Receive(msg), m.token) }

func mask(err error, token string) error {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok || !strings.Contains(failed.Message(), token) {
		return err
	}
	clean := connect.NewError(failed.Code(), redact.Of(token).Text(failed.Message())).WithCause(failed.Unwrap())
	for _, detail := range failed.Details() {
		clean = clean.WithDetail(detail)
	}
	if failed.IsRemote() {
		clean = clean.WithRemote()
	}
	return clean
}
