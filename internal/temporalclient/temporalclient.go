// Package temporalclient connects to Temporal with the settings that the
// Temporal CLI uses: flags, then TEMPORAL_* variables, then the profile file.
package temporalclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dendrascience/dendra-jobs/internal/localnet"
	"github.com/dendrascience/dendra-jobs/internal/payloadcodec"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
)

// Settings override what the environment and the profile file say. Empty fields
// do not. Address defaults to 127.0.0.1:7233 and Namespace to "default".
type Settings struct {
	Address   string
	Namespace string
	Profile   string
	Identity  string
	Logger    *slog.Logger
	// Metrics is what the SDK counts with. Defaults to nothing.
	Metrics client.MetricsHandler
	// Intercept, if set, sees every call to Temporal, with payloads as they are before encryption.
	Intercept grpc.UnaryClientInterceptor
	// PayloadKeys is the file of the keys that encrypt payloads: see [payloadcodec.Read].
	// Defaults to what DENDRA_PAYLOAD_KEYS names. Without a file nothing is encrypted.
	PayloadKeys string
}

// reconnects has a server that is back found within seconds. The SDK waits up to ten
// between two tries, and calls fail meanwhile.
var reconnects = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 20 * time.Second,
}

// DefaultAddress is where Temporal is looked for if nothing names it.
const DefaultAddress = "127.0.0.1:7233"

// AddressGiven reports whether something names the server: the settings, the environment or
// the profile file.
func AddressGiven(s Settings) bool {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: s.Profile})
	return s.Address != "" || err == nil && options.HostPort != ""
}

// Options loads the client options.
func Options(s Settings) (client.Options, error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: s.Profile})
	switch {
	case err != nil && s.Profile != "" && strings.Contains(err.Error(), "unable to find profile"):
		return client.Options{}, fmt.Errorf("the configuration file of the Temporal CLI has no profile %q", s.Profile)
	case err != nil:
		return client.Options{}, fmt.Errorf("read the Temporal settings: %w", err)
	}
	if s.Address != "" {
		options.HostPort = s.Address
	}
	if options.HostPort == "" {
		if testing.Testing() {
			return client.Options{}, errors.New("a test has to name its Temporal server: there may be one at work at the usual address")
		}
		options.HostPort = DefaultAddress
	}
	if s.Namespace != "" {
		options.Namespace = s.Namespace
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithConnectParams(reconnects))
	options.Identity = s.Identity
	if s.Logger != nil {
		options.Logger = stopsSilently{log.NewStructuredLogger(s.Logger)}
	}
	options.MetricsHandler = s.Metrics
	if tracing.On() {
		traced, err := TracingInterceptor()
		if err != nil {
			return client.Options{}, err
		}
		options.Interceptors = append(options.Interceptors, traced)
	}
	if s.Intercept != nil {
		options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(s.Intercept))
	}
	keys, err := PayloadKeys(s)
	if err != nil {
		return client.Options{}, err
	}
	encrypts, err := keys.Interceptor()
	if err != nil {
		return client.Options{}, err
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(encrypts))
	return options, nil
}

// PayloadKeys reads the keys that encrypt payloads.
func PayloadKeys(s Settings) (payloadcodec.Keys, error) {
	return payloadcodec.Read(cmp.Or(s.PayloadKeys, os.Getenv(payloadcodec.EnvKeys)))
}

// dialTimeout bounds the time until a server has answered the first calls.
const dialTimeout = 10 * time.Second

// Dial connects, and reports in one sentence why it could not, or why jobs cannot be in
// the namespace. The caller closes the client.
func Dial(ctx context.Context, s Settings) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, options, err := DialServer(ctx, s)
	if err != nil {
		return nil, err
	}
	n, err := DescribeNamespace(ctx, c, options.Namespace)
	if err != nil {
		err = ExplainCall(options, err)
	} else {
		err = n.check(options.HostPort)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// DialServer is Dial without a look at the namespace, which may not be there yet.
func DialServer(ctx context.Context, s Settings) (client.Client, client.Options, error) {
	options, err := Options(s)
	if err != nil {
		return nil, options, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := Connect(ctx, options)
	if err != nil {
		return nil, options, err
	}
	return c, options, nil
}

// Connect connects to the server of options, and reports in one sentence why it could not. Calls
// are compressed unless the server is near, where that costs more than it saves.
func Connect(ctx context.Context, options client.Options) (client.Client, error) {
	host, _, err := net.SplitHostPort(strings.TrimPrefix(options.HostPort, "dns:///"))
	if err == nil && localnet.Private(ctx, host) {
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, Explain(options, err)
	}
	return c, nil
}

// ExplainCall turns an error of a call into one sentence that names the address. The
// server has answered other calls before: what does not answer may be a part of it.
func ExplainCall(options client.Options, err error) error {
	var exhausted *serviceerror.ResourceExhausted
	var unavailable *serviceerror.Unavailable
	switch {
	case errors.As(err, &exhausted) && exhausted.Cause == enumspb.RESOURCE_EXHAUSTED_CAUSE_PERSISTENCE_LIMIT:
		return fmt.Errorf("the database of temporal at %s is overloaded (%s)", options.HostPort, exhausted.Message)
	case errors.As(err, &unavailable) && ofDatabase(unavailable.Message):
		return fmt.Errorf("the database of temporal at %s does not answer it (%s)", options.HostPort, unavailable.Message)
	case unreachable(err):
		return fmt.Errorf("temporal at %s does not answer this call, though it answered others: it, one of its hosts, or its database is away (%s)",
			options.HostPort, reason(err))
	}
	return Explain(options, err)
}

// ofDatabase knows the messages of a server whose database does not answer it.
func ofDatabase(message string) bool {
	for _, part := range []string{" operation failed", "failed. Error", "sql: ", "database", "gocql: ", "persistence"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}

// Explain turns an error of connecting into one sentence that names the address.
func Explain(options client.Options, err error) error {
	var notFound *serviceerror.NamespaceNotFound
	var invalid *serviceerror.InvalidArgument
	var denied *serviceerror.PermissionDenied
	var address *url.Error
	switch {
	case errors.As(err, &address):
		return fmt.Errorf("%q is not the address of a server: write HOST:PORT", options.HostPort)
	case errors.As(err, &notFound):
		return fmt.Errorf("temporal at %s has no namespace %q: starter setup makes it", options.HostPort, options.Namespace)
	case errors.As(err, &invalid) && strings.Contains(invalid.Message, "Namespace"),
		strings.Contains(err.Error(), `header key "temporal-namespace"`): // One that there cannot be.
		return fmt.Errorf("temporal at %s has no namespace %q", options.HostPort, options.Namespace)
	case errors.As(err, &denied):
		return fmt.Errorf("temporal at %s refuses access to namespace %q", options.HostPort, options.Namespace)
	case unreachable(err):
		return fmt.Errorf("temporal at %s cannot be reached; is it running there? (%s)", options.HostPort, reason(err))
	}
	return fmt.Errorf("temporal at %s: %w", options.HostPort, err)
}

func unreachable(err error) bool {
	var unavailable *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	return errors.As(err, &unavailable) || errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded) ||
		status.Code(err) == codes.Unavailable || status.Code(err) == codes.DeadlineExceeded
}

// reason says why a server cannot be reached, without the layers of gRPC.
func reason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "no children to pick from"), strings.Contains(text, "produced zero addresses"):
		return "no server is known by that address"
	case strings.Contains(text, context.DeadlineExceeded.Error()):
		return "no answer in time"
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		return "it does not speak TLS"
	case brokenOff(text): // By a balancer without a server behind it, or a server that wants TLS.
		return "it breaks connections off before it answers: the servers behind it are away, or it wants TLS"
	case strings.Contains(text, "error reading server preface"):
		return "it does not speak gRPC; does it want TLS?"
	}
	if _, cause, found := strings.Cut(text, `desc = "transport: `); found {
		text = strings.TrimSuffix(cause, `"`)
	}
	for _, layer := range []string{"Error while dialing: ", "authentication handshake failed: "} {
		text = strings.TrimPrefix(text, layer)
	}
	return text
}

// brokenOff reports whether the other side has closed the connection without a word.
func brokenOff(text string) bool {
	return strings.Contains(text, "preface: EOF") || strings.Contains(text, "connection reset by peer") || strings.Contains(text, "broken pipe")
}
