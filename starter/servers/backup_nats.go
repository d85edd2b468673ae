package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// savedStream is what `nats stream backup` writes beside the data of a stream, when all of it
// has come.
type savedStream struct {
	Config jetstream.StreamConfig `json:"config"`
	State  jetstream.StreamState  `json:"state"`

	at time.Time
}

// natsBackup looks at the folders of nats/, one for each stream and bucket.
func (l *look) natsBackup(ctx context.Context, b *Backup) []Result {
	c, err := l.connectNATS(ctx)
	if err != nil {
		return []Result{wrong("address", err.Error(), "correct the setting")}
	}
	defer c.Close()
	server, err := c.Look(ctx)
	if err != nil {
		return []Result{wrong("address", err.Error(), "start NATS, or set "+pipeline.EnvURL+" or --nats")}
	}
	var results []Result
	for _, stream := range server.Streams {
		check := stream.Name
		if stream.Missing() {
			results = append(results, unset(check, "NATS has none"))
			continue
		}
		saved, err := readSavedStream(filepath.Join(b.Folder, "nats", stream.Stream), stream.Stream)
		if err != nil {
			results = append(results, wrong(check, err.Error(), fmt.Sprintf("nats stream backup %s %s", stream.Stream, filepath.Join(b.Folder, "nats", stream.Stream))))
			continue
		}
		live, err := c.JetStream().Stream(ctx, stream.Stream)
		if err != nil {
			results = append(results, wrong(check, err.Error(), "look at the log of the NATS server"))
			continue
		}
		results = append(results, b.savedStream(stream, saved, live.CachedInfo().State))
	}
	return results
}

// savedStream compares a stream with what was saved of it.
func (b *Backup) savedStream(stream pipeline.NeededStream, saved savedStream, live jetstream.StreamState) Result {
	if saved.State.LastSeq > live.LastSeq {
		return wrong(stream.Name, fmt.Sprintf("the backup has messages up to %d, and NATS up to %d: it is of another stream", saved.State.LastSeq, live.LastSeq),
			"save it again")
	}
	return b.age(stageOf(stream), stream.Name, fmt.Sprintf("%d messages up to %d; %d have come since", saved.State.Msgs, saved.State.LastSeq, live.LastSeq-saved.State.LastSeq), saved.at)
}

// stageOf says when a stream is to be saved: positions before the messages that they are of, and
// each stream before those that its readers write.
func stageOf(s pipeline.NeededStream) int {
	switch {
	case strings.HasPrefix(s.Stream, "KV_"):
		return stageBuckets
	case s.Stream == pipeline.StreamRaw:
		return stageRaw
	}
	return stageStreams
}

// readSavedStream reads what was saved of a stream, and whether its data is there. Servers from
// 2.15 on give stream.arc.s2, older ones stream.tar.s2.
func readSavedStream(folder, stream string) (saved savedStream, err error) {
	path := filepath.Join(folder, "backup.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return saved, err
	}
	if len(text) == 0 {
		return saved, fmt.Errorf("%s is empty: the backup did not end", path)
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		return saved, fmt.Errorf("%s: %w", path, err)
	}
	if saved.Config.Name != stream {
		return saved, fmt.Errorf("%s is of stream %q", path, saved.Config.Name)
	}
	for _, name := range []string{"stream.arc.s2", "stream.tar.s2"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err == nil && info.Size() > 0 {
			saved.at = info.ModTime()
			return saved, nil
		}
	}
	return saved, fmt.Errorf("%s has no data of the stream", folder)
}
