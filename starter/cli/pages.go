package cli

import (
	"context"

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
	return listSome(ctx, call, request, nil)
}

// listSome is listAll up to the page with which enough, if it is set, says true.
func listSome[Q, R proto.Message](ctx context.Context, call func(context.Context, Q) (R, error), request Q, enough func(R) bool) (R, error) {
	request = proto.CloneOf(request)
	asked := request.ProtoReflect()
	size := asked.Descriptor().Fields().ByName(pageSize)
	if asked.Get(size).Int() == 0 {
		asked.Set(size, protoreflect.ValueOfInt32(largestPage))
	}
	var joined R
	for first := true; ; first = false {
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
		if token.String() == "" || enough != nil && enough(joined) {
			return joined, nil
		}
		asked.Set(asked.Descriptor().Fields().ByName(pageToken), token)
	}
}
