package platform

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Kinds, in short.
const (
	kindOrganization = platformv1.ResourceKind_RESOURCE_KIND_ORGANIZATION
	kindSite         = platformv1.ResourceKind_RESOURCE_KIND_SITE
	kindStation      = platformv1.ResourceKind_RESOURCE_KIND_STATION
	kindThingType    = platformv1.ResourceKind_RESOURCE_KIND_THING_TYPE
	kindDatastream   = platformv1.ResourceKind_RESOURCE_KIND_DATASTREAM
	kindVocabulary   = platformv1.ResourceKind_RESOURCE_KIND_VOCABULARY
	kindType         = platformv1.ResourceKind_RESOURCE_KIND_INTEGRATION_TYPE
	kindConfig       = platformv1.ResourceKind_RESOURCE_KIND_INTEGRATION_CONFIG
	kindTable        = platformv1.ResourceKind_RESOURCE_KIND_TABLE_INFO
)

// getter reads resources: the store, or a transaction of it.
type getter interface {
	Get(ctx context.Context, kind platformv1.ResourceKind, id string) (*platformv1.Resource, error)
}

// get returns a resource, or the error NOT_FOUND.
func get[M proto.Message](ctx context.Context, from getter, kind platformv1.ResourceKind, id string) (m M, err error) {
	r, err := from.Get(ctx, kind, id)
	if err != nil {
		return m, failure(err)
	}
	if r == nil {
		return m, connect.Errorf(connect.CodeNotFound, "there is no %s", store.Name(kind, id))
	}
	return store.Unwrap[M](r), nil
}

// page is what every list request has.
type page interface {
	GetPageSize() int32
	GetPageToken() string
}

const (
	defaultPageSize = 100
	maxPageSize     = 1000
)

func pageSize(p page) int {
	if p.GetPageSize() == 0 {
		return defaultPageSize
	}
	return min(int(p.GetPageSize()), maxPageSize)
}

// list returns a page of resources, and the token of the next page.
func list[M proto.Message](ctx context.Context, s *store.Store, f store.Filter, p page, keep func(M) bool) (found []M, next string, err error) {
	after, err := readPageToken(f, p.GetPageToken())
	if err != nil {
		return nil, "", err
	}
	resources, more, err := s.List(ctx, f, after, pageSize(p), func(r *platformv1.Resource) bool { return keep(store.Unwrap[M](r)) })
	if err != nil {
		return nil, "", failure(err)
	}
	for _, r := range resources {
		found = append(found, store.Unwrap[M](r))
	}
	if more {
		next = pageToken(f, store.ID(resources[len(resources)-1]))
	}
	return found, next, nil
}

func all[M proto.Message](M) bool { return true }

// A page token is for one list.
type listPosition struct {
	List  string
	After string
}

func pageToken(list any, after string) string {
	return encodeToken(listPosition{fingerprint(list), after})
}

func readPageToken(list any, token string) (after string, err error) {
	if token == "" {
		return "", nil
	}
	var p listPosition
	if !decodeToken(token, &p) || p.List != fingerprint(list) {
		return "", connect.NewError(connect.CodeInvalidArgument, "page_token is not one of this list")
	}
	return p.After, nil
}

func fingerprint(of any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%v", of))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// encodeToken makes an opaque token of a value without pointers.
func encodeToken(v any) string {
	text, _ := json.Marshal(v) // strings and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeToken(token string, v any) bool {
	text, err := base64.RawURLEncoding.DecodeString(token)
	return err == nil && json.Unmarshal(text, v) == nil
}

// failure is an error as callers see it: one that has a code as it is, another one as
// the server's own.
func failure(err error) error {
	if _, coded := errors.AsType[*connect.Error](err); err == nil || coded {
		return err
	}
	return connect.Errorf(connect.CodeInternal, "the database failed: %v", err).WithCause(err)
}

func checkEtag(want string, r *platformv1.Resource) error {
	if want == "" || want == store.Etag(r) {
		return nil
	}
	return platform.Error(connect.CodeAborted, platformv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH,
		"%s has the etag %s, not %s", store.Name(store.Kind(r), store.ID(r)), store.Etag(r), want)
}

func isNotFound(err error) bool { return connect.CodeOf(err) == connect.CodeNotFound }
