package composetest_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// photoCount is how many photos there are to be put into the queue.
const photoCount = 2000

// ledger puts one photo after the other into a queue, each until that is acknowledged.
type ledger struct {
	project *project
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string // jobs, in their order
	last         time.Time
	gap          time.Duration // the longest since it was asked for
}

const (
	queue     = "photos"
	photoType = "generate_photo_variants_to_minio"
)

// putPhotos puts photos into the bucket of uploads, as files of its folder.
func putPhotos(t *testing.T, p *project) {
	t.Helper()
	folder := t.TempDir()
	for n := range photoCount {
		const side = 64
		picture := image.NewRGBA(image.Rect(0, 0, side, side))
		for i := range side * side {
			picture.SetRGBA(i%side, i/side, color.RGBA{R: uint8(n), G: uint8(n >> 8), B: uint8(i), A: 255})
		}
		var data bytes.Buffer
		require.NoError(t, jpeg.Encode(&data, picture, nil))
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.jpg", n)), data.Bytes(), 0o600))
	}
	p.run(t, "cp", folder+"/.", "s3:/data/uploads/")
}

func startLedger(t *testing.T, p *project) *ledger {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &ledger{project: p, stop: stop, last: time.Now()}
	l.ended.Go(func() {
		for n := 0; n < photoCount && ctx.Err() == nil; {
			key := fmt.Sprintf("p%d", n)
			within, cancel := context.WithTimeout(ctx, 15*time.Second)
			// By default an item is given up after three retries, which take less than a store is away.
			err := p.starter(within, "queues", "enqueue", queue, "--type", photoType, "--key", key, "--max-retry-count", "-1",
				"--spec", fmt.Sprintf(`{"bucket": "uploads", "key": "%d.jpg"}`, n)).Run()
			cancel()
			if err == nil {
				l.acknowledge(photoType + "." + key)
				n++
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond): // A load, and no storm.
			}
		}
	})
	t.Cleanup(l.end)
	return l
}

func (l *ledger) end() {
	l.stop()
	l.ended.Wait()
}

func (l *ledger) acknowledge(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged = append(l.acknowledged, job)
	l.gap = max(l.gap, time.Since(l.last))
	l.last = time.Now()
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged)
}

// longestGap is the longest time without an acknowledgement since the last call.
func (l *ledger) longestGap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := max(l.gap, time.Since(l.last))
	l.gap = 0
	return gap.Round(100 * time.Millisecond)
}

// goesOn waits for more acknowledgements.
func (l *ledger) goesOn(t *testing.T) {
	t.Helper()
	want := l.count() + 3
	l.project.until(t, 3*time.Minute, func() error {
		if have := l.count(); have < want {
			return fmt.Errorf("%d items are acknowledged, not yet %d", have, want)
		}
		return nil
	})
}

// run is what is asked of a run.
type run struct {
	JobID                string `json:"jobId"`
	Queue, Status        string
	Attempts             int
	TakenTime, EndTime   time.Time
	ErrorMessage, Worker string
}

type runs struct{ Runs []run }

// check holds the runs against what was acknowledged: each item has run, in order, and never
// two at a time.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	p := l.project
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []run
	p.until(t, 5*time.Minute, func() error {
		q := ask[struct {
			Waiting int
			Running *struct{}
		}](t, p, "queues", "describe", queue)
		if q.Waiting > 0 || q.Running != nil {
			return fmt.Errorf("the queue has %d items", q.Waiting)
		}
		found = slices.DeleteFunc(ask[runs](t, p, "runs", "list", "--mode", "queued", "--limit", "0").Runs, func(r run) bool { return r.Queue != queue })
		if len(found) < len(l.acknowledged) { // Lists are behind.
			return fmt.Errorf("%d runs of %d items are listed", len(found), len(l.acknowledged))
		}
		return nil
	})
	slices.SortFunc(found, func(a, b run) int { return a.TakenTime.Compare(b.TakenTime) })
	place := map[string]int{}
	var order []string
	twice := 0
	for n, r := range found {
		require.Contains(t, r.Status, "COMPLETED", "%s: %s", r.JobID, r.ErrorMessage)
		require.NotContains(t, place, r.JobID, "it has two runs")
		place[r.JobID] = n
		order = append(order, r.JobID)
		if r.Attempts > 1 {
			twice++
		}
		if n > 0 {
			require.False(t, r.TakenTime.Before(found[n-1].EndTime), "%s began before %s had ended", r.JobID, found[n-1].JobID)
		}
	}
	require.Equal(t, l.acknowledged, order[:min(len(order), len(l.acknowledged))], "the items that ran, in their order")
	t.Logf("%d items were acknowledged: each has one run, in order, none overlap; %d took more than one attempt", len(l.acknowledged), twice)
	manifests := strings.Count(p.run(t, "exec", "--no-TTY", "s3", "/bin/sh", "-c", "find /data/media/photos -name '*.json'"), "\n")
	require.GreaterOrEqual(t, manifests, len(l.acknowledged), "manifests of variants")
}
