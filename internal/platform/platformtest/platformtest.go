// Package platformtest writes resources into the reference Platform API of the
// development stack. A real Platform API has other ways for that.
package platformtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Path is where the reference Platform API takes what this package sends.
const Path = "/dev/"

// Put makes or replaces a resource, and returns it as it is stored. If etag is not
// empty, the stored resource must have it.
func Put(ctx context.Context, c platform.Config, r *platformv1.Resource, etag string) (*platformv1.Resource, error) {
	body, err := protojson.Marshal(r)
	if err != nil {
		return nil, err
	}
	answer, err := call(ctx, c, http.MethodPut, "resources", body, etag)
	if err != nil {
		return nil, err
	}
	stored := &platformv1.Resource{}
	return stored, protojson.Unmarshal(answer, stored)
}

// NewID is an id that no other resource has.
func NewID() string {
	id := make([]byte, 12)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// Delete removes a resource of a kind, such as station. Organizations are deleted by the
// OrganizationService.
func Delete(ctx context.Context, c platform.Config, kind, id string) error {
	_, err := call(ctx, c, http.MethodDelete, "resources/"+url.PathEscape(kind)+"/"+url.PathEscape(id), nil, "")
	return err
}

// Trim drops all but the newest changes of the log, so that older resume tokens are too
// old.
func Trim(ctx context.Context, c platform.Config, keep int) error {
	_, err := call(ctx, c, http.MethodPost, "trim?keep="+strconv.Itoa(keep), nil, "")
	return err
}

// Fault has the change feed drop a share of the changes, such as 0.3, and send another
// share twice. What a snapshot reads is not touched. It stays so, also after a restart of
// the server, until Fault is called with 0 and 0. The seed decides which changes.
func Fault(ctx context.Context, c platform.Config, drop, double float64, seed uint64) error {
	_, err := call(ctx, c, http.MethodPost, fmt.Sprintf("fault?drop=%g&double=%g&seed=%d", drop, double, seed), nil, "")
	return err
}

func call(ctx context.Context, c platform.Config, method, path string, body []byte, etag string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+Path+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	if etag != "" {
		request.Header.Set("If-Match", etag)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, &Error{Status: response.StatusCode, Message: fmt.Sprintf("%s %s: %s", method, path, bytes.TrimSpace(answer))}
	}
	return answer, nil
}

// Error is an answer that is no success.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return e.Message }
