// Command generate prints the OpenAPI document of the Job API. It runs in the root of the
// repository.
package main

import (
	"fmt"
	"os"

	"github.com/dendrascience/dendra-jobs/internal/openapi"
)

func main() {
	text, err := openapi.Jobs(os.DirFS("proto"))
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
