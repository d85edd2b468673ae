package effects_test

import (
	"os"
	"testing"

	"github.com/dendrascience/dendra-jobs/activities/images/codecs"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
)

// pictures is the pool of all tests. Its processes are the test binary.
var pictures = process.NewPool(process.Settings{})

func TestMain(m *testing.M) {
	process.Main(codecs.All())
	code := m.Run()
	pictures.Close()
	os.Exit(code) //nolint:forbidigo // The main of the test binary.
}
