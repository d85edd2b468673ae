package store

import (
	"context"
	"database/sql"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Filter says which resources to list: those of a kind, and of an organization or a
// station if one is named.
type Filter struct {
	Kind           platformv1.ResourceKind
	OrganizationID string
	StationID      string
}

// Get returns a resource, or nil if there is none.
func (s *Store) Get(ctx context.Context, kind platformv1.ResourceKind, id string) (r *platformv1.Resource, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		r, err = reader{tx}.Get(ctx, kind, id)
		return err
	})
	return r, err
}

// List returns resources in the order of ids: at most size of them, with ids after the
// given one, for which keep is true. It says whether there are more.
func (s *Store) List(ctx context.Context, f Filter, after string, size int, keep func(*platformv1.Resource) bool) (found []*platformv1.Resource, more bool, err error) {
	err = s.view(ctx, func(tx *sql.Tx) error {
		found, more, err = reader{tx}.List(ctx, f, after, size, keep)
		return err
	})
	return found, more, err
}

// List is [Store.List] in a transaction.
func (r reader) List(ctx context.Context, f Filter, after string, size int, keep func(*platformv1.Resource) bool) (found []*platformv1.Resource, more bool, err error) {
	query, args := `SELECT body FROM resources WHERE kind = ? AND id > ?`, []any{f.Kind, after}
	if f.OrganizationID != "" {
		query, args = query+` AND organization_id = ?`, append(args, f.OrganizationID)
	}
	if f.StationID != "" {
		query, args = query+` AND station_id = ?`, append(args, f.StationID)
	}
	rows, err := r.tx.QueryContext(ctx, query+` ORDER BY id`, args...)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return nil, false, err
		}
		resource, err := decode(body)
		if err != nil {
			return nil, false, err
		}
		if !keep(resource) {
			continue
		}
		if len(found) == size {
			return found, true, nil
		}
		found = append(found, resource)
	}
	return found, false, rows.Err()
}

// All keeps every resource.
func All(*platformv1.Resource) bool { return true }
