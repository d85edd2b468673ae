package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// runLog is the log of a run, or of the iterations of a continuous job.
type runLog struct {
	name      runlogs.Name
	iteration int64 // only its lines, if it is not 0
	ended     func(context.Context) (bool, error)
	// of is the run. Of a continuous job it has the type alone, of an iteration that its job
	// has forgotten nothing.
	of client.Run
}

// ListRunLogs implements the service.
func (s *runService) ListRunLogs(ctx context.Context, r *jobsv1.ListRunLogsRequest) (*jobsv1.ListRunLogsResponse, error) {
	log, err := s.runLog(ctx, r.GetName())
	if err != nil {
		return nil, err
	}
	log.ended = nil
	response := &jobsv1.ListRunLogsResponse{}
	fits := fitsLog(r)
	lines, ofHandler := 0, 0
	err = s.readLog(ctx, log, 0, func(line *jobsv1.LogLine) error {
		lines++
		if text := line.GetMessage(); text != runlogs.AttemptBegan && text != runlogs.AttemptEnded {
			ofHandler++
		}
		if fits(line) {
			response.Lines = append(response.Lines, line)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case lines == 0:
		response.Note = s.whyNoLog(ctx, log)
	case len(response.GetLines()) == 0:
		response.Note = fmt.Sprintf("None of its %s fits.", plantext.Counted(lines, "line", "lines"))
	case ofHandler == 0:
		response.Note = "The handler logged nothing: these lines are its worker's."
	}
	return response, nil
}

// fitsLog tells lines that a request asks for.
func fitsLog(r interface {
	GetLevel() string
	GetSearch() string
},
) func(*jobsv1.LogLine) bool {
	search := strings.ToLower(r.GetSearch())
	least, all := levelOf(r.GetLevel()), r.GetLevel() == ""
	return func(line *jobsv1.LogLine) bool {
		return (all || levelOf(line.GetLevel()) >= least) && strings.Contains(strings.ToLower(plantext.LogSays(line)), search)
	}
}

// levelOf is the level of a word. What is none counts as INFO.
func levelOf(word string) (level slog.Level) {
	_ = level.UnmarshalText([]byte(word)) // It stays INFO.
	return level
}

// WatchRunLogs implements the service.
func (s *runService) WatchRunLogs(ctx context.Context, r *jobsv1.WatchRunLogsRequest, stream jobsv1connect.RunServiceWatchRunLogsServerStream) error {
	log, err := s.runLog(ctx, r.GetName())
	if err != nil {
		return err
	}
	fits := fitsLog(r)
	return s.readLog(ctx, log, uint64(r.GetAfter()), func(line *jobsv1.LogLine) error {
		if !fits(line) {
			return nil
		}
		return stream.Send(&jobsv1.WatchRunLogsResponse{Line: line})
	})
}

// runLog finds the log that a request names.
func (s *runService) runLog(ctx context.Context, name string) (runLog, error) {
	if !strings.ContainsAny(name, "#@/") { // No workflow id is without a slash.
		live, err := s.Client.Jobs.Live(ctx, name)
		if err != nil {
			return runLog{}, err
		}
		if live.Job.Mode() != job.ModeContinuous {
			return runLog{}, badRequest(violation{"name", fmt.Sprintf("job %s is not continuous: name one of its runs", name)})
		}
		log := loopLog(name, 0, func(context.Context) (bool, error) { return false, nil })
		log.of.Type = live.Job.Type
		return log, nil
	}
	named, err := readRunName(name)
	if err != nil {
		return runLog{}, err
	}
	if named.iteration > 0 {
		return loopLog(named.jobID, named.iteration, func(ctx context.Context) (bool, error) {
			run, err := s.iteration(ctx, named)
			if errors.Is(err, client.ErrNotFound) {
				return true, nil // Its job has forgotten it: it ended long ago.
			}
			return err == nil && !run.Status.Open(), err
		}), nil
	}
	run, err := jobRun(ctx, s.Client, named.RunRef)
	if err != nil {
		return runLog{}, err
	}
	return runLog{
		name: runlogs.Name{JobID: run.JobID, RunID: run.RunID}, of: run.Run,
		ended: func(ctx context.Context) (bool, error) {
			now, err := s.Client.Runs.Get(ctx, run.RunRef)
			return err == nil && !now.Status.Open(), err
		},
	}, nil
}

// loopLog is the log of a continuous job, or of one of its iterations.
func loopLog(jobID string, iteration int64, ended func(context.Context) (bool, error)) runLog {
	return runLog{name: runlogs.Name{JobID: jobID, Loop: true}, iteration: iteration, ended: ended}
}

// readLog gives the lines of a log after a sequence to send.
func (s *runService) readLog(ctx context.Context, log runLog, after uint64, send func(*jobsv1.LogLine) error) error {
	nats, err := s.pipeline()
	if err != nil {
		return err
	}
	return runlogs.Read(ctx, nats, log.name, after, log.ended, func(line runlogs.Line) error {
		m := lineMessage(line)
		if log.iteration != 0 && m.GetIteration() != log.iteration {
			return nil
		}
		return send(m)
	})
}

// lineFields are attributes that each line of a log has: the caller knows them, or they are
// fields of the message.
var lineFields = []string{"job_id", "job_type", "workflow_id", "run_id", "attempt"}

func lineMessage(line runlogs.Line) *jobsv1.LogLine {
	m := &jobsv1.LogLine{Time: timeOf(line.Time), Level: line.Level, Message: line.Message, Sequence: int64(line.Sequence)}
	var runID string
	if json.Unmarshal(line.Attributes["run_id"], &runID) == nil {
		_, number, _ := strings.Cut(runID, "/")
		m.Iteration, _ = strconv.ParseInt(number, 10, 64) // 0 of a run.
	}
	var attempt int32
	if json.Unmarshal(line.Attributes["attempt"], &attempt) == nil {
		m.Attempt = attempt
	}
	for name, value := range line.Attributes {
		if slices.Contains(lineFields, name) {
			continue
		}
		if m.Attributes == nil {
			m.Attributes = &structpb.Struct{Fields: map[string]*structpb.Value{}}
		}
		m.Attributes.Fields[name] = valueOf(value)
	}
	return m
}
