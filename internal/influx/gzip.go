package influx

import (
	"bytes"
	"context"
	"net/url"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/dendrascience/dendra-jobs/internal/localnet"
)

// packer compresses bodies, and keeps what that takes.
type packer struct {
	writer *gzip.Writer
	out    bytes.Buffer
}

var packers = sync.Pool{New: func() any {
	// The fastest level makes line protocol seven times smaller; the best one costs
	// four times as much and makes it twelve times smaller.
	writer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that there is
	return &packer{writer: writer}
}}

func (p *packer) pack(body []byte) []byte {
	p.out.Reset()
	p.writer.Reset(&p.out)
	// A buffer takes everything.
	_, _ = p.writer.Write(body)
	_ = p.writer.Close()
	return p.out.Bytes()
}

// Local reports whether the server at a URL is on this machine or in a private
// network, where compressing costs more than it saves: every address of its name
// is a loopback, private or link-local one. A name that cannot be resolved within
// two seconds counts as local.
func Local(ctx context.Context, serverURL string) bool {
	parsed, err := url.Parse(serverURL)
	if err != nil {
		return true
	}
	return localnet.Private(ctx, parsed.Hostname())
}
