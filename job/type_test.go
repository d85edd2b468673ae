package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

type photoSpec struct {
	Bucket string `json:"bucket"`
	Width  int    `json:"width,omitempty"`
	Crop   struct {
		Left int `json:"left"`
	} `json:"crop,omitzero"`
}

func (s *photoSpec) Validate() error {
	if s.Width < 0 {
		return errors.New("width is negative")
	}
	return nil
}

// definition is a run that knows its job, which is all that Handle asks for.
type definition struct {
	job.Run
	job job.Job
}

func (d definition) Job() job.Job { return d.job }

func TestNewType(t *testing.T) {
	t.Parallel()
	var seen photoSpec
	photos := job.NewType("MakePhoto", job.WorkerBackend, "Makes a photo.",
		func(_ context.Context, _ job.Run, spec photoSpec) (job.Result, error) {
			seen = spec
			return job.Result{Message: "made"}, nil
		}, job.ModeOneShot, job.ModeQueued)

	require.Equal(t, reflect.TypeFor[photoSpec](), photos.Spec)
	require.True(t, photos.Allows(job.ModeQueued))
	require.False(t, photos.Allows(job.ModeRecurring))
	require.NoError(t, photos.CheckAllows(job.ModeOneShot))
	require.NoError(t, photos.CheckAllows(""))
	require.EqualError(t, photos.CheckAllows(job.ModeContinuous),
		"job type MakePhoto cannot run in mode continuous, only in one-shot, queued")

	run := definition{job: job.Job{ID: "make_photo.a", Spec: json.RawMessage(`{"bucket":"uploads","width":3}`)}}
	result, err := photos.Handle(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, "made", result.Message)
	require.Equal(t, photoSpec{Bucket: "uploads", Width: 3}, seen)

	run.job.Spec = json.RawMessage(`{"colour":"red"}`)
	_, err = photos.Handle(t.Context(), run)
	require.EqualError(t, err, `spec of job make_photo.a: unknown key "colour"`)
	failure, ok := errors.AsType[*job.Failure](err)
	require.True(t, ok)
	require.True(t, failure.Kind.Final())
	require.Equal(t, errclass.InvalidSpec, failure.Class)
}

func TestTypeWithoutModesAllowsAll(t *testing.T) {
	t.Parallel()
	for _, mode := range job.Modes() {
		require.True(t, job.Type{}.Allows(mode))
	}
}

func TestTypeWithoutHandler(t *testing.T) {
	t.Parallel()
	_, err := job.Type{Name: "Foreign"}.Handle(t.Context(), definition{})
	require.EqualError(t, err, "job type Foreign has no handler in this process")
}

func TestDecodeSpec(t *testing.T) {
	t.Parallel()
	var spec photoSpec
	require.NoError(t, job.DecodeSpec(json.RawMessage(" {\"bucket\": \"a\"}\n"), &spec))
	require.Equal(t, "a", spec.Bucket)
	require.NoError(t, job.DecodeSpec(nil, &photoSpec{}))

	for text, want := range map[string]string{
		`{"colour": 1}`:          `unknown key "colour"`,
		`{"crop": {"top": 1}}`:   `unknown key "top"`,
		`{"bucket": 1}`:          `key "bucket": a JSON number does not fit, it takes string`,
		`{"crop": {"left": ""}}`: `key "crop.left": a JSON string does not fit, it takes int`,
		`{"width": -1}`:          `width is negative`,
		`{"bucket": "a"} {}`:     `more text after the JSON object`,
		`null`:                   `null is not a JSON object`,
		`[]`:                     `[] is not a JSON object`,
		`{"bucket"`:              `not JSON: unexpected EOF`,
		`{bucket}`:               `not JSON: invalid character 'b' looking for beginning of object key string`,
	} {
		require.EqualError(t, job.DecodeSpec(json.RawMessage(text), &photoSpec{}), want, text)
	}
}

type defaultSpec struct {
	Name  string        `json:"name,omitempty" default:"a"`
	Digit string        `json:"digit,omitempty" default:"5"`
	Wait  job.Duration  `json:"wait,omitzero" default:"PT1M"`
	Size  int           `json:"size,omitempty" default:"7"`
	Owner job.Owner     `json:"owner,omitzero" default:"user:ann"`
	Since time.Time     `json:"since,omitzero"`
	Inner *defaultInner `json:"inner,omitempty"`
	Parts []defaultInner
	inner defaultInner
}

type defaultInner struct {
	Level int `json:"level,omitempty" default:"3"`
}

// Validate sees the defaults.
func (s *defaultSpec) Validate() error {
	if s.Size == 0 || s.inner.Level != 0 {
		return errors.New("size is zero")
	}
	return nil
}

func TestDecodeSpecFillsInDefaults(t *testing.T) {
	t.Parallel()
	var spec defaultSpec
	require.NoError(t, job.DecodeSpec(nil, &spec))
	require.Equal(t, defaultSpec{Name: "a", Digit: "5", Wait: job.Duration(time.Minute), Size: 7, Owner: job.Owner{User: "ann"}}, spec)
	spec = defaultSpec{}
	require.NoError(t, job.DecodeSpec(json.RawMessage(`{"name":"b","size":1,"inner":{},"Parts":[{},{"level":2}]}`), &spec))
	require.Equal(t, defaultSpec{
		Name: "b", Digit: "5", Wait: job.Duration(time.Minute), Size: 1, Owner: job.Owner{User: "ann"},
		Inner: &defaultInner{Level: 3}, Parts: []defaultInner{{Level: 3}, {Level: 2}},
	}, spec)
	require.ErrorContains(t, job.DecodeSpec(nil, &struct {
		Size int `json:"size,omitempty" default:"many"`
	}{}), `field Size: default "many"`)
}

func TestFailure(t *testing.T) {
	t.Parallel()
	final := job.Final("InvalidImage", "photo %s: %w", "a.jpg", io.ErrUnexpectedEOF)
	require.EqualError(t, final, "photo a.jpg: unexpected EOF")
	require.ErrorIs(t, final, io.ErrUnexpectedEOF)

	wrapped := fmt.Errorf("run: %w", final)
	failure, ok := errors.AsType[*job.Failure](wrapped)
	require.True(t, ok)
	require.True(t, failure.Kind.Final())
	require.Equal(t, "InvalidImage", failure.Class)

	retryable := job.Retryable("RateLimit", time.Minute, "wait")
	failure, ok = errors.AsType[*job.Failure](retryable)
	require.True(t, ok)
	require.False(t, failure.Kind.Final())
	require.Equal(t, time.Minute, failure.RetryAfter)

	require.ErrorIs(t, job.Retryable("Stop", 0, "drain: %w", job.ErrStopped), job.ErrStopped)

	away := fmt.Errorf("read: %w", job.FailAfter(errclass.StoreUnreachable, time.Second, "away"))
	require.Equal(t, errclass.Unavailable, job.KindOf(away))
	require.Equal(t, errclass.StoreUnreachable, job.ClassOf(away))
	require.Equal(t, errclass.Transient, job.KindOf(job.Fail("Other", "a class that the list does not have")))
	require.Equal(t, errclass.Transient, job.KindOf(io.EOF))
	require.Empty(t, job.ClassOf(nil))
}

func TestSecretRefName(t *testing.T) {
	t.Parallel()
	name, err := job.SecretRef("secret://hobolink.token-1").Name()
	require.NoError(t, err)
	require.Equal(t, "hobolink.token-1", name)
	for _, ref := range []job.SecretRef{"", "hunter2", "secret://", "secret://A", "secret://a/b", "SECRET://a", "secret://a\n"} {
		_, err := ref.Name()
		require.EqualError(t, err, "a secret is named, never written: secret://NAME", string(ref))
	}
}

func TestProgressString(t *testing.T) {
	t.Parallel()
	require.Equal(t, "3", job.Progress{Done: 3}.String())
	require.Equal(t, "728 messages, 3 points", job.Progress{Done: 3, Message: "728 messages, 3 points"}.String())
	require.Equal(t, "3/4 points", job.Progress{Done: 3, Total: 4, Message: "points"}.String())
}
