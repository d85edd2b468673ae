package cli_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// longID has the length that ids of jobs of integrations have.
const longID = "extract_hobo_time_frame.reserve-blue-oak-upper-meadow-station-17"

func longJobs() []*jobsv1.Job {
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }
	owner := &jobsv1.JobOptions{Owner: "organization:ucnrs"}
	return []*jobsv1.Job{
		{
			Id: longID, Mode: &jobsv1.Job_Recurring{}, Options: owner,
			State: &jobsv1.JobState{
				Status: jobsv1.JobStatus_JOB_STATUS_FAILING, LastStartTime: at(-50 * time.Hour), NextStartTime: at(30 * time.Hour),
				Reason: "Unavailable: the vendor's server does not answer since it is rebuilt",
			},
		},
		{
			Id: "generate_photo_variants_to_minio.ridge", Mode: &jobsv1.Job_OneShot{}, Options: owner,
			State: &jobsv1.JobState{
				Status: jobsv1.JobStatus_JOB_STATUS_FAILED, LastStartTime: at(-time.Minute), Reason: "NotAnImage: ridge.jpg is no image",
			},
		},
	}
}

func longRuns() []*jobsv1.Run {
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }
	return []*jobsv1.Run{
		{
			JobId: longID, Name: "job/" + longID + "-2026-05-01T12:00:00Z@01a1fceb-4750-7a6d-91fd-06e0ddbe2582",
			Status: jobsv1.RunStatus_RUN_STATUS_COMPLETED, ScheduledTime: at(-time.Hour), StartTime: at(-time.Hour), EndTime: at(-time.Hour + 253*time.Millisecond),
			Lateness: durationpb.New(12 * time.Millisecond), Attempts: 1, UpdateTime: at(-time.Hour), Worker: "extract@field-station-1/5515",
			Message: "12694 observations of 2 loggers up to 2026-05-01T11:00:00Z", Counts: map[string]int64{"observations": 12694, "prepared": 1154},
		},
		{
			JobId: "hash_files.now", Name: "job/hash_files.now@01a1fceb-4750-7a6d-91fd-06e0ddbe2583", Status: jobsv1.RunStatus_RUN_STATUS_WAITING,
			StartTime: at(-time.Minute), UpdateTime: at(-time.Minute), WaitReason: "no worker of type backend has taken it",
		},
	}
}

func longQueue() *jobsv1.Queue {
	item := func(sequence int64) *jobsv1.QueueItem {
		return &jobsv1.QueueItem{Sequence: sequence, JobId: fmt.Sprintf("%s-%d", longID, sequence), AcceptTime: timestamppb.New(noon.Add(-time.Minute))}
	}
	running := item(3)
	running.StartTime = timestamppb.New(noon.Add(-time.Minute))
	return &jobsv1.Queue{
		Name: "photos", Status: jobsv1.QueueStatus_QUEUE_STATUS_RUNNING, Accepted: 5, Waiting: 2, Running: running, Next: []*jobsv1.QueueItem{item(4), item(5)},
		Recent: []*jobsv1.FinishedItem{{
			Sequence: 2, JobId: longID + "-2", Status: jobsv1.ItemStatus_ITEM_STATUS_FAILED, StartTime: timestamppb.New(noon.Add(-time.Hour)),
			EndTime: timestamppb.New(noon.Add(-time.Minute)), ErrorMessage: "the image has 900000000 pixels, more than the 100000000 that are allowed",
		}},
	}
}

func longLoads() (loads []*jobsv1.Load) {
	for _, flow := range []string{"live", "replay"} {
		for _, mirror := range []string{"default", "second"} {
			loads = append(loads, &jobsv1.Load{
				Location: "common-research-1", Flow: flow, Mirror: mirror, Status: jobsv1.LoadStatus_LOAD_STATUS_OK, Waiting: 1234567,
				OldestTime: timestamppb.New(noon.Add(-time.Hour)), PointsPerSecond: 812, LoaderReports: true,
				UpdateTime: timestamppb.New(noon), LastWriteTime: timestamppb.New(noon.Add(-time.Second)),
			})
		}
	}
	return loads
}

func longOverview() *jobsv1.Overview {
	o := &jobsv1.Overview{ReadTime: timestamppb.New(noon), Loads: longLoads(), Notes: []string{strings.Repeat("A note is long. ", 10)}}
	for _, station := range []string{"1", "2"} {
		o.Jobs = append(o.Jobs, &jobsv1.JobOverview{
			Id: longID + station, Status: jobsv1.JobStatus_JOB_STATUS_FAILING, Outcomes: strings.Repeat("C", 29) + "F", Reason: "no route to the logger",
		})
	}
	return o
}

func longAlerts() []*jobsv1.Alert {
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }
	return []*jobsv1.Alert{
		{
			Name: "server-down/influx", Rule: jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN, Object: "influx", Severity: jobsv1.AlertSeverity_ALERT_SEVERITY_CRITICAL,
			FireTime: at(-4 * time.Minute), Text: "InfluxDB at http://influx.internal:8086 does not answer.", Cure: "Start it, or have its network mended.",
		},
		{
			Name: "job-failing/" + longID, Rule: jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, Object: longID, Severity: jobsv1.AlertSeverity_ALERT_SEVERITY_WARNING,
			FireTime: at(-time.Hour), Text: "Job " + longID + " is failing.",
		},
	}
}

// TestTablesFitTheScreen writes lists with long ids and texts on screens of many widths.
func TestTablesFitTheScreen(t *testing.T) {
	t.Parallel()
	var out, notes strings.Builder
	on := func(width int) cli.Program {
		out.Reset()
		notes.Reset()
		p := still(plain)
		p.Stdout, p.Stderr = &out, &notes
		p.Width = func(any) int { return width }
		return p
	}
	lists := map[string]func(p cli.Program, w io.Writer) error{
		"jobs list":       func(p cli.Program, w io.Writer) error { return p.WriteJobs(w, longJobs()) },
		"runs list":       func(p cli.Program, w io.Writer) error { return p.WriteRuns(w, longRuns()) },
		"alerts list":     func(p cli.Program, w io.Writer) error { return p.WriteAlerts(w, longAlerts()) },
		"queues describe": func(p cli.Program, w io.Writer) error { return p.WriteQueue(w, longQueue(), 0) },
		"top":             func(p cli.Program, w io.Writer) error { return p.WriteOverview(w, longOverview()) },
	}
	for name, write := range lists {
		for width := 40; width <= 240; width++ {
			p := on(width)
			require.NoError(t, write(p, p.Screen(false)))
			for line := range strings.Lines(out.String()) {
				require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), width, "%s at %d: %s", name, width, line)
			}
		}
		p := on(80)
		require.NoError(t, write(p, p.Screen(true)))
		require.Contains(t, out.String(), longID, "%s --wide", name)
		require.Empty(t, notes.String())
	}

	p := on(80)
	require.NoError(t, p.WriteJobs(p.Screen(false), longJobs()))
	require.Equal(t, `JOB                       STATUS   LAST START  NEXT     NOTE
extract_hobo…-station-17  failing  2 d ago     in 30 h  Unavailable: the vendor…
generate_pho…minio.ridge  failed   1 min ago   -        NotAnImage: ridge.jpg i…
`, out.String())
	require.Equal(t, "Left out: OWNER, MODE. --wide shows all columns.\n", notes.String())

	// What has happened, and what helps, is there as a whole.
	p = on(80)
	require.NoError(t, p.WriteAlerts(p.Screen(false), longAlerts()))
	require.Equal(t, `RULE         OBJECT                    SINCE      TEXT
server-down  influx                    4 min ago  InfluxDB at
                                                  http://influx.internal:8086
                                                  does not answer.
                                                  → Start it, or have its
                                                  network mended.
job-failing  extract_hobo…-station-17  1 h ago    Job
                                                  extract_hobo_time_frame.reserv
                                                  e-blue-oak-upper-meadow-
                                                  station-17 is failing.
`, out.String())
	require.Equal(t, "Left out: SEVERITY. --wide shows all columns.\n", notes.String())

	// Rows can be told apart, and columns of zeros go first.
	p = on(80)
	require.NoError(t, p.WriteLoads(p.Screen(false), longLoads()))
	require.Equal(t, `LOCATION           FLOW    MIRROR   STATE  WAITING  BEHIND  POINTS/S  LAST WRITE
common-research-1  live    default  ok     1234567  1 h     812       1 s ago
common-research-1  live    second   ok     1234567  1 h     812       1 s ago
common-research-1  replay  default  ok     1234567  1 h     812       1 s ago
common-research-1  replay  second   ok     1234567  1 h     812       1 s ago
`, out.String())
	require.Empty(t, notes.String())

	// Ids differ at their ends, and the latest outcome is the last.
	p = on(80)
	require.NoError(t, p.WriteOverview(p.Screen(false), longOverview()))
	require.Contains(t, out.String(), `
JOB                       STATUS   LATEST RUNS            NOTE
extract_hobo…station-171  failing  CCCCCCCCCCCCCCCCCCCCF  no route to the logger
extract_hobo…station-172  failing  CCCCCCCCCCCCCCCCCCCCF  no route to the logger
`)
	require.Empty(t, notes.String())

	p = on(120)
	require.NoError(t, p.WriteRuns(p.Screen(false), longRuns()))
	require.Equal(t, `JOB                       STATUS     DUE       STARTED    LATE  TOOK   TRIES  RESULT                    RUN ID
extract_hobo…-station-17  completed  13:00:00  1 h ago    12ms  253ms  1      12694 observations of 2…  01a1fceb…dbe2582
hash_files.now            waiting    -         1 min ago  -     -      -      no worker of type backe…  01a1fceb…dbe2583
`, out.String())
}

// TestTablesFitTheVariableCOLUMNS has no terminal.
func TestTablesFitTheVariableCOLUMNS(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := still(map[string]string{"NO_COLOR": "1", "COLUMNS": "60"})
	p.Stdout, p.Stderr = &out, io.Discard
	require.NoError(t, p.WriteJobs(p.Screen(false), longJobs()))
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), 60)
	}
	p.Getenv = func(string) string { return "" }
	out.Reset()
	require.NoError(t, p.WriteJobs(p.Screen(false), longJobs()))
	require.Contains(t, out.String(), longID)
}
