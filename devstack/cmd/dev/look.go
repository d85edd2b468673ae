package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
)

// errSettings is what the commands below end with when they know no servers.
var errSettings = errors.New("where the servers are is not known: run `. .dev/env` first")

// lookers put data in and look at it, on a system that runs. All but board find it by the
// variables of .dev/env.
var lookers = map[string]func(ctx context.Context, args []string, out io.Writer) error{
	"board":  showBoard,
	"put":    put,
	"ls":     list,
	"influx": query,
}

// put stores a file as an object: put FILE BUCKET/KEY.
func put(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: dev put FILE BUCKET/KEY")
	}
	store, err := openStore()
	if err != nil {
		return err
	}
	bucket, key, found := strings.Cut(args[1], "/")
	if !found || key == "" {
		return fmt.Errorf("%q is not of the form BUCKET/KEY", args[1])
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	info, err := store.Put(ctx, objects.Object{
		Bucket: bucket, Key: key, Data: content, ContentType: mime.TypeByExtension(filepath.Ext(args[0])),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s/%s, %d bytes\n", info.Bucket, info.Key, info.Size)
	return err
}

// list shows the objects of a bucket: ls BUCKET[/PREFIX].
func list(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: dev ls BUCKET[/PREFIX]")
	}
	store, err := openStore()
	if err != nil {
		return err
	}
	bucket, prefix, _ := strings.Cut(args[0], "/")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for info, err := range store.List(ctx, bucket, prefix) {
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(table, "%d\t  %s/%s\n", info.Size, info.Bucket, info.Key)
	}
	return table.Flush()
}

func openStore() (*objects.Store, error) {
	config, err := objects.ConfigFromEnv(os.Getenv)
	if err != nil {
		return nil, errSettings
	}
	return objects.New(config)
}

// query shows the rows of an InfluxDB query: influx DATABASE QUERY.
func query(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: dev influx DATABASE QUERY")
	}
	url := os.Getenv("DENDRA_INFLUX_URL")
	if url == "" {
		return errSettings
	}
	series, err := influx.Query(ctx, influx.Config{URL: url, Timeout: 30 * time.Second}, args[0], args[1])
	if err != nil {
		return err
	}
	for _, rows := range series {
		_, _ = fmt.Fprintln(out, rows.Name)
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "  "+strings.Join(rows.Columns, "\t"))
		for _, row := range rows.Values {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = fmt.Sprint(cell)
			}
			_, _ = fmt.Fprintln(table, "  "+strings.Join(cells, "\t"))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}
