package audit_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/redact"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/audit"
	"github.com/dendrascience/dendra-jobs/server/auth"
)

var quiet = slog.New(slog.DiscardHandler)

func TestRedaction(t *testing.T) {
	t.Parallel()
	const canary = "hunter2-canary"
	token := auth.NewToken()
	for _, text := range []string{
		`{"spec":{"password":"` + canary + `","user":"u"}}`,
		`{"spec":{"influx":{"apiToken":"` + canary + `"}}}`,
		`{"spec":{"API_KEY":["` + canary + `",{"x":"` + canary + `"}]}}`,
		`{"spec":{"credentials":{"name":"` + canary + `"}}}`,
		`{"spec":{"url":"https://user:` + canary + `@example.org/x"}}`,
		`{"spec":{"url":"https://example.org/x?a=1&access_token=` + canary + `&b=2"}}`,
		`{"spec":{"header":"Authorization: Bearer ` + canary + `"}}`,
		`{"note":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.` + canary + `"}`,
		`{"note":"-----BEGIN RSA PRIVATE KEY-----\n` + canary + `\n-----END RSA PRIVATE KEY-----"}`,
		`{"fields":[{"path":"spec.influx_password","oldValue":"\"` + canary + `\"","newValue":"\"` + canary + `2\""}]}`,
		`{"fields":[{"path":"spec.influx","oldValue":"{\"password\":\"` + canary + `\"}"}]}`,
		`{"spec":{"pin":{"secret":12345678}}, "x": "` + token + `"}`,
	} {
		clean := string(redact.JSON([]byte(text)))
		require.NotContains(t, clean, canary, text)
		require.NotContains(t, clean, token, text)
		require.NotContains(t, clean, "12345678", text)
		require.Contains(t, clean, "[redacted]", text)
		require.True(t, json.Valid([]byte(clean)))
	}
	for _, text := range []string{
		`{"spec":{"bucket":"uploads","key":"a.jpg","token":"secret://hobo","url":"https://example.org:8086/x?db=a"}}`,
		`{"fields":[{"newValue":"\"secret://b\"","oldValue":"\"secret://a\"","path":"spec.token"}]}`,
		`{"fields":[{"newValue":"5","oldValue":"4","path":"spec.tries"}],"paused":true}`,
	} {
		require.JSONEq(t, text, string(redact.JSON([]byte(text))))
	}
	require.Equal(t, `"[redacted]"`, string(redact.JSON([]byte(`{"broken`))))
}

// TestResources names what every method with side effects is about.
func TestResources(t *testing.T) {
	t.Parallel()
	count := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("dendra.jobs.v1", func(file protoreflect.FileDescriptor) bool {
		for s := range file.Services().Len() {
			methods := file.Services().Get(s).Methods()
			for m := range methods.Len() {
				method := methods.Get(m)
				options, _ := method.Options().(*descriptorpb.MethodOptions)
				if options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS || strings.HasSuffix(string(method.Name()), "QuarantineItems") {
					continue // Ids and filters of quarantine are in the rest of the request.
				}
				kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
				require.NoError(t, err)
				request := kind.New()
				fill(request, 0)
				require.Contains(t, api.AskedBy(method, request.Interface()).Resource(), "/the-", "%s", method.FullName())
				if field := method.Input().Fields().ByName("queue"); field != nil || method.Name() == "EnqueueJobs" {
					require.Contains(t, api.AskedBy(method, request.Interface()).Resource(), "queue/the-queue", "%s", method.FullName())
				}
				count++
			}
		}
		return true
	})
	require.Greater(t, count, 25)
	queued := &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "photos"}}
	enqueue := &jobsv1.EnqueueJobsRequest{Jobs: []*jobsv1.Job{{Id: "a.b", Mode: queued}, {Id: "a.c", Mode: queued}}}
	method := jobsv1.File_dendra_jobs_v1_queue_service_proto.Services().ByName("QueueService").Methods().ByName("EnqueueJobs")
	require.Equal(t, "queue/photos/a.b,a.c", api.AskedBy(method, enqueue).Resource())
}

// fill sets all texts of a message.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch field := fields.Get(i); {
		case field.IsMap() || depth > 3:
		case field.IsList() && field.Message() != nil:
			fill(m.Mutable(field).List().AppendMutable().Message(), depth+1)
		case field.IsList():
		case field.Message() != nil && field.Message().ParentFile().Package() == "dendra.jobs.v1":
			fill(m.Mutable(field).Message(), depth+1)
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString("the-"+string(field.Name())))
		}
	}
}

func lines(t *testing.T, path string) []audit.Record {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	var all []audit.Record
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if scanner.Text() == "" {
			continue // It ends what was written in part.
		}
		var record audit.Record
		require.NoError(t, json.Unmarshal(scanner.Bytes(), &record))
		all = append(all, record)
	}
	return all
}

// TestLog appends whole lines, also to a file of a process before, and goes on in a new file
// when the old one was moved.
func TestLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	const writers, each = 8, 20
	for range 2 {
		log, err := audit.Open(path, quiet)
		require.NoError(t, err)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for n := range each {
					_ = log.Write(audit.Record{Caller: fmt.Sprint(w), Resource: fmt.Sprint(n), Reason: strings.Repeat("x", 9000)})
				}
			})
		}
		all.Wait()
		require.NoError(t, log.Ready())
		require.NoError(t, log.Close())
	}
	require.Len(t, lines(t, path), 2*writers*each)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	log, err := audit.Open(path, quiet)
	require.NoError(t, err)
	require.NoError(t, os.Rename(path, path+".1"))
	require.NoError(t, log.Write(audit.Record{Caller: "before"}))
	require.NoError(t, log.Reopen())
	require.NoError(t, log.Write(audit.Record{Caller: "after"}))
	require.Len(t, lines(t, path+".1"), 2*writers*each+1)
	require.Equal(t, "after", lines(t, path)[0].Caller)
	require.NoError(t, log.Close())
}

// TestFullDisk is a log on a device that takes nothing.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full here")
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.Symlink("/dev/full", path))
	log, err := audit.Open(path, quiet)
	require.NoError(t, err)
	require.Error(t, log.Write(audit.Record{Caller: "lost"}))
	require.Error(t, log.Ready())
	require.NoError(t, os.Remove(path))
	require.NoError(t, log.Ready(), "it opens the file anew")
	require.NoError(t, log.Write(audit.Record{Caller: "written"}))
	written := lines(t, path)
	require.Len(t, written, 2)
	require.Equal(t, "gap", written[0].Code)
	require.Equal(t, "1 lines before this one could not be written", written[0].Note)
	_, err = audit.Open(filepath.Join(path, "x"), quiet)
	require.ErrorContains(t, err, "the audit log cannot be opened")
}

// TestRefusals are a flood of calls that nobody is known to make: a line for each address, and
// one for the rest.
func TestRefusals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	log, err := audit.Open(path, quiet)
	require.NoError(t, err)
	refuse := func(address, procedure string) {
		log.Refused(auth.Caller{Address: address}, procedure, auth.Unauthenticated("no"))
	}
	for range 5000 {
		refuse("192.0.2.7", "/dendra.jobs.v1.JobService/PauseJob")
	}
	refuse("192.0.2.7", "/login")
	for n := range 2000 {
		refuse(fmt.Sprintf("2001:db8::%x", n+1), "/login")
		refuse(fmt.Sprintf("2001:db8:1:%x::1", n), "/login")
	}
	require.Empty(t, lines(t, path))
	log.Flush()
	log.Flush()
	written := map[string]audit.Record{}
	sum := 0
	for _, record := range lines(t, path) {
		require.NotContains(t, written, record.Address)
		require.Equal(t, []string{"", "none", "unauthenticated", "UNAUTHENTICATED"}, []string{record.Caller, record.Role, record.Code, record.Error})
		written[record.Address] = record
		for _, count := range record.Refused {
			sum += count
		}
	}
	require.Len(t, written, 1001)
	require.Equal(t, map[string]int{"/dendra.jobs.v1.JobService/PauseJob": 5000, "/login": 1}, written["192.0.2.7"].Refused)
	require.Equal(t, map[string]int{"/login": 2000}, written["2001:db8::/64"].Refused)
	require.Equal(t, 5001+4000, sum)
	require.NoError(t, log.Close())
}
