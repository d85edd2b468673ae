// Package platform calls Dendra's Platform API.
package platform

import (
	"context"
	"net/http"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

// Client calls the services of the Platform API.
type Client struct {
	Changes       platformv1connect.ChangeServiceClient
	Integrations  platformv1connect.IntegrationServiceClient
	Metadata      platformv1connect.MetadataServiceClient
	Organizations platformv1connect.OrganizationServiceClient
	Tables        platformv1connect.TableServiceClient
}

// New makes a client. It connects when it is used.
func New(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	// Contexts limit the time of calls; a stream of changes has no limit.
	transport := connecthttp.NewTransport(&http.Client{Transport: http.DefaultTransport}, c.URL)
	client := connect.NewClient(transport, bearer(c.Token))
	return &Client{
		Changes:       platformv1connect.NewChangeServiceClient(client),
		Integrations:  platformv1connect.NewIntegrationServiceClient(client),
		Metadata:      platformv1connect.NewMetadataServiceClient(client),
		Organizations: platformv1connect.NewOrganizationServiceClient(client),
		Tables:        platformv1connect.NewTableServiceClient(client),
	}, nil
}

// bearer sends the token with every call.
func bearer(token string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if info, ok := connect.CallInfoForClientContext(ctx); ok {
				info.RequestHeader().Set("Authorization", "Bearer "+token)
			}
			return next(ctx, spec)
		}
	}
}
