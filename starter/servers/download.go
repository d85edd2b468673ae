package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/answers"
)

// maxLinks bounds the list of links, in bytes.
const maxLinks = 64 << 20

// Download reads the files of an export into a folder, and says how many there are. The link
// is that of the list of their links.
func Download(ctx context.Context, link, folder string) (n int, err error) {
	var list strings.Builder
	if err := get(answers.Allow(ctx, maxLinks), link, &list); err != nil {
		return 0, fmt.Errorf("the list of files cannot be read: %w", err)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return 0, err
	}
	for _, link := range strings.Fields(list.String()) {
		if err := downloadFile(ctx, link, folder); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// downloadFile reads a file, which has its name only when it is whole.
func downloadFile(ctx context.Context, link, folder string) error {
	parsed, err := url.Parse(link)
	if err != nil {
		return errors.New("the list of files has what is no link")
	}
	name := path.Base(parsed.Path)
	if name == "." || !filepath.IsLocal(name) {
		return errors.New("the list of files has a link without a name")
	}
	file, err := os.CreateTemp(folder, ".download-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // It has another name by now.
	err = errors.Join(get(ctx, link, file), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(folder, name))
	}
	if err != nil {
		return fmt.Errorf("download %s: %w", name, err)
	}
	return nil
}

// get reads what a link gives. Its errors do not have the link, which is a secret.
func get(ctx context.Context, link string, into io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return errors.New("the link is no URL")
	}
	response, err := answers.Client(nil, answers.Limits{Silence: time.Minute}).Do(request)
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the store answers %s", response.Status)
	}
	_, err = io.Copy(into, response.Body)
	return err
}
