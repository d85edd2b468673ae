package cli

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// largestPage is the largest page that the Job API gives.
const largestPage = 1000

// Fields of requests and responses of lists.
const (
	pageSize      protoreflect.Name = "page_size"
	pageToken     protoreflect.Name = "page_token"
	nextPageToken protoreflect.Name = "next_page_token"
)

// listAll calls a method of the Job API that lists for all pages, and joins them in one
// response.
func listAll[Q, R proto.Message](ctx context.Context, call func(context.Context, Q) (R, error), request Q) (R, error) {
	return listSome(ctx, call, request, 0, nil)
}

// listSome is listAll up to a number of entries, if it is not 0; count counts those of a
// response. If there may be more, the response has the token with which the list goes on.
func listSome[Q, R proto.Message](ctx context.Context, call func(context.Context, Q) (R, error), request Q, limit int, count func(R) int) (R, error) {
	request = proto.CloneOf(request)
	asked := request.ProtoReflect()
	fields := asked.Descriptor().Fields()
	var joined R
	have := 0
	for first := true; ; first = false {
		size := largestPage
		if limit > 0 {
			size = min(limit-have, largestPage)
		}
		asked.Set(fields.ByName(pageSize), protoreflect.ValueOfInt32(int32(size))) //nolint:gosec // At most 1000.
		page, err := call(ctx, request)
		if err != nil {
			return joined, err
		}
		next := page.ProtoReflect().Descriptor().Fields().ByName(nextPageToken)
		token := page.ProtoReflect().Get(next)
		page.ProtoReflect().Clear(next)
		if first {
			joined = page
		} else {
			proto.Merge(joined, page)
		}
		if token.String() == "" {
			return joined, nil
		}
		if limit > 0 {
			if have = count(joined); have >= limit {
				joined.ProtoReflect().Set(next, token)
				return joined, nil
			}
		}
		asked.Set(fields.ByName(pageToken), token)
	}
}

// paging are the flags of a list that may be long.
type paging struct {
	limit int
	token string
}

// register adds the flags; what is the word of their help: "jobs", "runs".
func (p *paging) register(cmd *cobra.Command, what string, limit int) {
	cmd.Flags().IntVar(&p.limit, "limit", limit, "at most so many "+what+"; 0: all")
	cmd.Flags().Var(nameValue{&p.token}, "page-token", "go on where a list with the same filters has ended: its nextPageToken")
}

func (p *paging) check(cmd *cobra.Command) error {
	if p.limit < 0 {
		return misuse(cmd, "--limit %d is negative", p.limit)
	}
	return nil
}

// noteMore says that a list may go on. A token is for programs: it is longer than a line.
func (i *invocation) noteMore(token string) {
	if token != "" && i.format == formatTable {
		i.note("There may be more: --limit 0 lists all. With -o json, nextPageToken is where --page-token goes on.")
	}
}
