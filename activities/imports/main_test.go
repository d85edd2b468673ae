package imports_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// desk imports files for an organization of its own.
type desk struct {
	testing.TB
	client  *pipeline.Client
	store   *objects.Store
	jobType job.Type
	spec    imports.FileSpec
}

func newDesk(t *testing.T, st *stacktest.Stack, organization string) *desk {
	t.Helper()
	d := &desk{TB: t, client: st.Pipeline(t), store: objectstest.Open(t, st.S3)}
	d.jobType = imports.File(d.client, d.store, places.Places{UploadBuckets: []string{"uploads"}})
	d.spec = imports.FileSpec{Bucket: "uploads", Organization: organization, Station: "angelo", TimeZone: "-08:00"}
	return d
}

// upload puts a file into the store under a name of the organization's, and has the spec
// name it.
func (d *desk) upload(name string, file []byte) objects.Info {
	d.Helper()
	d.spec.Key = d.spec.Organization + "/" + name
	info, err := d.store.Put(d.Context(), objects.Object{Bucket: "uploads", Key: d.spec.Key, Data: file, ContentType: "application/octet-stream"})
	require.NoError(d, err)
	return info
}

func (d *desk) newRun(id string, options ...jobtest.Option) *jobtest.Run {
	definition := jobtest.NewJob(d.jobType, d.spec.Organization, job.Trigger{OneShot: &job.OneShot{}}, d.spec)
	return jobtest.NewRun(definition, append(options, jobtest.WithID(id))...)
}

// run runs the job, and decodes its output.
func (d *desk) run(id string) (job.Result, imports.Report, error) {
	d.Helper()
	result, err := d.jobType.Handle(d.Context(), d.newRun(id))
	return result, d.report(result), err
}

func (d *desk) report(result job.Result) (report imports.Report) {
	d.Helper()
	if len(result.Output) > 0 {
		require.NoError(d, json.Unmarshal(result.Output, &report))
	}
	return report
}

// raw are the raw messages that were published.
func (d *desk) raw() (messages []pipeline.Message[ldmp.Record]) {
	d.Helper()
	for _, stored := range pipelinetest.Messages(d, d.client, pipeline.StreamRaw, pipeline.RawSubject(pipeline.OperationBulk, d.spec.Organization, "csi")) {
		var message pipeline.Message[ldmp.Record]
		require.NoError(d, json.Unmarshal(stored.Data(), &message))
		messages = append(messages, message)
	}
	return messages
}
