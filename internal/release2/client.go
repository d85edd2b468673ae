package release2

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// pageSize is how many documents a request lists, if the server allows it.
const pageSize = 1000

// maxAnswer is the most that an answer may have: a page of documents of 64 KiB each.
const maxAnswer = pageSize * 64 << 10

// Client calls one API. It is safe for concurrent use.
type Client struct {
	config  Config
	base    string
	address string // scheme and host, for messages
}

// New makes a client. It does not connect yet.
func New(config Config) (*Client, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.HTTPClient == nil {
		config.HTTPClient = platform.HTTPClient
	}
	config.HTTPClient = answers.Client(config.HTTPClient, answers.Limits{Bytes: maxAnswer})
	if config.Timeout <= 0 {
		config.Timeout = 30 * time.Second
	}
	base, err := url.Parse(config.URL)
	if err != nil {
		return nil, err
	}
	return &Client{
		config:  config,
		base:    strings.TrimSuffix(config.URL, "/"),
		address: base.Scheme + "://" + base.Host,
	}, nil
}

// List gives the documents of a service in the order of their ids. A document that is
// created or deleted meanwhile may hide another one, or show it twice.
func (c *Client) List(ctx context.Context, service string) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		for skip := 0; ; {
			var page struct {
				Total int        `json:"total"`
				Data  []Document `json:"data"`
			}
			query := url.Values{"$sort[_id]": {"1"}, "$limit": {strconv.Itoa(pageSize)}, "$skip": {strconv.Itoa(skip)}}
			if err := c.call(ctx, http.MethodGet, service, "", query, nil, &page); err != nil {
				yield(nil, err)
				return
			}
			for _, d := range page.Data {
				if !yield(d, nil) {
					return
				}
			}
			if skip += len(page.Data); skip >= page.Total || len(page.Data) == 0 {
				return
			}
		}
	}
}

// Check finds out whether there is such a service.
func (c *Client) Check(ctx context.Context, service string) error {
	var page struct {
		Data []Document `json:"data"`
	}
	if err := c.call(ctx, http.MethodGet, service, "", url.Values{"$limit": {"1"}}, nil, &page); err != nil {
		return err
	}
	if page.Data == nil {
		return job.Fail(errclass.Release2Unreachable, "release 2 at %s: GET %s: the answer is not a list of documents; check %s", c.address, service, EnvURL)
	}
	return nil
}

// Get reads a document. The error is [ErrNotFound] if there is none.
func (c *Client) Get(ctx context.Context, service, id string) (Document, error) {
	var d Document
	err := c.call(ctx, http.MethodGet, service, id, nil, nil, &d)
	return d, err
}

// Create makes a document. The error is [ErrExists] if there is one with its id.
func (c *Client) Create(ctx context.Context, service string, d Document) (Document, error) {
	var created Document
	err := c.call(ctx, http.MethodPost, service, "", nil, d, &created)
	return created, err
}

// Patch changes a document that still has a version_id, and returns it as it is then.
// The error is [ErrNotFound] if it has another one by now, or is gone.
func (c *Client) Patch(ctx context.Context, service, id, versionID string, p Patch) (Document, error) {
	var patched Document
	err := c.call(ctx, http.MethodPatch, service, id, versionQuery(versionID), p.body(), &patched)
	return patched, err
}

func (c *Client) call(ctx context.Context, method, service, id string, query url.Values, body, answer any) error {
	what := method + " " + service
	address := c.base + "/" + service
	if id != "" {
		what += "/" + id
		address += "/" + url.PathEscape(id)
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	attempt, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("release 2 at %s: %s: encode the body: %w", c.address, what, err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(attempt, method, address, content)
	if err != nil {
		return fmt.Errorf("release 2 at %s: %s: the request cannot be made", c.address, what)
	}
	request.Header.Set("Authorization", "Bearer "+c.config.Token)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.config.HTTPClient.Do(request)
	if err != nil {
		return c.unreachable(ctx, what, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return c.refused(what, id != "", response)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return c.unreachable(ctx, what, fmt.Errorf("the answer cannot be read: %w", err))
	}
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be used again
	return nil
}

// unreachable makes the error of a request without an answer. When the caller's own
// context ended, that is the error.
func (c *Client) unreachable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return job.Fail(errclass.Release2Unreachable, "release 2 at %s: %s: no answer within %s", c.address, what, c.config.Timeout)
	}
	return job.Fail(errclass.Release2Unreachable, "release 2 at %s: %s: %w", c.address, what, answers.WithoutURL(err))
}
