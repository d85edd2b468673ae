package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job/wording"
)

// influxManifest is what `influxd backup -portable` writes beside its files.
type influxManifest struct {
	Meta  influxFile   `json:"meta"`
	Files []influxFile `json:"files"`

	at time.Time
}

type influxFile struct {
	Database string `json:"database"`
	Name     string `json:"fileName"`
	Size     int64  `json:"size"`
}

// manifestTime is the layout of the name of a manifest, in UTC: 20260304T120000Z.manifest.
const manifestTime = "20060102T150405Z"

// influxBackup looks at the newest backup in influx/MIRROR, or in influx/ if there is no such
// folder, for each server of a load job.
func (l *look) influxBackup(ctx context.Context, b *Backup) []Result {
	mirrors, none := l.mirrors(ctx)
	if none != nil {
		return []Result{*none}
	}
	var results []Result
	for _, m := range mirrors {
		folder := filepath.Join(b.Folder, "influx", m.Name)
		if _, err := os.Stat(folder); err != nil {
			folder = filepath.Dir(folder)
		}
		results = append(results, l.mirrorBackup(ctx, b, m, folder))
	}
	return results
}

func (l *look) mirrorBackup(ctx context.Context, b *Backup, m placedMirror, folder string) Result {
	check, cure := m.check(), "influxd backup -portable "+folder
	manifest, err := readManifest(folder)
	if err != nil {
		return wrong(check, err.Error(), cure)
	}
	config, err := l.login(m)
	if err != nil {
		return unset(check, err.Error())
	}
	missing, err := manifest.lacks(ctx, config, m.Database)
	if err != nil {
		return wrong(check, err.Error(), "start it, or correct the job's spec")
	}
	if missing {
		return wrong(check, "the backup has nothing of database "+m.Database, cure)
	}
	return b.age(stageStores, check, fmt.Sprintf("%d files", len(manifest.Files)), manifest.at)
}

// lacks reports whether a server has points in a database of which the backup has no file.
func (m influxManifest) lacks(ctx context.Context, config influx.Config, database string) (bool, error) {
	if slices.ContainsFunc(m.Files, func(f influxFile) bool { return f.Database == database }) {
		return false, nil
	}
	found, err := influx.Query(ctx, config, "", "SHOW DATABASES")
	if err != nil {
		return false, err
	}
	for _, series := range found {
		for _, row := range series.Values {
			if len(row) > 0 && row[0] == database {
				return true, nil
			}
		}
	}
	return false, nil
}

// readManifest reads the newest manifest of a folder, and whether its files are there whole.
func readManifest(folder string) (m influxManifest, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.manifest"))
	if err != nil {
		return m, err
	}
	if len(paths) == 0 {
		return m, fmt.Errorf("%s has no manifest of influxd backup", folder)
	}
	newest := slices.Max(paths)
	if m.at, err = time.Parse(manifestTime, strings.TrimSuffix(filepath.Base(newest), ".manifest")); err != nil {
		return m, fmt.Errorf("%s: its name is not a time such as %s", newest, manifestTime)
	}
	text, err := os.ReadFile(newest)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", newest, err)
	}
	for _, file := range append([]influxFile{m.Meta}, m.Files...) {
		info, err := os.Stat(filepath.Join(folder, file.Name))
		if err != nil {
			return m, err
		}
		if info.Size() != file.Size {
			return m, fmt.Errorf("%s has %d bytes, and %d by the manifest", filepath.Join(folder, file.Name), info.Size(), file.Size)
		}
	}
	return m, nil
}

// s3Backup compares the objects of each bucket with the files below s3/BUCKET: their names and
// sizes. When a file was copied is not known, since programs that copy keep the time of the object.
func (l *look) s3Backup(ctx context.Context, b *Backup) []Result {
	store, result := l.openStore()
	if store == nil {
		return []Result{result}
	}
	var results []Result
	for _, bucket := range l.Buckets {
		results = append(results, b.bucket(ctx, store, bucket))
	}
	return results
}

func (b *Backup) bucket(ctx context.Context, store *objects.Store, bucket string) Result {
	check, folder := "bucket "+bucket, filepath.Join(b.Folder, "s3", bucket)
	cure := "copy the bucket to " + folder
	if _, err := os.Stat(folder); err != nil {
		return wrong(check, err.Error(), cure)
	}
	all := 0
	var missing []string
	var since time.Time // the oldest of them
	for info, err := range store.List(ctx, bucket, "") {
		if err != nil {
			return wrong(check, err.Error(), "look at the store")
		}
		all++
		file, err := os.Stat(filepath.Join(folder, filepath.FromSlash(info.Key)))
		if err == nil && file.Size() == info.Size {
			continue
		}
		if missing = append(missing, info.Key); since.IsZero() || info.Modified.Before(since) {
			since = info.Modified
		}
	}
	if len(missing) == 0 {
		return ok(check, fmt.Sprintf("all %d objects", all))
	}
	found := fmt.Sprintf("%d of %d objects are missing or of another size, the oldest from %s: %s", len(missing), all, wording.Stamp(since), wording.List(slices.Sorted(slices.Values(missing)), 5))
	switch {
	case b.now.Sub(since) > b.MaxAge:
		return wrong(check, found, cure)
	case since.Before(b.lastTaken()):
		return wrong(check, found+"; NATS, which was saved later, takes them for stored", cure)
	}
	return ok(check, found)
}

// lastTaken is when the last part was saved, the zero time if none was.
func (b *Backup) lastTaken() (last time.Time) {
	for _, t := range b.taken {
		if t.at.After(last) {
			last = t.at
		}
	}
	return last
}
