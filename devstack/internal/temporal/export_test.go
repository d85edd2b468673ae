package temporal

import (
	"context"
	"path/filepath"
)

// PrepareStore makes the files of a server in folder and returns that of the lists.
func PrepareStore(ctx context.Context, folder string) (string, error) {
	o := Options{Folder: folder, Namespace: "default", Tuning: TuningLatency}
	return filepath.Join(folder, visibilityFile), prepareStore(ctx, o, serverConfig(o))
}
