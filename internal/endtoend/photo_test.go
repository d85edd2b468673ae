package endtoend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

func readManifest(b *bench, key string) images.Manifest {
	b.Helper()
	text, _, err := b.store.Get(b.Context(), "media", key, 1<<20)
	require.NoError(b, err)
	var manifest images.Manifest
	require.NoError(b, json.Unmarshal(text, &manifest))
	return manifest
}

func TestPhotoFromUploadToVariants(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t)) // no worker of another test may hand the run over
	b.worker("backend")
	file := photo(t, stacktest.Random(t))
	require.Contains(t, string(file), imagingtest.Place)
	b.upload("ranch/north.jpg", file)

	args := func(key string) []string {
		return []string{"--type", "GeneratePhotoVariantsToMinio", "--key", key,
			"--spec", `{"bucket": "uploads", "key": "ranch/north.jpg", "prefix": "front-door"}`}
	}
	run := stacktest.StartProcess(t, b.st, "starter", append([]string{"run"}, args("north")...)...)
	// The manifest promises the variants: whoever finds it, finds them.
	stacktest.WaitFor(t, "the manifest", func() (bool, error) { return len(manifests(b.listing("front-door"))) == 1, nil })
	require.Len(t, b.listing("front-door"), 5)
	require.Zero(t, run.Wait(), run.Output())
	require.Regexp(t, `(?m)^Status +completed after .*\nResult +4 variants written$`, run.Output())
	detail, err := b.client.Runs.Get(t.Context(), client.RunRef{WorkflowID: "job/generate_photo_variants_to_minio.north"})
	require.NoError(t, err)
	require.Equal(t, "4 variants written", detail.Output.Message)
	require.EqualValues(t, len(file), detail.Output.Counts["source_bytes"])
	require.EqualValues(t, 1, detail.Output.Counts["manifests_written"])

	before := b.listing("front-door")
	require.Len(t, before, 5)
	var output images.Output
	require.NoError(t, json.Unmarshal(detail.Output.Output, &output))
	require.Equal(t, []string{output.Manifest}, manifests(before))
	manifest := readManifest(b, output.Manifest)
	require.Equal(t, output.Variants, manifest.Variants)
	require.Equal(t, [3]int{4000, 3000, 6}, [3]int{manifest.Source.Width, manifest.Source.Height, manifest.Source.Orientation})
	require.Equal(t, objects.Hash(file), manifest.Source.SHA256)

	sizes := map[string]int{}
	for _, v := range manifest.Variants {
		data, info, err := b.store.Get(t.Context(), output.Bucket, v.Key, 10<<20)
		require.NoError(t, err)
		require.Equal(t, "image/jpeg", info.ContentType)
		require.Equal(t, v.SHA256, objects.Hash(data))
		require.NotContains(t, string(data), "Exif")
		require.NotContains(t, string(data), imagingtest.Place)
		require.False(t, info.Modified.After(before[output.Manifest].Modified), "%s is younger than the manifest", v.Key)
		picture, err := jpeg.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, image.Pt(v.Width, v.Height), picture.Bounds().Size())
		require.Equal(t, v.Width, v.Height)
		imagingtest.RequireQuadrants(t, picture)
		sizes[v.Name] = v.Width
	}
	require.Equal(t, map[string]int{"thumb": 60, "small": 240, "medium": 480, "large": 1080}, sizes)

	// Again, by the same job and by another: nothing changes, not even a time.
	for _, key := range []string{"north", "north-again"} {
		again := b.completed(append(args(key), "--again")...)
		require.Equal(t, "4 variants already there, nothing written", again.Output.Message)
		require.JSONEq(t, string(detail.Output.Output), string(again.Output.Output))
		require.NotEqual(t, detail.RunID, again.RunID)
		require.Equal(t, before, b.listing("front-door"))
	}
}

// manyVariants is a jobs file with a photo of twelve variants.
func manyVariants(key string) string {
	var variants []string
	for i := range 12 {
		variants = append(variants, fmt.Sprintf(`{ name = "v%02d", size = %d }`, i, 600-20*i))
	}
	return fmt.Sprintf(`
[jobs.generate_photo_variants_to_minio]
heartbeat_timeout = "PT4S"
max_retry_count = 0 # what fails is a worker and not the job

[jobs.generate_photo_variants_to_minio.%[1]s]
one_shot = {}

[jobs.generate_photo_variants_to_minio.%[1]s.spec]
bucket = "uploads"
key = "long.jpg"
prefix = "%[1]s"
variants = [%[2]s]
`, key, strings.Join(variants, ", "))
}

func TestKilledWorkersPhotoIsFinishedElsewhere(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, stacktest.StartOwn(t))
	b.upload("long.jpg", photo(t, random))
	for name, secondIsThere := range map[string]bool{"alive": true, "later": false} {
		killed(b, random, name, secondIsThere)
	}
	// What two killed runs left behind is what one that nobody disturbs makes.
	b.worker("backend")
	detail := b.completed("-f", writeFile(t, "jobs.toml", manyVariants("quiet")), "generate_photo_variants_to_minio.quiet")
	require.Equal(t, "12 variants written", detail.Output.Message)
	quiet := hashes(b, "quiet")
	require.Len(t, quiet, 12)
	require.Equal(t, quiet, hashes(b, "alive"))
	require.Equal(t, quiet, hashes(b, "later"))
}

// killed runs a job whose worker dies after it has stored a variant or more. The
// worker that takes over is there from the beginning, or comes later.
func killed(b *bench, random *rand.Rand, name string, secondIsThere bool) {
	b.Helper()
	jobID := "generate_photo_variants_to_minio." + name
	proxy := objectstest.NewProxy(b, b.st.S3.Endpoint)
	throughProxy := "DENDRA_S3_ENDPOINT=" + proxy.URL
	first := b.worker("backend", throughProxy)
	var second *stacktest.Process
	if secondIsThere {
		second = b.worker("backend", throughProxy)
	}
	// From one of its variants on, the worker does not hear that they are stored.
	after := 1 + random.Int64N(4)
	var written atomic.Int64
	reached, release := make(chan struct{}), make(chan struct{})
	proxy.After(func(request objectstest.Request) {
		if request.Method != http.MethodPut || request.Status != http.StatusOK {
			return
		}
		if n := written.Add(1); n >= after {
			if n == after {
				close(reached)
			}
			<-release
		}
	})
	b.ok("apply", "--yes", "-f", writeFile(b.T, "jobs.toml", manyVariants(name)))
	<-reached
	if secondIsThere {
		run, err := b.client.Runs.Get(b.Context(), client.RunRef{WorkflowID: "job/" + jobID})
		require.NoError(b, err)
		if isOf(run.Worker, second) {
			first, second = second, first
		}
		require.True(b, isOf(run.Worker, first), run.Worker)
	}
	first.Kill()
	proxy.After(nil)
	close(release)
	atKill := b.listing(name)
	require.GreaterOrEqual(b, len(atKill), int(after))
	require.Less(b, len(atKill), 12, "the run was to be cut off")
	require.Empty(b, manifests(atKill))
	if !secondIsThere {
		second = b.worker("backend")
	}
	live, err := b.client.Jobs.LiveWorkflow(b.Context(), jobID)
	require.NoError(b, err)
	// One-shots that run already are followed, not started again.
	detail := b.completed("-f", writeFile(b.T, "jobs.toml", manyVariants(name)), jobID)
	require.Equal(b, live.Workflow.RunID, detail.RunID)
	require.True(b, isOf(detail.Output.Worker, second), detail.Output.Worker)
	require.Equal(b, 1, detail.Output.Handovers)
	// The store may have been about to finish one more.
	require.GreaterOrEqual(b, detail.Output.Counts["existing"], int64(len(atKill)))
	require.EqualValues(b, 12, detail.Output.Counts["existing"]+detail.Output.Counts["written"])

	all := b.listing(name)
	require.Len(b, all, 13)
	require.Len(b, manifests(all), 1)
	for key, info := range atKill {
		require.Equal(b, info, all[key], "what the first worker stored stays")
	}
	b.drain(second)
}

// isOf reports whether a worker's identity is that of a process.
func isOf(identity string, w *stacktest.Process) bool {
	return strings.HasPrefix(identity, "backend@") && strings.HasSuffix(identity, fmt.Sprintf("/%d", w.PID()))
}

// hashes are the hashes of the variants under a prefix, by their names: those in
// the manifest, which have to be those of what is stored.
func hashes(b *bench, prefix string) map[string]string {
	b.Helper()
	keys := manifests(b.listing(prefix))
	require.Len(b, keys, 1)
	found := map[string]string{}
	for _, v := range readManifest(b, keys[0]).Variants {
		data, _, err := b.store.Get(b.Context(), "media", v.Key, 100<<20)
		require.NoError(b, err)
		require.Equal(b, v.SHA256, objects.Hash(data))
		found[v.Name] = v.SHA256
	}
	return found
}
