package influx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	client "github.com/influxdata/influxdb1-client/v2"

	"github.com/dendrascience/dendra-jobs/internal/answers"
)

// answerLimits are those of an answer to a write or a query. One to SHOW FIELD KEYS has about 25 bytes
// for each field.
var answerLimits = answers.Limits{Bytes: 256 << 20, Silence: 30 * time.Second}

// defaultHTTPClient is shared, so that connections are.
var defaultHTTPClient = answers.Client(nil, answerLimits)

// ask sends a query, and calls take for each part of the answer. Numbers are json.Number. The
// whole answer is one part unless the query says chunked.
func (c Config) ask(ctx context.Context, base string, query url.Values, take func(*client.Response) error) error {
	return c.send(ctx, base, query, func(body io.Reader) error {
		parts := json.NewDecoder(body)
		parts.UseNumber()
		for {
			var part client.Response
			err := parts.Decode(&part)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return fmt.Errorf("the answer cannot be read: %w", err)
			case part.Error() != nil:
				return part.Error()
			}
			if err := take(&part); err != nil {
				return err
			}
		}
	})
}

// send sends a query, and has its answer read, which is JSON.
func (c Config) send(ctx context.Context, base string, query url.Values, read func(body io.Reader) error) error {
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/query?"+query.Encode(), nil)
	if err != nil {
		return errors.New("the request cannot be made")
	}
	if c.Username != "" {
		request.SetBasicAuth(c.Username, c.Password)
	}
	response, err := c.http().Do(request)
	if err != nil {
		return answers.WithoutURL(err) // It has the query.
	}
	defer func() { _ = response.Body.Close() }()
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "application/json" {
		if response.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("status %d without JSON, perhaps of a proxy", response.StatusCode)
		}
		return fmt.Errorf("expected json response, got %q with status %d", kind, response.StatusCode)
	}
	if err := read(response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}

// http is what requests are made with.
func (c Config) http() *http.Client {
	if c.HTTPClient == nil {
		return defaultHTTPClient
	}
	return answers.Client(c.HTTPClient, answerLimits)
}
