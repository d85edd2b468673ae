package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// What a request of mostBytes may cost, whatever is in it: processor time of the server's
// process, and all that it allocates meanwhile, which is more than the heap grows by.
const (
	mostBytes     = 64 << 10
	mostSeconds   = 1.0
	mostAllocated = 50 << 20
)

// attack is a request that nobody means well with.
type attack struct {
	name string
	json bool
	body []byte // as it is before it is compressed
}

// TestHostileRequests sends every method what costs most for its bytes: lists and maps of
// empty messages, deep ones, wide ones, long texts, and the same compressed. The server is a
// process of its own, so that what it uses can be told. make soak-tests sends all, make test a
// third, drawn anew each time.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	workertest.Start(t, st, types()...)
	workertest.WaitListed(t, client.New(st.Dial(t), st.Namespace))
	r := &replica{stack: st, address: "127.0.0.1:" + stacktest.FreePort(t), args: []string{"--audit-log", filepath.Join(t.TempDir(), "audit.log")}}
	r.start(t)
	r.waitReady(t)
	v := &victim{T: t, url: "http://" + r.address}
	status := v.send("/dendra.jobs.v1.JobService/CreateJob", attack{json: true, body: []byte(
		`{"job":{"id":"take_steps.victim","spec":{},"recurring":{"recurEvery":"1s"},"paused":true}}`)}, false, false)
	require.Equal(t, http.StatusOK, status)

	random, oneOf := stacktest.Random(t), stacktest.Size(3, 1)
	v.secondsUsed, v.everAllocated = v.used()
	methods := methodsOf(t)
	for _, procedure := range slices.Sorted(maps.Keys(methods)) {
		method := methods[procedure]
		for _, a := range attacks(t, method) {
			if random.IntN(oneOf) == 0 {
				v.hold(procedure, method.IsStreamingServer(), a)
			}
		}
	}
	t.Logf("%d requests; the worst took %.2f s (%s) and allocated %d MB (%s)", v.requests, v.seconds, v.slowest, v.allocated>>20, v.largest)
	require.Greater(t, v.requests, stacktest.Size(200, 800))
}

// methodsOf are all methods of the API by their procedure.
func methodsOf(t *testing.T) map[string]protoreflect.MethodDescriptor {
	t.Helper()
	all := map[string]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage("dendra.jobs.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for m := range methods.Len() {
				all[specOf(methods.Get(m)).Procedure] = methods.Get(m)
			}
		}
		return true
	})
	require.Greater(t, len(all), 50)
	return all
}

// victim is the server that is attacked.
type victim struct {
	*testing.T
	url string

	secondsUsed   float64 // after the request before
	everAllocated int64

	requests         int
	seconds          float64
	allocated        int64
	slowest, largest string
}

// hold sends an attack, compressed if it is too long. What it costs is held against the
// bounds; since the server works on its own too, it has two tries.
func (v *victim) hold(procedure string, stream bool, a attack) {
	v.Helper()
	name := procedure + ", " + a.name
	var seconds float64
	var allocated int64
	for range 2 {
		v.send(procedure, a, stream, len(a.body) > mostBytes)
		secondsNow, allocatedNow := v.used()
		seconds, allocated = secondsNow-v.secondsUsed, allocatedNow-v.everAllocated
		v.secondsUsed, v.everAllocated = secondsNow, allocatedNow
		v.requests++
		if seconds < mostSeconds && allocated < mostAllocated {
			break
		}
	}
	if seconds >= mostSeconds || allocated >= mostAllocated {
		v.Errorf("%s: %.2f s, %d MB", name, seconds, allocated>>20)
	}
	if seconds > v.seconds {
		v.seconds, v.slowest = seconds, name
	}
	if allocated > v.allocated {
		v.allocated, v.largest = allocated, name
	}
}

// send gives the status of the answer, of which no more is read than begins a stream.
func (v *victim) send(procedure string, a attack, stream, compressed bool) int {
	v.Helper()
	body, kind := a.body, "proto"
	if a.json {
		kind = "json"
	}
	if compressed {
		body = packed(v, body)
		require.LessOrEqual(v, len(body), mostBytes, "%s: %s", procedure, a.name)
	}
	contentType, encoding := "application/"+kind, "Content-Encoding"
	if stream {
		contentType, encoding = "application/connect+"+kind, "Connect-Content-Encoding"
		envelope := make([]byte, 5, 5+len(body))
		if compressed {
			envelope[0] = 1
		}
		binary.BigEndian.PutUint32(envelope[1:], uint32(len(body)))
		body = append(envelope, body...)
	}
	request, err := http.NewRequestWithContext(v.Context(), http.MethodPost, v.url+procedure, bytes.NewReader(body))
	require.NoError(v, err)
	request.Header.Set("Content-Type", contentType)
	if compressed {
		request.Header.Set(encoding, "gzip")
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(v, err, "%s: %s", procedure, a.name)
	_, err = io.ReadAll(io.LimitReader(response.Body, 5))
	require.NoError(v, err)
	require.NoError(v, response.Body.Close())
	return response.StatusCode
}

func packed(t require.TestingT, body []byte) []byte {
	var text bytes.Buffer
	w, err := gzip.NewWriterLevel(&text, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return text.Bytes()
}

// used is the processor time of the server, and what it has allocated, ever.
func (v *victim) used() (float64, int64) {
	v.Helper()
	request, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.url+"/metrics", nil)
	require.NoError(v, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(v, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(v, err)
	require.NoError(v, response.Body.Close())
	value := func(metric string) float64 {
		_, rest, _ := strings.Cut(string(text), "\n"+metric+" ")
		digits, _, _ := strings.Cut(rest, "\n")
		value, err := strconv.ParseFloat(digits, 64)
		require.NoError(v, err, metric)
		return value
	}
	return value("process_cpu_seconds_total"), int64(value("go_memstats_alloc_bytes_total"))
}

// Sizes of what is sent before it is compressed: what the server unpacks, and far more.
const (
	unpacked = 512<<10 - 64
	farMore  = 4 << 20
)

// attacks are made of the type of a method's requests.
func attacks(t *testing.T, method protoreflect.MethodDescriptor) []attack {
	t.Helper()
	list := []attack{
		{"white space", true, append(append([]byte("{"), bytes.Repeat([]byte(" "), farMore)...), '}')},
		{"fields that there are not", false, bytes.Repeat([]byte{0xf8, 0x3f, 0}, farMore/3)},
		{"groups in groups", false, append(bytes.Repeat([]byte{0xfb, 0x3f}, 100_000), bytes.Repeat([]byte{0xfc, 0x3f}, 100_000)...)},
		{"extreme times", true, extremes(t, method.Input())},
	}
	for _, path := range pathsIn(method.Input(), nil) {
		last := path[len(path)-1]
		name := nameOf(path)
		sizes := []int{mostBytes - 64, unpacked}
		if len(path) > 2 {
			sizes = sizes[1:]
		}
		for _, size := range sizes {
			list = append(list, attack{fmt.Sprintf("%s, %d bytes", name, size), false, flood(path, size)})
			if last.IsList() && last.Message() != nil {
				list = append(list, attack{fmt.Sprintf("%s in JSON, %d bytes", name, size), true, floodJSON(path, "{},", size)})
			}
		}
		switch {
		case last.Message() == nil || last.IsMap():
		case last.Message().FullName() == "google.protobuf.Struct":
			list = append(list, specs(path)...)
		case last.Message().FullName() == "dendra.jobs.v1.Job" && last.IsList():
			list = append(list, jobLists(path)...)
		}
	}
	return list
}

// pathsIn are the ways to all fields that can be many: lists, maps and messages. Structs
// hold themselves, so that a message is gone into once on a way.
func pathsIn(m protoreflect.MessageDescriptor, before []protoreflect.FieldDescriptor) [][]protoreflect.FieldDescriptor {
	var paths [][]protoreflect.FieldDescriptor
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		if !field.IsList() && !field.IsMap() && field.Message() == nil {
			continue
		}
		path := append(before[:len(before):len(before)], field)
		paths = append(paths, path)
		inner := field.Message()
		seen := inner == m
		for _, passed := range before {
			seen = seen || passed.Message() == inner
		}
		if inner != nil && !seen {
			paths = append(paths, pathsIn(inner, path)...)
		}
	}
	return paths
}

func nameOf(path []protoreflect.FieldDescriptor) string {
	names := make([]string, len(path))
	for i, field := range path {
		names[i] = string(field.Name())
	}
	return strings.Join(names, ".")
}

// within wraps the fields of the last message of a path in those before it.
func within(path []protoreflect.FieldDescriptor, fields []byte) []byte {
	for i := len(path) - 2; i >= 0; i-- {
		fields = protowire.AppendBytes(protowire.AppendTag(nil, path[i].Number(), protowire.BytesType), fields)
	}
	return fields
}

// flood fills a message with the last field of a path, empty each time.
func flood(path []protoreflect.FieldDescriptor, size int) []byte {
	last := path[len(path)-1]
	kind, value := protowire.BytesType, byte(0)
	if last.Message() == nil && last.Kind() != protoreflect.StringKind && last.Kind() != protoreflect.BytesKind {
		kind = protowire.VarintType
	}
	one := append(protowire.AppendTag(nil, last.Number(), kind), value)
	return within(path, bytes.Repeat(one, size/len(one)))
}

// floodJSON fills the list at the end of a path with elements.
func floodJSON(path []protoreflect.FieldDescriptor, element string, size int) []byte {
	list := strings.Repeat(element, size/len(element))
	return inJSON(path, "["+strings.TrimSuffix(list, ",")+"]")
}

// inJSON is a request with a value at the end of a path.
func inJSON(path []protoreflect.FieldDescriptor, value string) []byte {
	for i := len(path) - 1; i >= 0; i-- {
		if i < len(path)-1 && path[i].IsList() {
			value = "[" + value + "]"
		}
		value = fmt.Sprintf("{%q:%s}", path[i].JSONName(), value)
	}
	return []byte(value)
}

// specs are deep, wide and long.
func specs(path []protoreflect.FieldDescriptor) []attack {
	var wide strings.Builder
	for n := 0; wide.Len() < 200<<10; n++ {
		fmt.Fprintf(&wide, "%q:0,", strconv.FormatInt(int64(n), 36))
	}
	var odd strings.Builder
	for n := 0; odd.Len() < 15<<10; n++ {
		fmt.Fprintf(&odd, "%q:0,", strconv.FormatInt(int64(n), 36))
	}
	half := strings.Repeat("[", 40) + strings.Repeat("1e300,", unpacked/6-100) + "1" + strings.Repeat("]", 40)
	var nested []byte // A Value in a ListValue in a Value, to the depth of 20,000.
	for len(nested) < 60<<10 {
		nested = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nested)
		nested = protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), nested)
	}
	entry := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), nested)
	deep := protowire.AppendBytes(protowire.AppendTag(nil, path[len(path)-1].Number(), protowire.BytesType),
		protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), entry))
	with := func(spec string) []byte {
		if job := len(path) - 1; job > 0 && path[job-1].Message().FullName() == "dendra.jobs.v1.Job" {
			element := `{"id":"take_steps.hostile","oneShot":{},"spec":` + spec + `}`
			if path[job-1].IsList() {
				element = "[" + element + "]"
			}
			return inJSON(path[:job], element)
		}
		return inJSON(path, spec)
	}
	return []attack{
		{"a deep spec", false, within(path, deep)},
		{"a deep spec in JSON", true, with(`{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}")},
		{"a wide spec", true, with("{" + strings.TrimSuffix(wide.String(), ",") + "}")},
		{"a spec of unknown keys", true, with("{" + strings.TrimSuffix(odd.String(), ",") + "}")},
		{"a long and deep list in a spec", true, with(`{"a":` + half + "}")},
		{"a long text in a spec", true, with(`{"gate":"` + strings.Repeat("x", farMore) + `"}`)},
	}
}

// jobLists are long lists of jobs that are wrong in ways that are found late.
func jobLists(path []protoreflect.FieldDescriptor) []attack {
	return []attack{
		{"jobs of an unknown type", true, floodJSON(path, `{"id":"stake_teps.a","oneShot":{}},`, unpacked-100)},
		{"jobs of the same id", true, floodJSON(path, `{"id":"take_steps.a","oneShot":{}},`, unpacked-100)},
		{"jobs without a mode", true, floodJSON(path, `{"id":"take_steps.a"},`, unpacked-100)},
		{"far too many jobs", true, floodJSON(path, "{},", farMore)},
		{"far too many jobs in protobuf", false, flood(path, farMore)},
	}
}

// extremes is a request with the id of a job that is there, and all of time.
func extremes(t *testing.T, of protoreflect.MessageDescriptor) []byte {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(of.FullName())
	require.NoError(t, err)
	m := kind.New()
	for i := range of.Fields().Len() {
		field := of.Fields().Get(i)
		var moment *timestamppb.Timestamp
		switch field.Name() {
		case "start_time":
			moment = &timestamppb.Timestamp{Seconds: -62135596800}
		case "end_time":
			moment = &timestamppb.Timestamp{Seconds: 253402300799}
		case "id", "name", "queue", "job_id":
			if field.Kind() == protoreflect.StringKind {
				m.Set(field, protoreflect.ValueOfString("take_steps.victim"))
			}
		case "validate_only":
			m.Set(field, protoreflect.ValueOfBool(true))
		}
		if moment != nil && field.Message() != nil {
			m.Set(field, protoreflect.ValueOfMessage(proto.Message(moment).ProtoReflect()))
		}
	}
	text, err := protojson.Marshal(m.Interface())
	require.NoError(t, err)
	return text
}

var _ = jobsv1.File_dendra_jobs_v1_job_proto // Its types are registered.
