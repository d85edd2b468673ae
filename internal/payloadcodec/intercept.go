package payloadcodec

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Interceptor encrypts what calls send to Temporal and decrypts what they get, of the SDK and of
// raw clients alike. Without keys it only refuses what is encrypted: whoever took it for
// missing would write it anew, readable.
func (k Keys) Interceptor() (grpc.UnaryClientInterceptor, error) {
	payloads, err := converter.NewPayloadCodecGRPCClientInterceptor(converter.PayloadCodecGRPCClientInterceptorOptions{
		Codecs: []converter.PayloadCodec{k},
	})
	if err != nil {
		return nil, fmt.Errorf("encryption of payloads: %w", err)
	}
	if len(k.ids) == 0 {
		return payloads, nil
	}
	failures, err := converter.NewFailureGRPCClientInterceptor(converter.NewFailureGRPCClientInterceptorOptions{EncodeCommonAttributes: true})
	if err != nil {
		return nil, fmt.Errorf("encryption of errors: %w", err)
	}
	return func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		// Both write into the request, which the caller keeps and may send again.
		if message, ok := request.(proto.Message); ok {
			request = proto.Clone(message)
		}
		return failures(ctx, method, request, reply, conn, func(
			ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, options ...grpc.CallOption,
		) error {
			return payloads(ctx, method, request, reply, conn, invoke, options...)
		}, options...)
	}, nil
}
