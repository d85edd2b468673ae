package places

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/schema"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Env is the environment variable that has the places, as JSON.
const Env = "DENDRA_PLACES"

// Places says where things of organizations are.
type Places struct {
	TargetBucket  string           `json:"target_bucket,omitempty" minLength:"3" default:"media" help:"bucket of the variants of photos and logos"`
	UploadBuckets []string         `json:"upload_buckets,omitempty" minLength:"3" maxItems:"16" default:"[\"uploads\"]" help:"buckets of uploads: keys begin with the id of the organization and a slash"`
	Imports       Imports          `json:"imports,omitzero" help:"files that people upload, and their bounds"`
	Archive       Archive          `json:"archive,omitzero" help:"archive of raw messages"`
	Exports       Exports          `json:"exports,omitzero" help:"downloads that jobs make, and their bounds"`
	Locations     []influx.Servers `json:"locations,omitempty" maxItems:"64" help:"locations with their InfluxDB servers"`
}

// Archive says where the archive is.
type Archive struct {
	Bucket string `json:"bucket,omitempty" minLength:"3" default:"archive" help:"bucket of the archive"`
	Prefix string `json:"prefix,omitempty" pattern:"^([A-Za-z0-9_=-][A-Za-z0-9._=-]*/)+$" example:"dendra/" help:"text before all keys, with a slash at its end"`
}

// Imports says what files that are uploaded for imports may take.
type Imports struct {
	Quota Quota `json:"quota,omitzero" help:"what each organization may have uploaded"`
}

// Exports says where exports are, and what they may take.
type Exports struct {
	Bucket          string `json:"bucket,omitempty" minLength:"3" default:"exports" help:"bucket of exports: keys begin with the id of the organization and a slash"`
	Mirror          string `json:"mirror,omitempty" example:"west" help:"mirror that exports read, in locations that have it; defaults to the first one"`
	PointsPerSecond int64  `json:"points_per_second,omitempty" minimum:"1000" default:"500000" help:"most stored values that a run reads in a second"`
	MaxPoints       int64  `json:"max_points,omitempty" minimum:"1" default:"1000000000" help:"most values in one export"`
	Quota           Quota  `json:"quota,omitzero" help:"what each organization may have: where it is full, no export begins"`
}

// FromEnv reads the places from the environment, through a function like os.Getenv. The
// error lists all that is wrong.
func FromEnv(getenv func(string) string) (Places, error) {
	text := []byte(cmp.Or(getenv(Env), "{}"))
	of, err := schema.For(reflect.TypeFor[Places]())
	if err != nil {
		return Places{}, err
	}
	var wrong []error
	for _, problem := range of.CheckText(text) {
		wrong = append(wrong, fmt.Errorf("%s: %s", Env, problem))
	}
	if len(wrong) > 0 {
		return Places{}, errors.Join(wrong...)
	}
	var p Places
	if err := job.DecodeSpec(text, &p); err != nil {
		return Places{}, fmt.Errorf("%s: %w", Env, err)
	}
	return p, nil
}

// Validate reports what the schema cannot say.
func (p *Places) Validate() error {
	var problems []error
	if b := p.Exports.Bucket; b == p.TargetBucket || b == p.Archive.Bucket || slices.Contains(p.UploadBuckets, b) {
		problems = append(problems, fmt.Errorf("exports.bucket: %s is a bucket of other things", b))
	}
	for i, bucket := range p.UploadBuckets {
		switch bucket {
		case p.TargetBucket:
			problems = append(problems, fmt.Errorf("upload_buckets.%d: %s is target_bucket, and holds no uploads", i, bucket))
		case p.Archive.Bucket:
			problems = append(problems, fmt.Errorf("upload_buckets.%d: %s is the bucket of the archive, and holds no uploads", i, bucket))
		}
	}
	seen := map[string]bool{}
	for i := range p.Locations {
		l := &p.Locations[i]
		if err := l.Validate(); err != nil {
			problems = append(problems, fmt.Errorf("locations.%d: %w", i, err))
		}
		if seen[l.Location] {
			problems = append(problems, fmt.Errorf("locations.%d: another one is named %s", i, l.Location))
		}
		seen[l.Location] = true
	}
	return errors.Join(problems...)
}

// Location are the servers of a location.
func (p *Places) Location(name string) (influx.Servers, error) {
	for _, l := range p.Locations {
		if l.Location == name {
			return l, nil
		}
	}
	return influx.Servers{}, job.Fail(errclass.InvalidSpec, "location %s is not in %s of this worker", name, Env)
}

// MirrorToRead is the mirror of a location that jobs read: the named one, that of exports, or
// the first one. The error says that there is none of the name.
func (p *Places) MirrorToRead(location, name string) (influx.Mirror, error) {
	servers, err := p.Location(location)
	if err != nil {
		return influx.Mirror{}, err
	}
	all := servers.All()
	for _, m := range all {
		if m.Name == cmp.Or(name, p.Exports.Mirror) {
			return m, nil
		}
	}
	if name != "" {
		return influx.Mirror{}, job.Fail(errclass.InvalidSpec, "location %s has no mirror %s in %s of this worker", location, name, Env)
	}
	return all[0], nil
}

// Sharing are those of all stations whose points may be in a database of any server: their
// records name it, or it is where a mirror has the points of all, or of those that name none.
func (p *Places) Sharing(database string, all []*platformv1.Station) []*platformv1.Station {
	return slices.DeleteFunc(slices.Clone(all), func(s *platformv1.Station) bool { return !p.mayBeIn(s, database) })
}

func (p *Places) mayBeIn(s *platformv1.Station, database string) bool {
	if s.GetDatabase() == database {
		return true
	}
	for i := range p.Locations {
		l := &p.Locations[i]
		if slices.ContainsFunc(l.All(), func(m influx.Mirror) bool { return cmp.Or(m.Database, s.GetDatabase(), l.Location) == database }) {
			return true
		}
	}
	return false
}

// CheckUpload says why an object that a record of an organization names is no upload of
// the organization.
func (p *Places) CheckUpload(organizationID string, object *platformv1.ObjectReference) error {
	bucket, key := object.GetBucket(), object.GetKey()
	if err := p.CheckUploadBucket(bucket, key); err != nil {
		return err
	}
	if !strings.HasPrefix(key, UploadPrefix(organizationID)) {
		return job.Fail(errclass.NotAnUpload, "%s/%s is no upload of organization %s: its key does not begin with %s",
			bucket, key, organizationID, UploadPrefix(organizationID))
	}
	return nil
}

// CheckUploadBucket says why an object is no upload of any organization.
func (p *Places) CheckUploadBucket(bucket, key string) error {
	if slices.Contains(p.UploadBuckets, bucket) {
		return nil
	}
	return job.Fail(errclass.NotAnUpload, "%s/%s is no upload: upload buckets are %s", bucket, key, strings.Join(p.UploadBuckets, ", "))
}

// ImportsPrefix is what the keys of an organization's files to import begin with.
func ImportsPrefix(organizationID string) string { return UploadPrefix(organizationID) + "imports/" }

// UploadPrefix is what the keys of an organization's uploads begin with.
func UploadPrefix(organizationID string) string { return organizationID + "/" }

// ExportPrefix is what the keys of an organization's exports begin with.
func ExportPrefix(organizationID string) string { return organizationID + "/" }

// VariantsPrefix is what the keys of the variants of an organization's photos or logos
// begin with, without the slash at its end. Kind is photos or logos.
func VariantsPrefix(kind, organizationID string) string { return kind + "/" + organizationID }
