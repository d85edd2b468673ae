package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// maxBookmarks bounds what is listed.
const maxBookmarks = 100_000

// setBy is who moved a bookmark that no run moved.
const setBy = "starter bookmarks set"

func (i *invocation) bookmarksCommand() *cobra.Command {
	cmd := group("bookmarks", "List and set how far extract jobs have read their sources",
		i.bookmarksListCommand(), i.bookmarksSetCommand())
	cmd.Long = `bookmarks shows and changes the bookmarks of extract jobs. Everything before the
position of a bookmark is published. A source is a logger's serial number, or
STATION=TABLE of a LoggerNet server.

Bookmarks are in the NATS server; Temporal is not needed.`
	i.natsFlag(cmd)
	return cmd
}

// bookmarkRow is a bookmark in the list.
type bookmarkRow struct {
	Job      string    `json:"job"`
	Source   string    `json:"source"`
	Position time.Time `json:"position"`
	MovedBy  string    `json:"moved_by,omitempty"`
	Revision uint64    `json:"revision"`
}

func rowOfBookmark(b pipeline.Bookmark) bookmarkRow {
	job, source, _ := strings.Cut(b.Key, "/")
	return bookmarkRow{Job: job, Source: source, Position: b.Position, MovedBy: b.UpdatedBy, Revision: b.Revision}
}

func (i *invocation) bookmarksListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [JOB]",
		Short: "List bookmarks",
		Long:  "list shows the bookmarks of a job, or of all jobs, with the run that moved each last.",
		Args:  arguments("[JOB]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := i.connectPipeline(cmd.Context())
			if err != nil {
				return err
			}
			done := i.waiting("NATS")
			bookmarks, err := client.Bookmarks(cmd.Context(), maxBookmarks)
			done()
			if err != nil {
				return err
			}
			rows := []bookmarkRow{}
			for _, b := range bookmarks {
				if row := rowOfBookmark(b); len(args) == 0 || row.Job == args[0] {
					rows = append(rows, row)
				}
			}
			slices.SortFunc(rows, func(a, b bookmarkRow) int {
				return cmp.Or(strings.Compare(a.Job, b.Job), strings.Compare(a.Source, b.Source))
			})
			i.noteEmpty("bookmark", len(rows))
			return i.emit(rows, func(w io.Writer) error {
				t := newTable("JOB", "SOURCE", "POSITION (UTC)", "MOVED BY")
				for _, row := range rows {
					t.add(row.Job, row.Source, row.Position.UTC().Format(time.RFC3339), row.MovedBy)
				}
				return t.write(w)
			})
		},
	}
}

func (i *invocation) bookmarksSetCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "set JOB SOURCE TIME",
		Short: "Set how far a source was read",
		Long: `set moves the bookmark of a source to a time, or makes one. The job reads from that
time on. TIME is RFC 3339, with the offset of the clock that it is of:
2026-03-03T23:50:00-08:00.

set asks before it moves a bookmark that exists: forward leaves out what lies between,
back reads it again. A run that is under way and moves the same bookmark fails once
with StaleBookmark, and goes on from the time that was set.`,
		Args: arguments("JOB", "SOURCE", "TIME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			key, err := bookmarkKey(cmd, args[0], args[1])
			if err != nil {
				return err
			}
			at, err := time.Parse(time.RFC3339, args[2])
			if err != nil {
				return misuse(cmd, "TIME %s is not of the form 2026-03-03T23:50:00-08:00", clean(args[2]))
			}
			if at.Year() < 1980 || at.After(i.Now().Add(24*time.Hour)) {
				return misuse(cmd, "TIME %s is before 1980 or in the future", clean(args[2]))
			}
			client, err := i.connectPipeline(ctx)
			if err != nil {
				return err
			}
			done := i.waiting("NATS")
			from, err := client.Bookmark(ctx, key)
			done()
			if err != nil {
				return err
			}
			if from.Revision > 0 && !from.Position.Equal(at) && !yes {
				question := fmt.Sprintf("Move the bookmark of %s from %s to %s?", clean(key),
					from.Position.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
				if err := i.ask(ctx, question, "bookmarks set", "to move the bookmark", "nothing was moved"); err != nil {
					return err
				}
			}
			next, err := client.SetBookmark(ctx, from, at, setBy)
			if err != nil {
				return err
			}
			return i.emit(rowOfBookmark(next), func(io.Writer) error {
				if from.Revision == 0 {
					return i.print("Bookmark of %s made at %s.", clean(key), next.Position.Format(time.RFC3339))
				}
				return i.print("Bookmark of %s moved from %s to %s.", clean(key), from.Position.UTC().Format(time.RFC3339), next.Position.Format(time.RFC3339))
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// bookmarkKey is the key of a source's bookmark.
func bookmarkKey(cmd *cobra.Command, job, source string) (string, error) {
	jobType, key, ok := strings.Cut(job, ".")
	if !ok || jobType == "" || key == "" || strings.ContainsAny(job, "/ *>") {
		return "", misuse(cmd, "JOB %s is not the id of a job: TYPE.KEY", clean(job))
	}
	if station, table, found := strings.Cut(source, "="); found {
		source = pipeline.SafeName(station) + "=" + pipeline.SafeName(table) // as the job names it
	}
	return pipeline.BookmarkKey(job, source), nil
}
