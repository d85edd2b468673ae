// Command generate adds to the list of the contract what is new in it. It runs in the root of
// the repository, and fails if the contract breaks clients.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/breaking"
)

func main() {
	if err := update(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func update() error {
	former, err := os.ReadFile(breaking.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	present := breaking.List(breaking.Jobs()...)
	if missing := breaking.Missing(strings.Split(string(former), "\n"), present); len(missing) > 0 {
		return fmt.Errorf("the contract breaks clients, which rely on these lines of %s:\n%s", breaking.File, strings.Join(missing, "\n"))
	}
	return os.WriteFile(breaking.File, []byte(strings.Join(present, "\n")+"\n"), 0o644) //nolint:gosec // A file of the repository.
}
