package hobolink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// DefaultBaseURL is the vendor's server.
const DefaultBaseURL = "https://api.licor.cloud"

// Config sets up a [Client].
type Config struct {
	// BaseURL is the server's URL, without /v1/data. Defaults to [DefaultBaseURL].
	BaseURL string
	// HTTPClient makes the requests. Defaults to one with a pool of its own that
	// follows no redirects.
	HTTPClient *http.Client
	// Ledger is where all processes that use the token note their requests, so that
	// together they keep to its rate. Without one, only the clients of this process do.
	Ledger Ledger
	// MaxBytes bounds an answer; one that is larger counts as truncated. Defaults
	// to [MaxBytes].
	MaxBytes int64
	// RetryWait is the first wait before a failed request is tried again; it
	// doubles from try to try. Defaults to 1 s.
	RetryWait time.Duration
	// Timeout is the longest that one request may take, answer included.
	// Defaults to 3 minutes.
	Timeout time.Duration
	// Token is the API token. Required.
	Token string
	// Tries is how often a request is made before its error is returned.
	// Defaults to 4.
	Tries int
}

// Client reads from one account. It is safe for concurrent use.
type Client struct {
	config  Config
	address string // scheme and host
	limiter *limiter
	shared  *sharedWindow // nil without a ledger
}

// New makes a client. It reports a base URL or a token that cannot be used.
func New(config Config) (*Client, error) {
	if config.BaseURL == "" {
		config.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(config.BaseURL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" || base.User != nil || base.RawQuery != "" {
		return nil, job.Fail(errclass.InvalidSpec, "HOBOlink base URL %q is not of the form https://HOST", redactURL(config.BaseURL))
	}
	if config.Token == "" || strings.ContainsFunc(config.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, job.Fail(errclass.Secret, "the HOBOlink token for %s is empty, or holds characters that a token cannot have", base.Host)
	}
	if config.HTTPClient == nil {
		config.HTTPClient = defaultHTTPClient
	}
	if config.MaxBytes <= 0 {
		config.MaxBytes = MaxBytes
	}
	config.HTTPClient = answers.Client(config.HTTPClient, answers.Limits{Bytes: config.MaxBytes, Silence: silence})
	if config.RetryWait <= 0 {
		config.RetryWait = time.Second
	}
	if config.Timeout <= 0 {
		config.Timeout = 3 * time.Minute
	}
	if config.Tries <= 0 {
		config.Tries = 4
	}
	config.BaseURL = strings.TrimSuffix(config.BaseURL, "/")
	c := &Client{
		config:  config,
		address: base.Scheme + "://" + base.Host,
		limiter: limiterOf(base.Host, config.Token),
	}
	if config.Ledger != nil {
		c.shared = &sharedWindow{ledger: config.Ledger, key: ledgerKey(base.Host, config.Token)}
	}
	return c, nil
}

// defaultHTTPClient is shared, so that connections are.
var defaultHTTPClient = answers.Client(nil, answers.Limits{})

// silence is the longest pause in the middle of an answer.
const silence = 30 * time.Second

// Address is the server's scheme and host, for messages.
func (c *Client) Address() string { return c.address }

// Frame is a span of time of one logger. Both ends are included; fractions of a
// second are cut off.
type Frame struct {
	Logger     string
	Start, End time.Time
}

// String writes "logger 21234001 from 2026-03-04 12:00:00 to 2026-03-04 13:00:00".
func (f Frame) String() string {
	return fmt.Sprintf("logger %s from %s to %s", f.Logger, f.Start.UTC().Format(time.DateTime), f.End.UTC().Format(time.DateTime))
}

// Data reads what a logger measured in a time frame. It waits for its turn under
// the rate limit, and tries again what may pass: a busy server, a refused
// request rate, a lost connection. The errors that are left over have a class of
// this package; they are final where no retry helps.
func (c *Client) Data(ctx context.Context, frame Frame) (Answer, error) {
	for try := 1; ; try++ {
		answer, err := c.dataOnce(ctx, frame)
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
		var failure *job.Failure
		if !errors.As(err, &failure) || failure.Kind.Final() || try == c.config.Tries {
			return Answer{}, err
		}
		// A refused rate is waited for by the limiter, together with all other
		// clients of the token.
		if failure.Class != errclass.HobolinkRateLimit {
			if err := pause(ctx, max(failure.RetryAfter, c.backoff(try))); err != nil {
				return Answer{}, err
			}
		}
	}
}

// backoff doubles from try to try, up to 30 s, with half of it left to chance.
func (c *Client) backoff(try int) time.Duration {
	wait := min(c.config.RetryWait<<(try-1), 30*time.Second)
	return wait/2 + rand.N(wait/2+1)
}

func (c *Client) dataOnce(ctx context.Context, frame Frame) (_ Answer, err error) {
	ctx, end := tracing.Call(ctx, "HOBOlink GET /v1/data", "server.address", c.address)
	defer func() { end(err) }()
	if err := c.limiter.wait(ctx, c.shared); err != nil {
		return Answer{}, err
	}
	var headers http.Header
	defer func() { c.limiter.done(headers) }()

	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	query := url.Values{
		"loggers":         {frame.Logger},
		"start_date_time": {frame.Start.UTC().Format(time.DateTime)},
		"end_date_time":   {frame.End.UTC().Format(time.DateTime)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.BaseURL+"/v1/data?"+query.Encode(), nil)
	if err != nil {
		return Answer{}, job.Fail(errclass.HobolinkRequest, "hobolink %s: %s: the request cannot be made", c.address, frame)
	}
	request.Header.Set("Authorization", "Bearer "+c.config.Token)
	request.Header.Set("Accept", "application/json")

	response, err := c.config.HTTPClient.Do(request)
	metrics.HOBORequests.Inc(statusOf(response))
	if err != nil {
		return Answer{}, c.unreachable(frame, err)
	}
	defer func() { _ = response.Body.Close() }()
	headers = response.Header
	if response.StatusCode != http.StatusOK {
		failure := c.refused(frame, response)
		if response.StatusCode == http.StatusTooManyRequests {
			c.limiter.block(ctx, retryAfter(response.Header), c.shared)
		}
		return Answer{}, failure
	}
	answer, err := DecodeAnswer(response.Body)
	switch {
	case errors.Is(err, answers.ErrTooLarge):
		return Answer{Truncated: true}, nil
	case errors.Is(err, errAnswer):
		return Answer{}, job.Fail(errclass.HobolinkAnswer, "hobolink %s: %s: %w", c.address, frame, err)
	case err != nil:
		return Answer{}, c.unreachable(frame, err)
	}
	return answer, nil
}

// statusOf is the status of an answer for metrics, none if there is none.
func statusOf(response *http.Response) string {
	if response == nil {
		return "none"
	}
	return strconv.Itoa(response.StatusCode)
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func redactURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	return parsed.Redacted()
}
