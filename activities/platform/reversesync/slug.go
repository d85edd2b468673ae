package reversesync

import (
	"context"
	"fmt"

	"github.com/dendrascience/dendra-jobs/internal/platform"
)

// slugKey is the same for entities whose documents would have the same slug: those of an
// organization, and organizations themselves. It is empty for kinds whose slugs stay as they
// are.
func (k Kind) slugKey(want Projection) string {
	if k.alike == nil || want["slug"] == nil {
		return ""
	}
	return string(want["organization_id"]) + string(want["slug"])
}

// twin is the id of the first entity whose document has the slug of a later one, "" if there
// is none.
func (k Kind) twin(ctx context.Context, s *platform.Client, entity Entity, want Projection) (string, error) {
	key := k.slugKey(want)
	if key == "" {
		return "", nil
	}
	others := k.pages(ctx, func(ctx context.Context, token string) ([]Entity, string, error) {
		return k.alike(ctx, s, entity, token)
	})
	for other, err := range others {
		if err != nil || other.GetId() >= entity.GetId() {
			return "", err // lists are in the order of ids
		}
		projected, err := k.Project(other)
		if err == nil && k.slugKey(projected) == key {
			return other.GetId(), nil
		}
	}
	return "", nil
}

// withTwin makes the difference a conflict if another entity has the slug of its document.
func (d Difference) withTwin(id string, known *Conflict) Difference {
	if id == "" || d.Action == ActionConflict {
		return d
	}
	return d.withConflict(Conflict{Reason: ReasonSlug, Message: fmt.Sprintf("%s %s has the slug %s in Release 2 too", d.Kind, id, d.want["slug"])}, known)
}
