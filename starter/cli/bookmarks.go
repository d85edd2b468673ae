package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

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

func (i *invocation) bookmarksListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [JOB]",
		Short: "List bookmarks",
		Long:  "list shows the bookmarks of a job, or of all jobs, with who moved each last: a run, or a person.",
		Args:  arguments("[JOB]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &jobsv1.ListBookmarksRequest{}
			if len(args) > 0 {
				request.JobId = args[0]
			}
			list, err := listAll(cmd.Context(), i.api.Bookmarks.ListBookmarks, request)
			if err != nil {
				return err
			}
			i.noteEmpty("bookmark", len(list.GetBookmarks()))
			return i.emit(list, func(w io.Writer) error {
				t := newTable("JOB", "SOURCE", "POSITION (UTC)", "MOVED BY")
				for _, b := range list.GetBookmarks() {
					t.add(b.GetJobId(), b.GetSource(), utc(toTime(b.GetPosition())), b.GetMovedBy())
				}
				return t.write(w)
			})
		},
	}
}

func (i *invocation) bookmarksSetCommand() *cobra.Command {
	var flags verbFlags
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
			at, err := time.Parse(time.RFC3339, args[2])
			if err != nil {
				return misuse(cmd, "TIME %s is not of the form 2026-03-03T23:50:00-08:00", clean(args[2]))
			}
			if jobType, key, ok := strings.Cut(args[0], "."); !ok || jobType == "" || key == "" || strings.ContainsAny(args[0], "/ *>") {
				return misuse(cmd, "JOB %s is not the id of a job: TYPE.KEY", clean(args[0]))
			}
			if at.Year() < 1980 || at.After(i.Now().Add(24*time.Hour)) {
				return misuse(cmd, "TIME %s is before 1980 or in the future", clean(args[2]))
			}
			a := flags.args(verbs.SetBookmark, args[:2]...)
			a.Start = at
			return i.setBookmark(cmd.Context(), a, flags.yes)
		},
	}
	flags.register(cmd, verbs.SetBookmark)
	flags.registerYes(cmd)
	return cmd
}

// setBookmark asks before it moves a bookmark that is there and elsewhere.
func (i *invocation) setBookmark(ctx context.Context, a verbs.Args, yes bool) error {
	list, err := i.api.Bookmarks.ListBookmarks(ctx, &jobsv1.ListBookmarksRequest{JobId: a.Names[0], Source: a.Names[1]})
	if err != nil {
		return err
	}
	var from *jobsv1.Bookmark
	if len(list.GetBookmarks()) > 0 {
		from = list.GetBookmarks()[0]
	}
	if from != nil && !toTime(from.GetPosition()).Equal(a.Start) && !yes {
		question := fmt.Sprintf("%s It moves from %s to %s.", verbs.SetBookmark.Ask(verbs.To(from.GetJobId()+"/"+from.GetSource())), utc(toTime(from.GetPosition())), utc(a.Start))
		if err := i.ask(ctx, clean(question), verbs.SetBookmark.Command, "to move the bookmark", "nothing was moved"); err != nil {
			return err
		}
	}
	a.With = &jobsv1.SetBookmarkRequest{Revision: proto.Int64(from.GetRevision())}
	done, err := i.do(ctx, verbs.SetBookmark, a)
	if err != nil {
		return err
	}
	return i.tell(done)
}
