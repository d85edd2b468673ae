package page_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/server/page"
)

// TestUpload sends a file of three parts, of which one is refused for a while, to the store
// that signed URLs name, and has the form name it.
func TestUpload(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	b := newTab(t, 1280, 900)
	var puts, refuse atomic.Int64
	forward := stacktest.ReverseProxy(t, st.S3.Endpoint)
	public := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			puts.Add(1)
			if r.URL.Query().Get("partNumber") == "2" && refuse.Add(-1) >= 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		forward.ServeHTTP(w, r)
	}))
	config := objectstest.Config(st.S3)
	config.PublicEndpoint = public
	store, err := objects.New(config)
	require.NoError(t, err)
	server := api.New(api.Config{
		Client: client.New(st.Dial(t), st.Namespace), Types: []job.Type{imports.File(nil, nil, places.Places{})},
		Store: func() (*objects.Store, error) { return store, nil },
	})
	t.Cleanup(server.Close)
	mux := http.NewServeMux()
	mux.Handle("/dendra.jobs.v1.UploadService/", server.Handler())
	mux.Handle("/", page.New(page.Config{API: server.InProcess(), StoreOrigin: store.PublicOrigin()}))
	site := stacktest.Serve(t, mux)

	b.open(site + "/new?type=ImportFile&mode=one_shot")
	says := func(text string) {
		t.Helper()
		b.click("#upload-start")
		b.until("the upload to say: "+text, fmt.Sprintf(`!document.querySelector("#upload-state").textContent.endsWith("%%") && document.querySelector("#upload-start").textContent === "Upload"`))
		require.Contains(t, is[string](b, `document.querySelector("#upload-state").textContent`), text)
	}
	choose := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		b.do(chromedp.SetUploadFiles("#upload-file", []string{path}))
		return "uploadtest/imports/" + objects.Hash(content)[:16] + "/" + name
	}
	const organization = `document.getElementById("f-spec.organization")`
	says("Choose a file first.")
	content := bytes.Repeat([]byte("0123456789abcde\n"), 2<<20+1)
	key := choose("ten min.dat", content)
	says("Fill in the organization first.")
	b.script(organization + `.value = "up load"`)
	says("The file is not uploaded: ")
	b.script(organization + `.value = "uploadtest"`)
	refuse.Store(100)
	says("The file is not uploaded: part 2 of 3: the S3 store at ")
	refuse.Store(1)
	puts.Store(0)
	says("The file is uploaded.")
	require.LessOrEqual(t, puts.Load(), int64(3), "the parts that were there, and one that is sent twice")
	data, info, err := store.Get(t.Context(), "uploads", key, 1<<30)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, data))
	value := func(name string) string { return is[string](b, `document.getElementById("f-spec.`+name+`").value`) }
	require.Equal(t, []string{"uploads", key, info.ETag}, []string{value("bucket"), value("key"), value("etag")})
	puts.Store(0)
	says("The file is uploaded.")
	require.Zero(t, puts.Load())

	for _, length := range []int{1, 55, 56, 63, 64, 65, 119, 120, 128} {
		key := choose("short.dat", bytes.Repeat([]byte{byte(length)}, length))
		says("The file is uploaded.")
		require.Equal(t, key, value("key"), "the SHA-256 of %d bytes", length)
	}
	b.script(`document.getElementById("f-spec.station").value = "ridge"; document.getElementById("f-.key").value = "short"`)
	b.preview()
	require.Contains(t, is[string](b, `document.querySelector(".preview pre").textContent`), value("key"))
	b.until("the upload in the form that comes back", `!document.getElementById("upload").hidden`)
	b.requireCalm()
}
