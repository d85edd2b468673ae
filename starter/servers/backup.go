package servers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
)

// Backup is a folder that holds a backup of all servers, laid out as docs/backup.md says.
type Backup struct {
	Folder string
	// MaxAge is how old each part may be.
	MaxAge time.Duration

	now   time.Time
	taken []takenAt
}

// takenAt is when a part was saved.
type takenAt struct {
	stage int
	what  string
	at    time.Time
}

// Stages of a backup, in their order.
const (
	stageTemporal = iota
	stageBuckets
	stageRaw
	stageStreams
	stageStores
)

// BackupParts are the names of what [CheckBackup] looks at, in this order: that of the backup.
func BackupParts() []string {
	names := make([]string, len(backupChecks))
	for n, c := range backupChecks {
		names[n] = c.part
	}
	return names
}

var backupChecks = []struct {
	part string
	run  func(*look, context.Context, *Backup) []Result
}{
	{"temporal", (*look).temporalBackup},
	{"nats", (*look).natsBackup},
	{"s3", (*look).s3Backup},
	{"influx", (*look).influxBackup},
}

// CheckBackup compares a backup with the servers that are at work. It says of each part how old
// it is, and what is missing, cut off or saved in the wrong order. It reads alone.
func CheckBackup(ctx context.Context, site Site, b Backup) ([]Result, error) {
	if info, err := os.Stat(b.Folder); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", b.Folder)
	}
	l := &look{Site: site}
	defer l.close()
	var results []Result
	for _, r := range l.temporal(ctx) { // Finds the load jobs, which name the InfluxDB servers.
		if r.Check == payloadKeys && l.wants("temporal") { // Without them nobody reads the backup.
			r.Part = "temporal"
			results = append(results, r)
		}
	}
	b.now = time.Now()
	for _, c := range backupChecks {
		if !l.wants(c.part) {
			continue
		}
		found := c.run(l, ctx, &b)
		for n := range found {
			found[n].Part = c.part
		}
		results = append(results, found...)
	}
	return append(results, b.order()), nil
}

// order says whether what comes first on the way of the data was saved first.
func (b *Backup) order() Result {
	r := ok("order", "each part was saved before those that it writes to")
	for _, before := range b.taken {
		for _, after := range b.taken {
			if before.stage < after.stage && after.at.Before(before.at) {
				r = wrong("order", fmt.Sprintf("%s was saved at %s, before %s at %s", after.what, wording.Stamp(after.at), before.what, wording.Stamp(before.at)),
					"save them in the order of docs/backup.md: what was acknowledged in between can be lost")
			}
		}
	}
	r.Part = "all"
	return r
}

// age notes when a part was saved, and says how old it is.
func (b *Backup) age(stage int, check, found string, at time.Time) Result {
	b.taken = append(b.taken, takenAt{stage, check, at})
	old := b.now.Sub(at).Truncate(time.Second)
	text := fmt.Sprintf("%s, saved at %s", found, wording.Stamp(at))
	if old > b.MaxAge {
		return wrong(check, fmt.Sprintf("%s: older than %s", text, job.Duration(b.MaxAge)), "save it again, and see why that was not done")
	}
	return ok(check, text)
}

// temporalBackup looks at the files in temporal/: dumps of PostgreSQL, or files of SQLite.
func (l *look) temporalBackup(_ context.Context, b *Backup) []Result {
	const cure = "save Temporal's database into temporal/"
	folder := filepath.Join(b.Folder, "temporal")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return []Result{wrong("database", err.Error(), cure)}
	}
	var results []Result
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && !info.Mode().IsRegular() {
			continue
		}
		kind := ""
		if err == nil {
			kind, err = databaseKind(filepath.Join(folder, entry.Name()), info.Size())
		}
		if err != nil {
			results = append(results, wrong(entry.Name(), err.Error(), cure))
			continue
		}
		results = append(results, b.age(stageTemporal, entry.Name(), fmt.Sprintf("%s of %d bytes", kind, info.Size()), info.ModTime()))
	}
	if len(results) == 0 {
		return []Result{wrong("database", folder+" is empty", cure)}
	}
	return results
}

// databaseKind says what a file is by its content, and whether it ends where it should:
//
//   - SQLite: the header has the size of a page at byte 16 and their number at byte 28
//     (https://www.sqlite.org/fileformat2.html, 1.3)
//   - pg_dump in its own format begins with PGDMP, as text it ends with a line that says so
func databaseKind(path string, size int64) (kind string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // Read alone.
	head := make([]byte, 100)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")) && n == 100:
		page := int64(binary.BigEndian.Uint16(head[16:]))
		if page == 1 {
			page = 65536
		}
		if want := page * int64(binary.BigEndian.Uint32(head[28:])); want > size {
			return "", fmt.Errorf("it is cut off: %d bytes of %d", size, want)
		}
		return "a SQLite database", nil
	case bytes.HasPrefix(head, []byte("PGDMP")):
		return "a dump of PostgreSQL", nil
	}
	const end = "PostgreSQL database dump complete"
	tail := make([]byte, min(size, 4096))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return "", err
	}
	switch {
	case bytes.Contains(tail, []byte(end)):
		return "a dump of PostgreSQL as text", nil
	case bytes.Contains(head, []byte("PostgreSQL database")):
		return "", errors.New("it is cut off: its last line does not say that the dump is complete")
	}
	return "", errors.New("it is neither a dump of PostgreSQL nor a SQLite database")
}
