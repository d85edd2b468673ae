package influx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/internal/redact"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
	"github.com/dendrascience/dendra-jobs/job"
)

// Config sets up a [Writer].
type Config struct {
	// Gzip compresses what is written; see [Local].
	Gzip bool
	// HTTPClient makes the requests. Defaults to one with a pool of its own that
	// follows no redirects.
	HTTPClient *http.Client
	// Password goes with Username.
	Password string
	// Timeout is the longest that one request may take. Defaults to 10 s.
	Timeout time.Duration
	// URL is the server's, http://127.0.0.1:8086. Required.
	URL string
	// Username for basic authentication. Defaults to none.
	Username string
}

// redact keeps the password out of what the server says.
func (c Config) redact(text string) string {
	return redact.Of(c.Password).Text(text)
}

// Writer writes to one server. It is safe for concurrent use.
type Writer struct {
	config  Config
	base    string // the URL without credentials or a slash at its end
	address string
}

// NewWriter makes a writer. It reports a URL that is none.
func NewWriter(config Config) (*Writer, error) {
	base, err := parseURL(config.URL)
	if err != nil {
		return nil, err
	}
	config.HTTPClient = config.http()
	if config.Timeout <= 0 {
		config.Timeout = 10 * time.Second
	}
	return &Writer{config: config, base: base, address: base}, nil
}

// parseURL checks a server's URL, and takes the slash from its end.
func parseURL(text string) (string, error) {
	parsed, err := url.Parse(text)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" || parsed.RawQuery != "" {
		return "", errors.New("the InfluxDB URL is not of the form http://HOST:PORT")
	}
	if parsed.User != nil {
		return "", fmt.Errorf("the InfluxDB URL of %s holds credentials: give username and password apart from it", parsed.Host)
	}
	return strings.TrimSuffix(text, "/"), nil
}

// Address is the server's URL, for messages.
func (w *Writer) Address() string { return w.address }

// Target is where lines of a write belong.
type Target struct {
	Database        string
	RetentionPolicy string // "" is the default policy of the database
	Precision       Precision
}

// Write writes lines of line protocol. Its error is an [*Error]; writing the same
// lines again is harmless.
func (w *Writer) Write(ctx context.Context, target Target, lines []byte) error {
	if err := target.Precision.Check(); err != nil {
		return &Error{Kind: KindConfig, Address: w.address, Text: err.Error()}
	}
	query := url.Values{"db": {target.Database}, "precision": {string(target.Precision)}}
	if target.RetentionPolicy != "" {
		query.Set("rp", target.RetentionPolicy)
	}
	header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	if w.config.Gzip {
		packed := packers.Get().(*packer) //nolint:errcheck,forcetypeassert // The pool holds nothing else.
		defer packers.Put(packed)
		lines = packed.pack(lines)
		header.Set("Content-Encoding", "gzip")
	}
	_, err := w.do(ctx, http.MethodPost, "/write?"+query.Encode(), header, lines)
	var failed *Error
	if target.RetentionPolicy == "" && errors.As(err, &failed) && failed.Kind == KindName {
		failed.Kind = KindConfig // it is the database that lacks a default policy
	}
	return err
}

// madeByLoad is a retention policy without data that says of its database that a load made
// it. InfluxDB has no other place for that, and it goes with the database.
const madeByLoad = "made_by_dendra_jobs"

// createTimeout is how long a server may take to create a database: it syncs its disk twice.
const createTimeout = time.Minute

// CreateDatabase creates a database unless there is one of that name, which is
// left as it is. The new one keeps its data for ever, in shards of a year: sensor
// data is sparse, and comes in from years ago. It is marked for [MadeByLoad].
func (w *Writer) CreateDatabase(ctx context.Context, name string) error {
	create := `CREATE DATABASE ` + QuoteIdentifier(name) + ` WITH DURATION INF SHARD DURATION 52w NAME "autogen"`
	mark := `CREATE RETENTION POLICY ` + QuoteIdentifier(madeByLoad) + ` ON ` + QuoteIdentifier(name) + ` DURATION INF REPLICATION 1`
	// A database whose mark the caller did not wait for would be nobody's: the next write finds it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	made, err := w.create(ctx, name, create+"; "+mark)
	if failed, ok := errors.AsType[*Error](err); made || (ok && failed.Status != http.StatusOK && failed.Status != 0) {
		return err
	}
	// Of two statements in one request the server does not tell why the first fails. If there was no
	// whole answer (status 0), it may have done the first alone. Each may be repeated.
	made, err = w.create(ctx, name, create)
	if err != nil || !made {
		return err
	}
	_, err = w.create(ctx, name, mark)
	return err
}

// create reports whether a statement about a database was done: not if there is another one of
// that name.
func (w *Writer) create(ctx context.Context, database, statement string) (done bool, err error) {
	body := url.Values{"q": {statement}}.Encode()
	patient := *w
	patient.config.Timeout = createTimeout
	answer, err := patient.do(ctx, http.MethodPost, "/query", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(body))
	if err != nil {
		return false, err
	}
	// A statement that fails is a 200 with an error inside.
	var results struct {
		Results []struct {
			Error string `json:"error"`
		} `json:"results"`
	}
	if err := json.Unmarshal(answer, &results); err != nil {
		return false, &Error{Kind: KindConfig, Address: w.address, Text: "create database " + strconv.Quote(database) + ": the answer is not that of InfluxDB"}
	}
	for _, result := range results.Results {
		// A database of this name with another policy is left as it is.
		if strings.Contains(result.Error, "already exists") || strings.Contains(result.Error, "conflicts with an existing policy") {
			return false, nil
		}
		if result.Error == "" {
			continue
		}
		kind := KindConfig
		if result.Error == "invalid name" || result.Error == "name too long" {
			kind = KindName
		}
		return false, &Error{Kind: kind, Address: w.address, Status: http.StatusOK, Text: "create database " + strconv.Quote(database) + ": " + result.Error}
	}
	return true, nil
}

// Ping asks whether the server is up.
func (w *Writer) Ping(ctx context.Context) error {
	_, err := w.do(ctx, http.MethodGet, "/ping", nil, nil)
	return err
}

// maxText bounds a message of the server, which may repeat all that it was sent.
const maxText = 2000

func (w *Writer) do(ctx context.Context, method, path string, header http.Header, body []byte) (_ []byte, err error) {
	operation, _, _ := strings.Cut(path, "?")
	ctx, end := tracing.Call(ctx, "InfluxDB "+method+" "+operation, "db.system", "influxdb", "server.address", w.address)
	defer func() { end(err) }()
	attempt, cancel := context.WithTimeout(answers.Allow(ctx, 1<<20), w.config.Timeout)
	var sending sync.WaitGroup
	// A server may answer before it has read all: the caller gets its buffer back
	// only when nobody reads it any more.
	defer sending.Wait()
	defer cancel()
	request, err := http.NewRequestWithContext(attempt, method, w.base+path, nil)
	if err != nil {
		return nil, &Error{Kind: KindConfig, Address: w.address, Text: "the request cannot be made"}
	}
	if len(body) > 0 {
		request.ContentLength = int64(len(body))
		request.GetBody = func() (io.ReadCloser, error) {
			sending.Add(1)
			return &lentBody{Reader: bytes.NewReader(body), back: sync.OnceFunc(sending.Done)}, nil
		}
		request.Body, _ = request.GetBody() // which has no error
	}
	if header != nil {
		request.Header = header
	}
	if w.config.Username != "" {
		request.SetBasicAuth(w.config.Username, w.config.Password)
	}
	response, err := w.config.HTTPClient.Do(request)
	if err != nil {
		return nil, w.unreachable(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, w.unreachable(ctx, err)
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNoContent {
		return answer, nil
	}
	text := errorText(response, answer)
	return nil, &Error{
		Kind:       kindOf(response.StatusCode, text),
		Address:    w.address,
		Status:     response.StatusCode,
		Text:       job.Cut(w.config.redact(text), maxText),
		RetryAfter: retryAfter(response.Header),
		full:       text,
	}
}

// lentBody is a body that tells when it is not read any more.
type lentBody struct {
	*bytes.Reader
	back func()
}

func (b *lentBody) Close() error {
	b.back()
	return nil
}

// unreachable makes the error of a request without an answer. When the caller's
// own context ended, that is the error.
func (w *Writer) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("no answer within %s", w.config.Timeout)
	}
	return &Error{Kind: KindTransient, Address: w.address, Text: text}
}

// errorText is the server's message: {"error":"…"} in the body, or a header.
func errorText(response *http.Response, answer []byte) string {
	var body struct {
		Error string `json:"error"`
	}
	text := response.Header.Get("X-Influxdb-Error")
	if json.Unmarshal(answer, &body) == nil && body.Error != "" {
		text = body.Error
	}
	if text == "" {
		text = "no message"
	}
	return strings.TrimSpace(text)
}

func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, time.Hour)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), 0), time.Hour)
	}
	return 0
}

// QuoteIdentifier quotes a name for a query.
func QuoteIdentifier(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}
