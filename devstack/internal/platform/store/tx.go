package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Tx is a transaction that writes.
type Tx struct {
	reader
	epoch string
	actor string
	now   time.Time
}

// Now is the time of the transaction.
func (t *Tx) Now() time.Time { return t.now }

// Put makes or replaces a resource and returns it as it is stored. A resource that is
// stored so already is not written again.
func (t *Tx) Put(ctx context.Context, r *platformv1.Resource) (*platformv1.Resource, error) {
	after := proto.CloneOf(r)
	before, err := t.Get(ctx, Kind(after), ID(after))
	if err != nil {
		return nil, err
	}
	operation, keys := platformv1.Operation_OPERATION_CREATE, []string(nil)
	modification := &platformv1.Modification{CreateTime: timestamppb.New(t.now), CreatedBy: t.actor}
	if before != nil {
		operation, keys = platformv1.Operation_OPERATION_UPDATE, changedKeys(before, after)
		modification = proto.CloneOf(modificationOf(before))
		if len(keys) == 0 {
			return before, nil
		}
	}
	modification.UpdateTime, modification.UpdatedBy = timestamppb.New(t.now), t.actor
	err = t.log(ctx, &platformv1.Change{Operation: operation, Before: before, After: after, ChangedKeys: keys},
		func(seq int64) { stamp(after, strconv.FormatInt(seq, 10), modification) })
	if err != nil {
		return nil, err
	}
	body, err := proto.Marshal(after)
	if err != nil {
		return nil, err
	}
	_, err = t.tx.ExecContext(ctx, `INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?, ?)`,
		Kind(after), ID(after), OrganizationID(after), StationID(after), body)
	return after, err
}

// Delete removes a resource. One that is not there stays so.
func (t *Tx) Delete(ctx context.Context, kind platformv1.ResourceKind, id string) error {
	before, err := t.Get(ctx, kind, id)
	if err != nil || before == nil {
		return err
	}
	if _, err := t.tx.ExecContext(ctx, `DELETE FROM resources WHERE kind = ? AND id = ?`, kind, id); err != nil {
		return err
	}
	if kind == platformv1.ResourceKind_RESOURCE_KIND_INTEGRATION_CONFIG {
		if _, err := t.tx.ExecContext(ctx, `DELETE FROM log_entries WHERE config_id = ?`, id); err != nil {
			return err
		}
	}
	return t.log(ctx, &platformv1.Change{Operation: platformv1.Operation_OPERATION_DELETE, Before: before}, func(int64) {})
}

// log enters a change into the log. numbered may use its number before it is written.
func (t *Tx) log(ctx context.Context, change *platformv1.Change, numbered func(seq int64)) error {
	r := change.GetAfter()
	if r == nil {
		r = change.GetBefore()
	}
	change.Kind, change.ResourceId, change.OrganizationId = Kind(r), ID(r), OrganizationID(r)
	change.Actor, change.Time = t.actor, timestamppb.New(t.now)
	entered, err := t.tx.ExecContext(ctx, `INSERT INTO changes (kind, body) VALUES (?, x'')`, change.GetKind())
	if err != nil {
		return err
	}
	seq, err := entered.LastInsertId()
	if err != nil {
		return err
	}
	change.Id = fmt.Sprintf("%s-%d", t.epoch, seq)
	numbered(seq)
	body, err := proto.Marshal(change)
	if err != nil {
		return err
	}
	_, err = t.tx.ExecContext(ctx, `UPDATE changes SET body = ? WHERE seq = ?`, body, seq)
	return err
}

// trim drops the oldest changes of the log beyond those to keep.
func (t *Tx) trim(ctx context.Context, keep int64) error {
	last, err := t.head(ctx)
	if err != nil || last <= keep {
		return err
	}
	if _, err := t.tx.ExecContext(ctx, `UPDATE feed SET trimmed = MAX(trimmed, ?)`, last-keep); err != nil {
		return err
	}
	_, err = t.tx.ExecContext(ctx, `DELETE FROM changes WHERE seq <= (SELECT trimmed FROM feed)`)
	return err
}

// reader reads in a transaction.
type reader struct{ tx *sql.Tx }

// Get returns a resource, or nil if there is none.
func (r reader) Get(ctx context.Context, kind platformv1.ResourceKind, id string) (*platformv1.Resource, error) {
	var body []byte
	err := r.tx.QueryRowContext(ctx, `SELECT body FROM resources WHERE kind = ? AND id = ?`, kind, id).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(body)
}

// head is the number of the last change.
func (r reader) head(ctx context.Context) (seq int64, err error) {
	err = r.tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'changes'`).Scan(&seq)
	return seq, err
}

func decode(body []byte) (*platformv1.Resource, error) {
	r := &platformv1.Resource{}
	if err := proto.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("stored resource: %w", err)
	}
	return r, nil
}
