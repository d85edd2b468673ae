package readmodel_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

func TestAlike(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                 "",
		"no route to host": "no route to host",
		"location north: influx http://127.0.0.1:8086: dial tcp 127.0.0.1:8086: connect: connection refused": "location …: influx …: dial tcp …: connect: connection refused",
		"hobolink https://api.example.org: frame 12 of 40: 401 Unauthorized":                                 "hobolink …: frame … of …: … Unauthorized",
		"hobolink https://api.example.org/v1?a=b.":                                                           "hobolink ….",
		"job a.north: the spec lacks a field":                                                                "job …: the spec lacks a field",
		"the northern gate is no part of north-west, but north is one":                                       "the northern gate is no part of north-west, but … is one",
		`bucket "photos-of-may" does not exist on store:9000`:                                                "bucket … does not exist on …",
		"photo uploads/3f2504e0-4f89-11d3-9a0c-0305e82c3301.jpg: no such key":                                "photo …: no such key",
		"no answer since 2026-11-24T02:10:00Z, 3 times in a row":                                             "no answer since …, … times in a row",
		"index out of range [5] with length 3":                                                               "index out of range […] with length …",
		"two\n  lines\tand more":                                                                             "two lines and more",
		"read tcp 10.0.0.7:51234->10.0.0.8:4222: i/o timeout":                                                "read tcp …>…: i/o timeout",
		strings.Repeat("long ", 100):                                                                         strings.Repeat("long ", 31) + "lo…",
		"17 of 20 stations":                                                                                  "… of … stations",
		"waits 1 2 3 seconds":                                                                                "waits … seconds",
	} {
		require.Equal(t, want, readmodel.Alike(text, "a.north"), text)
	}
}

func FuzzAlike(f *testing.F) {
	f.Add("location north: influx http://127.0.0.1:8086: connection refused", "a.north")
	f.Add(`"a" b "c`, "a.b")
	f.Add("…1… \xff x2:", "x.")
	f.Fuzz(func(t *testing.T, text, id string) {
		got := readmodel.Alike(text, id)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), 160)
		require.False(t, strings.ContainsFunc(got, unicode.IsNumber), got)
		require.False(t, strings.ContainsAny(got, "\n\t"), got)
		require.Equal(t, got, readmodel.Alike(text+" ", id))
		// Runs that differ in a number alone fail alike.
		require.Equal(t, readmodel.Alike(text+" 17 ends", id), readmodel.Alike(text+" 4242 ends", id))
	})
}

func TestFailureOf(t *testing.T) {
	t.Parallel()
	run := client.Run{JobID: "a.one", Type: "A", Status: client.RunFailed, Class: "Secret", Error: "secret of one is missing, try 3"}
	other := client.Run{JobID: "a.two", Type: "A", Status: client.RunFailed, Class: "Secret", Error: "secret of two is missing, try 17"}
	require.Len(t, readmodel.FailureOf(run), 12)
	require.Equal(t, readmodel.FailureOf(run), readmodel.FailureOf(other))
	for _, change := range []func(*client.Run){
		func(r *client.Run) { r.Type = "B" }, func(r *client.Run) { r.Class = "Panic" }, func(r *client.Run) { r.Error = "another" },
		func(r *client.Run) { r.Status, r.Class, r.Error = client.RunTimedOut, "", "" },
	} {
		changed := run
		change(&changed)
		require.NotEmpty(t, readmodel.FailureOf(changed))
		require.NotEqual(t, readmodel.FailureOf(run), readmodel.FailureOf(changed))
	}
	run.Status = client.RunCanceled
	require.Empty(t, readmodel.FailureOf(run))
}
