// Package bundle makes the script and the style of the status page from their sources.
package bundle

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// Files makes what package page embeds: texts by their paths in its folder.
func Files(folder string) (map[string][]byte, error) {
	made := map[string][]byte{}
	for source, target := range map[string]string{"ts/page.ts": "static/page.js", "css/page.css": "static/page.css"} {
		result := api.Build(api.BuildOptions{
			EntryPoints: []string{filepath.Join(folder, source)}, Bundle: true, Format: api.FormatIIFE, Target: api.ES2022,
			MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Charset: api.CharsetUTF8,
		})
		var failed []error
		for _, message := range append(result.Errors, result.Warnings...) {
			failed = append(failed, fmt.Errorf("%s: %s", source, message.Text))
		}
		if len(failed) > 0 {
			return nil, errors.Join(failed...)
		}
		made[target] = result.OutputFiles[0].Contents
	}
	return made, nil
}
