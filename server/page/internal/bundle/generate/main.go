// Command generate writes the script and the style of the status page. It runs in the root of
// the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dendrascience/dendra-jobs/server/page/internal/bundle"
)

func main() {
	if err := write("server/page"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder string) error {
	files, err := bundle.Files(folder)
	if err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(folder, path), text, 0o644); err != nil { //nolint:gosec // Everybody may read it.
			return err
		}
	}
	return nil
}
