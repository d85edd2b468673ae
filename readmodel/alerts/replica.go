package alerts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Replica is a server that tells alerts.
type Replica struct {
	Name string `json:"name"`
	// Settings identify what decides about its messages.
	Settings string `json:"settings"`
	// Started is by its own clock.
	Started time.Time `json:"started"`
	// Renewed is when its record was written, by the clock of NATS.
	Renewed time.Time `json:"-"`
}

// Times of records of replicas.
const (
	// RenewEvery is how often a replica writes its record.
	RenewEvery = 10 * time.Second
	// replicaAge is the age from which on a replica counts as gone, and replicaKept that
	// from which on its record is removed.
	replicaAge  = 3 * RenewEvery
	replicaKept = 10 * time.Minute
)

func replicaKey(name string) string {
	return replicaPrefix + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// PutReplica writes the record of a replica.
func (b *Bucket) PutReplica(ctx context.Context, r Replica) error {
	kv, err := b.open(ctx)
	if err != nil {
		return err
	}
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("replica %s: %w", r.Name, err)
	}
	_, err = kv.Put(ctx, replicaKey(r.Name), value)
	return b.explain("write to", err)
}

// DeleteReplica removes the record of a replica.
func (b *Bucket) DeleteReplica(ctx context.Context, name string) error {
	kv, err := b.open(ctx)
	if err != nil {
		return err
	}
	return b.explain("delete from", kv.Purge(ctx, replicaKey(name)))
}

// Live are the replicas that renew their records, and gone are those whose records nobody
// needs. The clock of NATS tells the age of a record: now, which is of this process, is only
// for when there is no replica at all.
func Live(replicas []Replica, now time.Time) (live, gone []Replica) {
	latest := now.Add(-replicaKept)
	for _, r := range replicas {
		if r.Renewed.After(latest) {
			latest = r.Renewed
		}
	}
	for _, r := range replicas {
		switch age := latest.Sub(r.Renewed); {
		case age < replicaAge:
			live = append(live, r)
		case age > replicaKept:
			gone = append(gone, r)
		}
	}
	return live, gone
}

// Differing are the live replicas whose settings are other than those of most. Of two
// halves, the one with the replica that started first counts as most. Usual is that one.
func Differing(replicas []Replica, now time.Time) (odd []Replica, usual Replica) {
	live, _ := Live(replicas, now)
	slices.SortFunc(live, func(x, y Replica) int {
		if order := x.Started.Compare(y.Started); order != 0 {
			return order
		}
		return strings.Compare(x.Name, y.Name)
	})
	count, most := map[string]int{}, 0
	for _, r := range live {
		count[r.Settings]++
	}
	for _, r := range live {
		if count[r.Settings] > most {
			usual, most = r, count[r.Settings]
		}
	}
	for _, r := range live {
		if r.Settings != usual.Settings {
			odd = append(odd, r)
		}
	}
	return odd, usual
}
