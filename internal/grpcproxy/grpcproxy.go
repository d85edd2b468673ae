// Package grpcproxy stands between a gRPC client and its server on a loopback
// port. It passes every call on as it is, counts calls by method, and answers
// those that it is told to refuse itself. Benchmarks and tests look through it
// at what a program asks of Temporal.
package grpcproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Options say what a proxy does besides passing calls on.
type Options struct {
	// Refuse gives the answer to a call of a method, by its short name as in
	// "CreateSchedule", in place of the server's; nil passes the call on.
	// Defaults to passing all on.
	Refuse func(method string) error
	// Rewrite changes an answer of a method, in the bytes of its message. Defaults to
	// leaving all as they are.
	Rewrite func(method string, answer []byte) ([]byte, error)
}

// Proxy is a running proxy. Its methods may be called at the same time.
type Proxy struct {
	// Address is where clients find it, HOST:PORT.
	Address string

	options Options
	server  *grpc.Server
	behind  *grpc.ClientConn
	mu      sync.Mutex
	calls   map[string]int
}

// maxMessage is more than Temporal sends or takes, in bytes.
const maxMessage = 128 << 20

// Start starts a proxy for the server at address, HOST:PORT, without TLS.
func Start(ctx context.Context, address string, options Options) (*Proxy, error) {
	behind, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("proxy for %s: %w", address, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		_ = behind.Close() // Nothing was sent.
		return nil, fmt.Errorf("proxy for %s: %w", address, err)
	}
	p := &Proxy{Address: listener.Addr().String(), options: options, behind: behind, calls: map[string]int{}}
	p.server = grpc.NewServer(
		grpc.ForceServerCodec(raw{}),
		grpc.UnknownServiceHandler(p.pass),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	go func() { _ = p.server.Serve(listener) }() // Ends with Close.
	return p, nil
}

// Close breaks off the calls under way and ends the proxy.
func (p *Proxy) Close() {
	p.server.Stop()
	_ = p.behind.Close() // It has no calls any more.
}

// Calls gives how often each method was called, by its short name, since the
// start or the last Reset. Refused calls count.
func (p *Proxy) Calls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.calls)
}

// Reset sets the counts to zero.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.calls)
}

// pass is the handler of every method.
func (p *Proxy) pass(_ any, client grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(client)
	method := full[strings.LastIndexByte(full, '/')+1:]
	p.mu.Lock()
	p.calls[method]++
	p.mu.Unlock()
	if p.options.Refuse != nil {
		if err := p.options.Refuse(method); err != nil {
			return err
		}
	}
	// Ends both directions when this handler returns.
	ctx, cancel := context.WithCancel(client.Context())
	defer cancel()
	if head, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, head)
	}
	server, err := p.behind.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, full)
	if err != nil {
		return err
	}
	go forward(client, server, cancel)
	return p.back(method, server, client)
}

// forward passes on what the client sends.
func forward(client grpc.ServerStream, server grpc.ClientStream, cancel func()) {
	for {
		var message []byte
		err := client.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			_ = server.CloseSend() // What fails shows in the answer.
			return
		}
		if err == nil {
			err = server.SendMsg(&message)
		}
		if err != nil && !errors.Is(err, io.EOF) { // EOF: the answer says why.
			cancel()
		}
		if err != nil {
			return
		}
	}
}

// back passes on what the server answers, and its status.
func (p *Proxy) back(method string, server grpc.ClientStream, client grpc.ServerStream) error {
	head, err := server.Header()
	if err != nil {
		return err
	}
	if err := client.SendHeader(head); err != nil {
		return err
	}
	for {
		var message []byte
		err := server.RecvMsg(&message)
		if err != nil {
			client.SetTrailer(server.Trailer())
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if p.options.Rewrite != nil {
			if message, err = p.options.Rewrite(method, message); err != nil {
				return err
			}
		}
		if err := client.SendMsg(&message); err != nil {
			return err
		}
	}
}

// ReadOnly is a Refuse for a server that lets clients look and not touch: it
// refuses all but what reads, as Temporal refuses what a role does not allow.
func ReadOnly(method string) error {
	for _, reading := range []string{"Get", "List", "Describe", "Query", "Count", "Poll", "Check"} {
		if strings.HasPrefix(method, reading) {
			return nil
		}
	}
	return status.Error(codes.PermissionDenied, "Request unauthorized.")
}

// raw is the codec of messages that are not looked into.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) {
	message, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("a raw message is a *[]byte, not a %T", v)
	}
	return *message, nil
}

func (raw) Unmarshal(data []byte, v any) error {
	message, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("a raw message is a *[]byte, not a %T", v)
	}
	*message = append([]byte(nil), data...)
	return nil
}

// Name is that of Temporal's own messages: the bytes are the same.
func (raw) Name() string { return "proto" }
