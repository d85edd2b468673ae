package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/job"
)

// Sizes of pages. A size beyond the largest is taken as that.
const (
	defaultPage = 100
	largestPage = 1000
)

// maxToken bounds a page token that is read, in bytes.
const maxToken = 8 << 10

// pageSize is the size of a page that was asked for.
func pageSize(asked int32) int {
	if asked == 0 {
		return defaultPage
	}
	return min(int(asked), largestPage)
}

// pages are the pages of one list: what a request asks for, but for the page and its size.
// P is a place in the list.
type pages[P any] struct{ list string }

func pagesOf[P any](request proto.Message) pages[P] {
	list := proto.Clone(request).ProtoReflect()
	for _, name := range []protoreflect.Name{"page_size", "page_token"} {
		list.Clear(list.Descriptor().Fields().ByName(name))
	}
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(list.Interface()) // It came over the wire.
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s", list.Descriptor().FullName(), text))
	return pages[P]{hex.EncodeToString(sum[:8])}
}

// token is where the list goes on, as clients send it back.
type token[P any] struct {
	List  string `json:"list"`
	Place P      `json:"place"`
}

func (p pages[P]) write(place P) string {
	return base64.RawURLEncoding.EncodeToString(job.EncodeJSON(token[P]{p.list, place}))
}

// read gives the place of a token; "" is the beginning.
func (p pages[P]) read(text string) (place P, err error) {
	if text == "" {
		return place, nil
	}
	var t token[P]
	if len(text) > maxToken {
		return place, badToken()
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &t)
	}
	if err != nil || t.List != p.list {
		return place, badToken()
	}
	return t.Place, nil
}

func badToken() error {
	return badRequestFor(invalidPageToken, violation{"page_token", "it is not of a page of this list with these parameters"})
}

// after cuts a page out of a list that is ordered by a key: what is after the place. Next
// is where the list goes on, "" at its end.
func after[E any](list []E, key func(E) string, place string, size int) (page []E, next string) {
	for i, element := range list {
		if place != "" && key(element) <= place {
			continue
		}
		if len(page) == size {
			return page, key(list[i-1])
		}
		page = append(page, element)
	}
	return page, ""
}
