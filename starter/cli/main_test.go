package cli_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain leads command lines that name no server to where nothing listens: at
// the usual address there may be one at work.
func TestMain(m *testing.M) {
	if err := os.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
