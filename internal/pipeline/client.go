package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/singleflight"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// EnvURL names the environment variable with the URL of the NATS server.
const EnvURL = "DENDRA_NATS_URL"

// URLFromEnv is the value of [EnvURL], read through a function like os.Getenv, or
// nats://127.0.0.1:4222.
func URLFromEnv(getenv func(string) string) string {
	if value := getenv(EnvURL); value != "" {
		return value
	}
	return nats.DefaultURL
}

// Servers from this version on can reset a consumer, see [Consumer.Rewind].
const oldestMajor, oldestMinor = 2, 14

// OldestServer is the first release of NATS that this package works with.
var OldestServer = fmt.Sprintf("%d.%d", oldestMajor, oldestMinor)

// readyWait is how long [Client.Ready] waits for a connection.
const readyWait = 5 * time.Second

// Client is a connection to the data plane. It reconnects by itself for as long
// as it is open, and is safe for concurrent use.
type Client struct {
	address string // without credentials
	url     string
	wrong   error // with the URL

	dialing sync.Mutex
	dialed  atomic.Bool // nc, js and streams are set
	nc      *nats.Conn
	js      jetstream.JetStream

	settings  func() (StreamSettings, error)
	login     func() ([]nats.Option, error)
	streams   StreamSettings // what settings gave
	ensuring  singleflight.Group
	ensured   atomic.Bool
	lastError atomic.Value // string
	rates     Rates
}

// Option is a setting of [Connect].
type Option func(*Client)

// WithStreams says how streams and buckets are made that are missing. Defaults to
// the zero [StreamSettings].
func WithStreams(settings StreamSettings) Option {
	return func(c *Client) { c.settings = func() (StreamSettings, error) { return settings, nil } }
}

// Connect makes a client of the NATS server at a URL, or at any of several with
// commas between them. It returns after the first attempt; a server that cannot
// be reached is tried again in the background and is not an error here, so that
// a worker starts in any order with its servers. See [Client.Ready].
func Connect(ctx context.Context, serverURL string, options ...Option) (*Client, error) {
	c := Late(serverURL, options...)
	if err := c.Dial(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Late makes a client that connects when it is used first. What is wrong with the URL is
// an error of that use.
func Late(serverURL string, options ...Option) *Client {
	c := &Client{
		url:      serverURL,
		settings: func() (StreamSettings, error) { return StreamSettings{}, nil },
		login:    func() ([]nats.Option, error) { return nil, nil },
	}
	for _, set := range options {
		set(c)
	}
	c.rates.client = c
	addresses := strings.Split(serverURL, ",")
	for i, text := range addresses {
		parsed, err := url.Parse(strings.TrimSpace(text))
		if err != nil || parsed.Host == "" {
			// A parse error would repeat the URL with its password.
			c.wrong = job.Fail(errclass.InvalidSpec, "the NATS URL (%s) is not of the form nats://HOST:PORT", EnvURL)
			return c
		}
		if !slices.Contains([]string{"nats", "tls", "ws", "wss"}, parsed.Scheme) {
			c.wrong = job.Fail(errclass.InvalidSpec, "the NATS URL %s begins with %s://: NATS is reached by nats://, tls://, ws:// or wss://",
				withoutCredentials(parsed), parsed.Scheme)
			return c
		}
		addresses[i] = withoutCredentials(parsed)
	}
	c.address = strings.Join(addresses, ",")
	return c
}

// Dial connects a client of [Late], as [Connect] does, unless it is connected.
func (c *Client) Dial(ctx context.Context) error {
	if c.dialed.Load() {
		return nil
	}
	c.dialing.Lock()
	defer c.dialing.Unlock()
	switch {
	case c.dialed.Load():
		return nil
	case c.wrong != nil:
		return c.wrong
	}
	streams, err := c.settings()
	if err != nil {
		return err
	}
	login, err := c.login()
	if err != nil {
		return err
	}
	nc, err := nats.Connect(c.url, append(login,
		nats.Name("dendra-jobs"),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		// A log-in that is refused may be taken later: passwords are changed in two places.
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(500*time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, time.Second),
		// What is published without a connection must fail at once instead of
		// waiting in memory: the caller keeps it, and knows that it does.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(20*time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if c.note(err) { // a log-in is refused with every try
				slog.Warn("NATS reports an error", "nats", c.address, "error", err)
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.note(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { c.note(err) }),
	)...)
	if err != nil {
		return job.Fail(errclass.PipelineUnreachable, "%s: %w", c.address, err)
	}
	js, err := jetstream.New(nc,
		jetstream.WithPublishAsyncMaxPending(4*publishWindow), // a few publishers at once
		jetstream.WithPublishAsyncTimeout(publishTimeout),
		jetstream.WithDefaultTimeout(10*time.Second),
	)
	if err != nil {
		nc.Close()
		return fmt.Errorf("%s: %w", c.address, err)
	}
	if ctx.Err() != nil {
		nc.Close()
		return ctx.Err()
	}
	c.nc, c.js, c.streams = nc, js, streams
	c.dialed.Store(true)
	return nil
}

// withoutCredentials is a URL as it may be shown. In a URL of NATS, what stands in
// the place of the user is a token if there is no password.
func withoutCredentials(server *url.URL) string {
	shown := *server
	if password, _ := server.User.Password(); server.User != nil && password == "" {
		shown.User = url.User("hidden")
	}
	return shown.Redacted()
}

// Address is the URL of the server without credentials.
func (c *Client) Address() string { return c.address }

// JetStream gives the connection's JetStream, for what this package does not do. A client
// of [Late] has one after [Client.Ready] or [Client.Reach].
func (c *Client) JetStream() jetstream.JetStream { return c.js }

// Close drains the connection: what is under way is finished first.
func (c *Client) Close() {
	if !c.dialed.Load() {
		return
	}
	if err := c.nc.Drain(); err != nil {
		c.nc.Close()
	}
}

// Ping has the server answer, and says how long that took.
func (c *Client) Ping(ctx context.Context) (time.Duration, error) {
	if err := c.waitConnected(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := c.nc.FlushWithContext(ctx); err != nil {
		return 0, c.failed(ctx, "ping", err)
	}
	return time.Since(begin), nil
}

// Alive is an error when the connection is closed for good, as it is after an error of
// the server that nats.go does not know. Only a new client helps then.
func (c *Client) Alive() error {
	if c.dialed.Load() && c.nc.IsClosed() {
		return c.closed()
	}
	return nil
}

func (c *Client) closed() error {
	if err := c.nc.LastError(); err != nil {
		return job.Fail(errclass.PipelineUnreachable, "%s: the connection was closed: %w", c.address, err)
	}
	return job.Fail(errclass.PipelineUnreachable, "%s: the connection was closed", c.address)
}

// Ready waits until the server is reached, for at most five seconds, and makes
// sure once, and after one was missed, that the streams exist. Every
// other method does this first. Its error is of class [errclass.PipelineUnreachable], or of class
// [errclass.NATSTooOld], and names the address.
func (c *Client) Ready(ctx context.Context) error {
	if err := c.Reach(ctx); err != nil {
		return err
	}
	if c.ensured.Load() {
		return nil
	}
	// One asks for all who wait.
	done := c.ensuring.DoChan("", func() (any, error) {
		err := Ensure(context.WithoutCancel(ctx), c.js, c.streams)
		if err == nil {
			c.ensured.Store(true)
		}
		return nil, err
	})
	select {
	case result := <-done:
		if result.Err != nil {
			return c.failed(ctx, "set up streams", result.Err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reach is Ready without the streams: it waits for a connection, and looks whether its server
// is new enough.
func (c *Client) Reach(ctx context.Context) error {
	if err := c.waitConnected(ctx); err != nil {
		return err
	}
	return c.checkVersion()
}

// checkVersion looks at every connection's server: a cluster may be half way through an
// upgrade. A version that is none of NATS's own passes.
func (c *Client) checkVersion() error {
	version := c.nc.ConnectedServerVersion()
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d.", &major, &minor)
	if err == nil && (major < oldestMajor || (major == oldestMajor && minor < oldestMinor)) {
		return job.FailAfter(errclass.NATSTooOld, time.Minute,
			"%s has version %s, which cannot reset a consumer: it has to be %s or newer", c.address, version, OldestServer)
	}
	return nil
}

func (c *Client) waitConnected(ctx context.Context) error {
	if err := c.Dial(ctx); err != nil {
		return err
	}
	if c.nc.IsConnected() {
		return nil
	}
	connected := c.nc.StatusChanged(nats.CONNECTED)
	defer c.nc.RemoveStatusListener(connected)
	timeout := time.NewTimer(readyWait)
	defer timeout.Stop()
	for !c.nc.IsConnected() {
		if c.nc.IsClosed() {
			return c.closed()
		}
		select {
		case <-connected:
		case <-timeout.C:
			reason, _ := c.lastError.Load().(string)
			if reason == "" {
				reason = "no connection"
			}
			return job.Fail(errclass.PipelineUnreachable, "%s cannot be reached: %s", c.address, reason)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// note keeps an error for who waits for a connection, and reports whether it is another
// one than before.
func (c *Client) note(err error) bool {
	return err != nil && c.lastError.Swap(err.Error()) != err.Error()
}

// failed turns an error of the NATS client into one with a class and the address.
func (c *Client) failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failure *job.Failure
	if errors.As(err, &failure) {
		return err
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return c.tooLarge(what)
	}
	for _, gone := range []error{
		jetstream.ErrStreamNotFound, jetstream.ErrBucketNotFound, jetstream.ErrNoStreamResponse, nats.ErrNoResponders,
	} {
		if errors.Is(err, gone) {
			c.ensured.Store(false) // someone removed it: whoever tries again makes it again
		}
	}
	return job.Fail(errclass.PipelineUnreachable, "%s: %s: %w", c.address, what, err)
}

func (c *Client) tooLarge(what string) error {
	return job.Fail(errclass.MessageTooLarge, "%s: %s: the message is larger than the server's limit of %d bytes",
		c.address, what, c.nc.MaxPayload())
}
