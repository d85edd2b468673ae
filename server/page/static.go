package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
)

// The script and the style are made by `make generate`.
//
//go:embed static
var staticFiles embed.FS

// version names the static files in their addresses: browsers keep them until they change.
var version = staticVersion()

func staticVersion() string {
	hash := sha256.New()
	_ = fs.WalkDir(staticFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			text, _ := staticFiles.ReadFile(path) // It is in the binary.
			_, _ = hash.Write(text)
		}
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:12]
}

func (p *Page) static() http.Handler {
	files := http.FileServerFS(staticFiles)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("v") == version {
			w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		}
		files.ServeHTTP(w, r)
	})
}
