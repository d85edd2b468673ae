package effects_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/platform/effects"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

var atDefault = places.Places{TargetBucket: "media", UploadBuckets: []string{"uploads"}}

// gallery are the pictures of an organization.
type gallery struct {
	testing.TB
	store *objects.Store
	id    string
}

func newGallery(t testing.TB, store *objects.Store) *gallery {
	t.Helper()
	return &gallery{TB: t, store: store, id: platformtest.NewID()}
}

func (g *gallery) prefix() string { return "photos/" + g.id }

// make uploads a picture and makes its variants. It gives the keys of what was made, the manifest last.
func (g *gallery) make(name string, ladders ...images.Ladder) (keys []string) {
	g.Helper()
	key := g.id + "/" + name
	objectstest.PutPicture(g, g.store, "uploads", key)
	for _, ladder := range ladders {
		keys = append(keys, g.variants(g.store, key, ladder)...)
	}
	return keys
}

func (g *gallery) variants(store *objects.Store, key string, ladder images.Ladder) (keys []string) {
	g.Helper()
	typ := images.PhotoVariants(store, pictures)
	result, err := typ.Handle(g.Context(), jobtest.NewRun(jobtest.NewJob(typ, "test", job.Trigger{OneShot: &job.OneShot{}},
		images.PhotoSpec{Bucket: "uploads", Key: key, Prefix: g.prefix(), Ladder: ladder})))
	require.NoError(g, err)
	var output images.Output
	require.NoError(g, json.Unmarshal(result.Output, &output))
	for _, v := range output.Variants {
		keys = append(keys, v.Key)
	}
	return append(keys, output.Manifest)
}

func (g *gallery) remove(bucket, key string) {
	g.Helper()
	require.NoError(g, g.store.Remove(g.Context(), bucket, key))
}

func (g *gallery) put(key, contentType, cacheControl string) {
	g.Helper()
	_, err := g.store.Put(g.Context(), objects.Object{Bucket: "media", Key: key, Data: []byte(key), ContentType: contentType, CacheControl: cacheControl})
	require.NoError(g, err)
}

// keys are all below what the organization's begin with.
func (g *gallery) keys() (keys []string) {
	g.Helper()
	for info, err := range g.store.List(g.Context(), "media", g.prefix()) {
		require.NoError(g, err)
		keys = append(keys, info.Key)
	}
	return keys
}

// later is a moment that what is there is older than by the grace time, and what is stored from
// now on is not.
func (g *gallery) later() func() time.Time {
	g.Helper()
	probe := objects.Object{Bucket: "uploads", Key: g.id + "/clock", Data: []byte("x"), ContentType: "text/plain"}
	modified := func() time.Time {
		_, err := g.store.Put(g.Context(), probe)
		require.NoError(g, err)
		info, err := g.store.Stat(g.Context(), probe.Bucket, probe.Key)
		require.NoError(g, err)
		return info.Modified
	}
	began, now := modified(), time.Time{}
	stacktest.WaitFor(g, "the store's clock to go on", func() (bool, error) {
		now = modified()
		return now.Sub(began) >= 2*time.Second, nil
	})
	now = now.Add(grace.Std() - time.Second)
	return func() time.Time { return now }
}

const grace = job.Duration(10 * time.Minute)

func reconcileImages(typ job.Type, spec effects.ImagesSpec, options ...jobtest.Option) *jobtest.Run {
	spec.Grace = grace
	return jobtest.NewRun(jobtest.NewJob(typ, "test", job.Trigger{OneShot: &job.OneShot{}}, spec), options...)
}

func imagesReport(t testing.TB, result job.Result) (r effects.ImagesReport) {
	t.Helper()
	require.NoError(t, json.Unmarshal(result.Output, &r))
	return r
}

// TestReconcileImages: of all that is in the bucket exactly the orphans go.
func TestReconcileImages(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, stacktest.Start(t).S3)
	one, two := newGallery(t, store), newGallery(t, store)
	want := map[string][]string{}
	for _, g := range []*gallery{one, two} {
		g.make("live", "default")
		orphans := g.make("cut-off", "default")
		g.remove("media", orphans[len(orphans)-1])
		gone := g.make("gone", "default")
		g.remove("uploads", g.id+"/gone")
		changed := g.make("changed", "default") // other content under the same key
		objectstest.PutPicture(t, store, "uploads", g.id+"/changed")
		g.make("stale", "release2")
		replaced := g.make("both", "release2", "default")[:8]
		incomplete := g.make("incomplete", "default")
		g.remove("media", incomplete[0])
		if g == one {
			want["unnamed"], want["gone"], want["replaced"] = orphans[:4], append(gone, changed...), replaced
		}
		// Foreign objects, and some that look like ours.
		folder := strings.Join(strings.Split(orphans[0], "/")[:3], "/")
		g.put(g.prefix()+"/readme.txt", "text/plain", "")
		g.put(folder+"/cover.jpg", "image/jpeg", "public, max-age=31536000, immutable")
		g.put(folder+"/00000000-foreign.jpg", "image/jpeg", "no-cache")
		g.put(folder+"/00000000-foreign.html", "text/html", "public, max-age=31536000, immutable")
		g.put(g.prefix()+"0/0123456789abcdef0123456789abcdef/00000000-thumb.jpg", "image/jpeg", "public, max-age=31536000, immutable")
		damaged := g.prefix() + "/fedcba9876543210fedcba9876543210/00000000-"
		g.put(damaged+"thumb.jpg", "image/jpeg", "public, max-age=31536000, immutable")
		g.put(damaged+"00000000.json", "application/json", "no-cache")
	}
	now := one.later()
	flight := one.make("in-flight", "default")
	one.remove("media", flight[4]) // It comes last.
	before, others := one.keys(), two.keys()
	typ := effects.ReconcileImagesAt(store, nil, atDefault, now)
	spec := effects.ImagesSpec{Prefixes: []string{one.prefix()}}

	result, err := typ.Handle(t.Context(), reconcileImages(typ, spec))
	require.NoError(t, err)
	require.Equal(t, before, one.keys(), "without an order nothing changes")
	counts := result.Counts
	// Two of the foreign objects have the shape of ours.
	require.Equal(t, []int64{4 + 2, 10, 8, 4, 1, 1, 0, 0}, []int64{
		counts["unnamed"], counts["gone"], counts["replaced"], counts["recent"], counts["stale"], counts["incomplete"], counts["removed"], counts["queued"],
	}, result.Message)
	require.Equal(t, int64(2), counts["foreign"])

	gone := map[string]bool{}
	for _, step := range []struct {
		kind string
		spec effects.ImagesSpec
	}{
		{"unnamed", effects.ImagesSpec{RemoveUnnamed: true}}, {"gone", effects.ImagesSpec{RemoveGone: true}}, {"replaced", effects.ImagesSpec{RemoveReplaced: true}},
	} {
		step.spec.Prefixes = spec.Prefixes
		for range 2 { // Again: nothing is left to remove.
			result, err = typ.Handle(t.Context(), reconcileImages(typ, step.spec))
			require.NoError(t, err)
			removed := int64(0)
			for _, key := range want[step.kind] {
				if !gone[key] {
					gone[key] = true
					removed++
				}
			}
			require.Equal(t, removed, result.Counts["removed"], "%s: %s", step.kind, result.Message)
			require.Equal(t, slices.DeleteFunc(slices.Clone(before), func(key string) bool { return gone[key] }), one.keys(), step.kind)
		}
	}
	require.Equal(t, others, two.keys(), "another organization's stay")
	kept := strings.Join(imagesReport(t, result).Stages[0].Kept, "\n")
	require.Contains(t, kept, "manifest "+one.prefix()+"/fedcba9876543210fedcba9876543210/00000000-00000000.json cannot be read")

	jobs := jobtest.NewJobs()
	spec.Remake = true
	result, err = typ.Handle(t.Context(), reconcileImages(typ, spec, jobtest.WithJobs(jobs)))
	require.NoError(t, err)
	require.Equal(t, int64(2), result.Counts["queued"])
	made := map[string]bool{}
	for _, j := range jobs.Enqueued() {
		require.Equal(t, "images."+one.id, j.Queue())
		var photo images.PhotoSpec
		require.NoError(t, json.Unmarshal(j.Spec, &photo))
		require.Equal(t, []string{"media", one.prefix()}, []string{photo.TargetBucket, photo.Prefix})
		made[photo.Key] = true
		one.variants(store, photo.Key, photo.Ladder)
	}
	require.Equal(t, map[string]bool{one.id + "/stale": true, one.id + "/incomplete": true}, made)
	result, err = typ.Handle(t.Context(), reconcileImages(typ, spec))
	require.NoError(t, err)
	require.Equal(t, []int64{0, 0, 0}, []int64{result.Counts["stale"], result.Counts["incomplete"], result.Counts["queued"]}, result.Message)
}

// TestReconcileImagesWhileARunComes: the manifest of a run that finds old variants is stored after
// the bucket was listed, right before they would be removed.
func TestReconcileImagesWhileARunComes(t *testing.T) {
	t.Parallel()
	s3 := stacktest.Start(t).S3
	proxy := objectstest.NewProxy(t, s3.Endpoint)
	direct := objectstest.Open(t, s3)
	g := newGallery(t, direct)
	keys := g.make("photo", "default")
	g.remove("media", keys[4])
	now := g.later()
	folder := strings.Join(strings.Split(keys[0], "/")[:3], "/") + "/"
	var once sync.Once
	proxy.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("prefix") == folder {
			once.Do(func() { g.variants(direct, g.id+"/photo", "default") })
		}
		return false
	})
	s3.Endpoint = proxy.URL
	typ := effects.ReconcileImagesAt(objectstest.Open(t, s3), nil, atDefault, now)
	result, err := typ.Handle(t.Context(), reconcileImages(typ, effects.ImagesSpec{Prefixes: []string{g.prefix()}, RemoveUnnamed: true}))
	require.NoError(t, err)
	require.Zero(t, result.Counts["removed"], result.Message)
	slices.Sort(keys)
	require.Equal(t, keys, g.keys())
}

// TestRemakeObeysTheRulesOfUploads: a manifest of an organization that is being deleted, or that
// names what is no upload of it, makes no job.
func TestRemakeObeysTheRulesOfUploads(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	g := &gallery{TB: t, store: s.store, id: s.organization.GetId()}
	g.make("own", "release2")
	objectstest.PutPicture(t, g.store, "uploads", "0123456789abcdef01234567/foreign-"+g.id)
	g.variants(g.store, "0123456789abcdef01234567/foreign-"+g.id, "release2")
	typ := effects.ReconcileImages(s.store, s.api, atDefault)
	queued := func() (int, string) {
		jobs := jobtest.NewJobs()
		result, err := typ.Handle(t.Context(), reconcileImages(typ, effects.ImagesSpec{Prefixes: []string{g.prefix()}, Remake: true}, jobtest.WithJobs(jobs)))
		require.NoError(t, err)
		require.Len(t, jobs.Enqueued(), int(result.Counts["queued"]))
		return len(jobs.Enqueued()), strings.Join(imagesReport(t, result).Stages[0].Kept, "\n")
	}
	n, kept := queued()
	require.Equal(t, 1, n)
	require.Contains(t, kept, "foreign-"+g.id+" is not made again: ")
	_, err := s.api.Organizations.DeleteOrganization(t.Context(), &platformv1.DeleteOrganizationRequest{Id: g.id})
	require.NoError(t, err)
	n, _ = queued()
	require.Zero(t, n)
}

// TestReconcileImagesGoesOn: a run that is stopped anywhere counts and removes all, once.
func TestReconcileImagesGoesOn(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, stacktest.Start(t).S3)
	g := newGallery(t, store)
	const folders = 150
	for n := range folders {
		g.put(fmt.Sprintf("%s/%032x/00000000-thumb.jpg", g.prefix(), n), "image/jpeg", "public, max-age=31536000, immutable")
		if n%3 == 0 {
			g.put(fmt.Sprintf("%s/%032x/foreign", g.prefix(), n), "text/plain", "")
		}
	}
	now := g.later()
	typ := effects.ReconcileImagesAt(store, nil, atDefault, now)
	run := reconcileImages(typ, effects.ImagesSpec{Prefixes: []string{g.prefix()}, RemoveUnnamed: true},
		jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) { r.Stop() }))
	attempts := 0
	for {
		result, err := typ.Handle(t.Context(), run)
		if attempts++; err == nil {
			require.Equal(t, []int64{folders, folders, folders / 3}, []int64{result.Counts["objects"], result.Counts["removed"], result.Counts["foreign"]})
			break
		}
		require.ErrorIs(t, err, job.ErrStopped)
		run = run.NextAttempt()
	}
	require.Greater(t, attempts, 1)
	require.Len(t, g.keys(), folders/3)
}

// catalogue is an S3 store of so many uploads with five objects each, which it makes up.
type catalogue struct {
	uploads  int
	recipe   string
	requests map[string]int
	mu       sync.Mutex
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// folder names begin with the number, so that they are in order.
func (c *catalogue) content(n int) string { return fmt.Sprintf("%08x%s", n, hash(fmt.Sprint(n))[8:]) }

func (c *catalogue) keys(n int) (keys []string) {
	folder := "photos/" + c.content(n)[:32] + "/" + hash(c.recipe)[:8] + "-"
	keys = append(keys, folder+hash(fmt.Sprintf("uploads/%d", n))[:8]+".json")
	for _, name := range []string{"large", "medium", "small", "thumb"} {
		keys = append(keys, folder+name+".jpg")
	}
	return keys
}

func (c *catalogue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests[r.Method]++
	c.mu.Unlock()
	w.Header().Set("Last-Modified", "Fri, 06 Mar 2026 12:00:00 GMT")
	var n int
	switch path := r.URL.Path; {
	case r.URL.Query().Get("list-type") == "2":
		c.list(w, max(r.URL.Query().Get("start-after"), r.URL.Query().Get("continuation-token")))
	case strings.HasPrefix(path, "/uploads/"):
		_, _ = fmt.Sscanf(path, "/uploads/%d", &n)
		w.Header().Set("Etag", fmt.Sprintf(`"%d"`, n))
		w.Header().Set("Content-Length", "1")
	case strings.HasSuffix(path, ".json"):
		_, _ = fmt.Sscanf(path, "/media/photos/%08x", &n)
		variants := make([]images.Variant, 4)
		for i, key := range c.keys(n)[1:] {
			variants[i].Key = key
		}
		text := job.EncodeJSON(images.Manifest{
			Format: "dendra.image-variants/1", Recipe: json.RawMessage(c.recipe), Variants: variants,
			Source: images.Source{Bucket: "uploads", Key: fmt.Sprint(n), ETag: fmt.Sprint(n), Bytes: 1, SHA256: c.content(n)},
		})
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// list writes the thousand keys after one.
func (c *catalogue) list(w http.ResponseWriter, after string) {
	first := 0
	if after != "" {
		_, _ = fmt.Sscanf(after, "photos/%08x", &first)
	}
	var text strings.Builder
	last, count := "", 0
	for n := first; n < c.uploads && count < 1000; n++ {
		for _, key := range c.keys(n) {
			if key > after && count < 1000 {
				fmt.Fprintf(&text, "<Contents><Key>%s</Key><LastModified>2026-03-06T12:00:00.000Z</LastModified><ETag>x</ETag><Size>9</Size></Contents>", key)
				last = key
				count++
			}
		}
	}
	fmt.Fprintf(w, "<ListBucketResult><Name>media</Name><KeyCount>%d</KeyCount><IsTruncated>%t</IsTruncated><NextContinuationToken>%s</NextContinuationToken>%s</ListBucketResult>",
		count, count == 1000, last, text.String())
}

// TestReconcileImagesInFlatMemory goes through many objects: a million in the long form.
func TestReconcileImagesInFlatMemory(t *testing.T) { //nolint:paralleltest // It measures memory.
	uploads := stacktest.Size(4000, 200_000)
	spec := images.PhotoSpec{Quality: 82}
	c := &catalogue{uploads: uploads, requests: map[string]int{}, recipe: `{"version":1,"kind":"photo","variants":null}`}
	require.NotEqual(t, spec.RecipeHash(), hash(c.recipe)[:8])
	store, err := objects.New(objects.Config{AccessKey: "a", Endpoint: stacktest.Serve(t, c), SecretKey: "b"})
	require.NoError(t, err)
	var heaps []uint64
	checkpoints := 0
	typ := effects.ReconcileImages(store, nil, atDefault)
	run := reconcileImages(typ, effects.ImagesSpec{Prefixes: []string{"photos"}, RemoveUnnamed: true}, jobtest.OnCheckpoint(func(*jobtest.Run, jobtest.Checkpoint) {
		if checkpoints++; checkpoints%max(1, uploads/64/20) == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heaps = append(heaps, m.HeapAlloc)
		}
	}))
	began := time.Now()
	result, err := typ.Handle(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, []int64{int64(5 * uploads), int64(uploads), int64(uploads), 0}, []int64{
		result.Counts["objects"], result.Counts["manifests"], result.Counts["stale"], result.Counts["removed"],
	}, result.Message)
	first, most := heaps[2], slices.Max(heaps[2:])
	t.Logf("%d objects in %s with %v requests; heap %d kB at first, %d kB at most", 5*uploads, time.Since(began).Round(time.Millisecond), c.requests, first>>10, most>>10)
	require.Less(t, most, first+8<<20, "bytes of heap")
}
