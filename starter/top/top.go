package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Config says where the overview comes from and where it is shown.
type Config struct {
	// All shows jobs that have ended, and items of queues, from the beginning.
	All bool
	// Clients are those of the Job API. Required.
	Clients *api.Clients
	// Colors allows colors.
	Colors bool
	// In is the terminal that keys are read from. Required by Run.
	In io.Reader
	// Location is the zone of times. Defaults to time.Local.
	Location *time.Location
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Out is the terminal. Required by Run.
	Out io.Writer
}

// retryAfter is the wait before the overview is asked for again.
const retryAfter = 2 * time.Second

// Run shows the overview until the user quits or ctx ends.
func Run(ctx context.Context, config Config, options ...tea.ProgramOption) error {
	if config.Location == nil {
		config.Location = time.Local
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &model{all: config.All, ctx: ctx, clients: config.Clients, now: config.Now, place: config.Location, colors: config.Colors}
	options = append([]tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(config.In), tea.WithOutput(config.Out)}, options...)
	program := tea.NewProgram(m, options...)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		watch(ctx, config.Clients, program.Send)
	}()
	_, err := program.Run()
	cancel()
	<-watching
	if errors.Is(err, tea.ErrProgramKilled) && errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// watch sends what WatchOverview sends until ctx ends. When a stream ends it asks for all of
// it again: another server may answer, and revisions are those of one server.
func watch(ctx context.Context, clients *api.Clients, send func(tea.Msg)) {
	for ctx.Err() == nil {
		err := watchOnce(ctx, clients, send)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			send(lost{err})
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
		}
	}
}

func watchOnce(ctx context.Context, clients *api.Clients, send func(tea.Msg)) error {
	stream, err := clients.Overview.WatchOverview(ctx, &jobsv1.WatchOverviewRequest{})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // It is at its end, or left.
	for {
		message, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		send(read{message})
	}
}
