package endtoend_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// manyPhotos is a jobs file of so many one-shots, for the photos below uploads/<name>/.
func manyPhotos(name string, count int) string {
	var text strings.Builder
	if count < 100 { // Else a second of all heartbeats is more than a busy server takes in.
		text.WriteString("[jobs.generate_photo_variants_to_minio]\nheartbeat_timeout = \"PT4S\"\n")
	}
	for n := range count {
		fmt.Fprintf(&text, "[jobs.generate_photo_variants_to_minio.%s-%03d]\none_shot = {}\nspec = { bucket = \"uploads\", key = \"%[1]s/%03[2]d\", prefix = \"%[1]s\" }\n", name, n)
	}
	return text.String()
}

// numbered gives a JPEG a comment, so that its content is its own.
func numbered(file []byte, name string, n int) []byte {
	comment := fmt.Sprintf("%s %d", name, n)
	out := append([]byte{}, file[:2]...)
	out = append(out, 0xff, 0xfe)
	out = binary.BigEndian.AppendUint16(out, uint16(len(comment)+2))
	return append(append(out, comment...), file[2:]...)
}

// residentKiB is the memory of a process and its children.
func residentKiB(pid int) (worker, children int) {
	for _, child := range stack.Children(pid) {
		children += stacktest.Memory(child) >> 10
	}
	return stacktest.Memory(pid) >> 10, children
}

// batch is how a number of photos went.
type batch struct {
	bench
	name      string
	count     int
	bombs     int
	latencies []time.Duration // of those that are no bombs, from when the worker took it to its end
	span      time.Duration
	memory    [2][2]int // KiB: most of the worker and of its children, in each half of the batch
}

// isBomb: one among ten.
func (s *batch) isBomb(n int) bool { return s.bombs > 0 && n%10 == 3 }

// make uploads the photos, starts all runs, and calls each while they run.
func (s *batch) make(file []byte, worker *stacktest.Process, each func(ended int)) {
	s.Helper()
	for n := range s.count {
		data := numbered(file, s.name, n)
		if s.isBomb(n) {
			if data = imagingtest.Bomb(); n%20 == 3 {
				data = numbered(file, s.name, n)[:len(file)/2]
			}
		}
		s.upload(fmt.Sprintf("%s/%03d", s.name, n), data)
	}
	began := time.Now()
	s.ok("apply", "--yes", "-f", writeFile(s.T, "jobs.toml", manyPhotos(s.name, s.count)))
	var runs []client.Run
	stacktest.WaitWithin(s, 20*time.Minute, "all runs of "+s.name, func() (bool, error) {
		all, err := s.client.Runs.List(s.Context(), client.RunFilter{Type: "GeneratePhotoVariantsToMinio"})
		runs = slices.DeleteFunc(all, func(r client.Run) bool { return !strings.Contains(r.JobID, "."+s.name+"-") || r.Ended.IsZero() })
		half := min(1, 2*len(runs)/s.count)
		inWorker, inChildren := residentKiB(worker.PID())
		s.memory[half] = [2]int{max(s.memory[half][0], inWorker), max(s.memory[half][1], inChildren)}
		each(len(runs))
		return len(runs) == s.count, err
	})
	s.span = time.Since(began)
	failed := 0
	for _, r := range runs {
		var n int
		_, err := fmt.Sscanf(r.JobID[strings.LastIndexByte(r.JobID, '-')+1:], "%d", &n)
		require.NoError(s, err)
		if s.isBomb(n) {
			require.Equal(s, client.RunFailed, r.Status, r.JobID)
			failed++
			continue
		}
		require.Equal(s, client.RunCompleted, r.Status, "%s: %s", r.JobID, r.Error)
		s.latencies = append(s.latencies, r.Ended.Sub(r.Taken))
	}
	require.Equal(s, s.bombs, failed)
	slices.Sort(s.latencies)
	s.Logf("%s: %d photos and %d bombs in %s, %.1f photos/s; quartiles %s, %s, %s, p95 %s; MiB at most of worker and processes: %d and %d, then %d and %d",
		s.name, s.count-s.bombs, s.bombs, s.span.Round(time.Millisecond), float64(s.count-s.bombs)/s.span.Seconds(), s.quantile(25), s.quantile(50), s.quantile(75), s.quantile(95),
		s.memory[0][0]>>10, s.memory[0][1]>>10, s.memory[1][0]>>10, s.memory[1][1]>>10)
}

func (s *batch) quantile(percent int) time.Duration {
	return s.latencies[(len(s.latencies)-1)*percent/100].Round(time.Millisecond)
}

// requireWhole checks that no manifest names what is not there as it says.
func (s *batch) requireWhole(all bool) {
	s.Helper()
	listing := s.listing(s.name)
	found := manifests(listing)
	if all {
		require.Len(s, found, s.count-s.bombs)
		require.Len(s, listing, 5*(s.count-s.bombs))
	}
	for _, key := range found {
		for _, v := range readManifest(&s.bench, key).Variants {
			data, _, err := s.store.Get(s.Context(), "media", v.Key, 10<<20)
			require.NoError(s, err)
			require.Equal(s, v.SHA256, objects.Hash(data), v.Key)
			require.Equal(s, path.Dir(key), path.Dir(v.Key))
		}
	}
}

// TestManyPhotosAtOnce: all are made, bombs fail alone, and neither they nor processes and workers
// that are killed leave anything but whole pictures. DENDRA_TEST_SOAK has 500 at once, with the
// figures of docs/benchmarks.md.
func TestManyPhotosAtOnce(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	count := stacktest.Size(20, 500)
	b := newBench(t, stacktest.StartOwn(t))
	var file bytes.Buffer
	require.NoError(t, jpeg.Encode(&file, smooth(random, stacktest.Size(800, 1600), stacktest.Size(600, 1200)), nil))
	worker := b.worker("backend")
	var batches []*batch
	for n, bombs := range []int{0, count / 10} {
		s := &batch{bench: *b, name: []string{"quiet", "bombed"}[n], count: count, bombs: bombs}
		s.make(file.Bytes(), worker, func(int) {})
		s.requireWhole(true)
		batches = append(batches, s)
	}
	if quiet, bombed := batches[0], batches[1]; count >= 100 {
		require.Less(t, bombed.memory[1][0], quiet.memory[1][0]+64<<10, "the worker grows")
		require.Less(t, bombed.memory[1][1], quiet.memory[1][1]*3/2, "the processes grow")
		require.Less(t, bombed.quantile(50), quiet.quantile(75), "bombs keep the others waiting")
	}

	s := &batch{bench: *b, name: "killed", count: count}
	var victims []int
	kills, next, dead := 0, 0, false
	s.make(file.Bytes(), worker, func(ended int) {
		// A picture whose process is killed twice fails its run. It goes on in a new process, so
		// those of the beginning are killed.
		if victims == nil {
			victims = stack.Children(worker.PID())
		}
		if !dead && ended >= next && ended < count/2 && len(victims) > 0 {
			n := random.IntN(len(victims))
			if slices.Contains(stack.Children(worker.PID()), victims[n]) && syscall.Kill(victims[n], syscall.SIGKILL) == nil {
				kills++
			}
			victims, next = slices.Delete(victims, n, n+1), ended+3
		}
		if !dead && ended >= count/2 {
			dead = true
			worker.Kill()
			s.requireWhole(false)
			b.worker("backend")
		}
	})
	require.True(t, dead)
	require.Positive(t, kills)
	t.Logf("%d image processes and a worker were killed", kills)
	s.requireWhole(true)
}

// smooth is a picture of colors that change slowly.
func smooth(random *rand.Rand, w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	a, b := 1+random.IntN(5), 1+random.IntN(5)
	for y := range h {
		for x := range w {
			at := img.PixOffset(x, y)
			img.Pix[at], img.Pix[at+1], img.Pix[at+2], img.Pix[at+3] = uint8(a*x/8), uint8(b*y/8), uint8((x+y)/9), 255
		}
	}
	return img
}
