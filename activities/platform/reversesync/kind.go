package reversesync

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// pageSize is the most that the Platform API lists at once.
const pageSize = 1000

// Entity is a resource of Release 3.
type Entity interface {
	proto.Message
	GetId() string
}

// Kind is a kind of entities, and how they become documents.
type Kind struct {
	// Entity is the message's name, such as ThingType.
	Entity string
	// Resource is what the change feed calls it.
	Resource platformv1.ResourceKind
	// Name is the kind on the command line, such as thing_type.
	Name string
	// Service is the service of Release 2 that has the documents.
	Service string
	Fields  []Field

	page func(ctx context.Context, s *platform.Client, token string) (entities []Entity, next string, err error)
	get  func(ctx context.Context, s *platform.Client, id string) (Entity, error)
	// alike lists the entities whose slugs may become that of an entity, page by page. Nil
	// for kinds whose slugs stay as they are.
	alike func(ctx context.Context, s *platform.Client, of Entity, token string) (entities []Entity, next string, err error)
}

// Kinds are all kinds, in the order in which their documents refer to each other: the
// terms of a datastream have to be in a vocabulary.
func Kinds() []Kind {
	return []Kind{
		{
			Entity: "Vocabulary", Resource: platformv1.ResourceKind_RESOURCE_KIND_VOCABULARY,
			Name: "vocabulary", Service: "vocabularies", Fields: vocabularyFields,
			page: func(ctx context.Context, s *platform.Client, token string) ([]Entity, string, error) {
				r, err := s.Metadata.ListVocabularies(ctx, &platformv1.ListVocabulariesRequest{PageSize: pageSize, PageToken: token})
				return entities(r.GetVocabularies()), r.GetNextPageToken(), err
			},
			get: func(ctx context.Context, s *platform.Client, id string) (Entity, error) {
				r, err := s.Metadata.GetVocabulary(ctx, &platformv1.GetVocabularyRequest{Id: id})
				return r.GetVocabulary(), err
			},
		},
		{
			Entity: "Organization", Resource: platformv1.ResourceKind_RESOURCE_KIND_ORGANIZATION,
			Name: "organization", Service: "organizations", Fields: organizationFields,
			page: func(ctx context.Context, s *platform.Client, token string) ([]Entity, string, error) {
				r, err := s.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageSize: pageSize, PageToken: token})
				return entities(r.GetOrganizations()), r.GetNextPageToken(), err
			},
			get: func(ctx context.Context, s *platform.Client, id string) (Entity, error) {
				r, err := s.Organizations.GetOrganization(ctx, &platformv1.GetOrganizationRequest{Id: id})
				if r.GetOrganization().GetDeleteTime() != nil {
					return nil, errGone // lists leave it out
				}
				return r.GetOrganization(), err
			},
			alike: func(ctx context.Context, s *platform.Client, _ Entity, token string) ([]Entity, string, error) {
				r, err := s.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageSize: pageSize, PageToken: token})
				return entities(r.GetOrganizations()), r.GetNextPageToken(), err
			},
		},
		{
			Entity: "Site", Resource: platformv1.ResourceKind_RESOURCE_KIND_SITE,
			Name: "site", Service: "places", Fields: siteFields,
			page: func(ctx context.Context, s *platform.Client, token string) ([]Entity, string, error) {
				r, err := s.Metadata.ListSites(ctx, &platformv1.ListSitesRequest{PageSize: pageSize, PageToken: token})
				return entities(r.GetSites()), r.GetNextPageToken(), err
			},
			get: func(ctx context.Context, s *platform.Client, id string) (Entity, error) {
				r, err := s.Metadata.GetSite(ctx, &platformv1.GetSiteRequest{Id: id})
				return r.GetSite(), err
			},
		},
		{
			Entity: "ThingType", Resource: platformv1.ResourceKind_RESOURCE_KIND_THING_TYPE,
			Name: "thing_type", Service: "thing-types", Fields: thingTypeFields,
			page: func(ctx context.Context, s *platform.Client, token string) ([]Entity, string, error) {
				r, err := s.Metadata.ListThingTypes(ctx, &platformv1.ListThingTypesRequest{PageSize: pageSize, PageToken: token})
				return entities(r.GetThingTypes()), r.GetNextPageToken(), err
			},
			get: func(ctx context.Context, s *platform.Client, id string) (Entity, error) {
				r, err := s.Metadata.GetThingType(ctx, &platformv1.GetThingTypeRequest{Id: id})
				return r.GetThingType(), err
			},
		},
		{
			Entity: "Station", Resource: platformv1.ResourceKind_RESOURCE_KIND_STATION,
			Name: "station", Service: "stations", Fields: stationFields,
			page: func(ctx context.Context, s *platform.Client, token string) ([]Entity, string, error) {
				r, err := s.Metadata.ListStations(ctx, &platformv1.ListStationsRequest{PageSize: pageSize, PageToken: token})
				return entities(r.GetStations()), r.GetNextPageToken(), err
			},
			get: func(ctx context.Context, s *platform.Client, id string) (Entity, error) {
				r, err := s.Metadata.GetStation(ctx, &platformv1.GetStationRequest{Id: id})
				return r.GetStation(), err
			},
			alike: func(ctx context.Context, s *platform.Client, of Entity, token string) ([]Entity, string, error) {
				r, err := s.Metadata.ListStations(ctx, &platformv1.ListStationsRequest{LikeStationId: of.GetId(), PageSize: pageSize, PageToken: token})
				return entities(r.GetStations()), r.GetNextPageToken(), err
			},
		},
		{
			Entity: "Datastream", Resource: platformv1.ResourceKind_RESOURCE_KIND_DATASTREAM,
			Name: "datastream", Service: "datastreams", Fields: datastreamFields,
			page: func(ctx context.Context, s *platform.Client, token string) ([]Entity, string, error) {
				r, err := s.Metadata.ListDatastreams(ctx, &platformv1.ListDatastreamsRequest{PageSize: pageSize, PageToken: token})
				return entities(r.GetDatastreams()), r.GetNextPageToken(), err
			},
			get: func(ctx context.Context, s *platform.Client, id string) (Entity, error) {
				r, err := s.Metadata.GetDatastream(ctx, &platformv1.GetDatastreamRequest{Id: id})
				return r.GetDatastream(), err
			},
		},
	}
}

// KindOf is the kind of a resource of the change feed; false if reverse sync has nothing
// to do with it.
func KindOf(resource platformv1.ResourceKind) (Kind, bool) {
	return find(func(k Kind) bool { return k.Resource == resource })
}

// KindNamed is the kind of a name.
func KindNamed(name string) (Kind, bool) {
	return find(func(k Kind) bool { return k.Name == name })
}

func find(is func(Kind) bool) (Kind, bool) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, is)
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// errGone means that Release 3 has no such entity.
var errGone = errors.New("not in Release 3")

// list gives all entities of the kind in the order of their ids.
func (k Kind) list(ctx context.Context, s *platform.Client) iter.Seq2[Entity, error] {
	return k.pages(ctx, func(ctx context.Context, token string) ([]Entity, string, error) { return k.page(ctx, s, token) })
}

// pages gives the entities of a list.
func (k Kind) pages(ctx context.Context, read func(ctx context.Context, token string) ([]Entity, string, error)) iter.Seq2[Entity, error] {
	return func(yield func(Entity, error) bool) {
		err := platform.Pages(func(token string) (string, error) {
			page, next, err := read(ctx, token)
			if err != nil {
				return "", err
			}
			for _, entity := range page {
				if !yield(entity, nil) {
					return "", nil
				}
			}
			return next, nil
		})
		if err != nil {
			yield(nil, k.failed("entities", err))
		}
	}
}

// read reads an entity. The error is errGone if there is none.
func (k Kind) read(ctx context.Context, s *platform.Client, id string) (Entity, error) {
	entity, err := k.get(ctx, s, id)
	if connect.CodeOf(err) == connect.CodeNotFound {
		err = errGone
	}
	if err != nil && !errors.Is(err, errGone) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err = k.failed(id, err)
	}
	return entity, err
}

func (k Kind) failed(what string, err error) error {
	return fmt.Errorf("read %s of kind %s from the Platform API: %w", what, k.Name, platform.Explain(err))
}

func entities[E Entity](all []E) []Entity {
	list := make([]Entity, len(all))
	for i, entity := range all {
		list[i] = entity
	}
	return list
}
