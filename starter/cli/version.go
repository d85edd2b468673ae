package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"
)

// version identifies the sources of this binary.
type version struct {
	// Version is that of the module; "(devel)" of a build from a work tree.
	Version string `json:"version"`
	// Revision is the commit, and Time when it was made, if the build recorded
	// them; Modified says that the work tree had changes.
	Revision    string `json:"revision,omitempty"`
	Time        string `json:"time,omitempty"`
	Modified    bool   `json:"modified,omitempty"`
	Go          string `json:"go"`
	Platform    string `json:"platform"`
	TemporalSDK string `json:"temporal_sdk"`
}

// revision is the commit that the program was built from, set by the linker where
// the build records none.
var revision string

func readVersion() version {
	v := version{
		Version:     "(devel)",
		Revision:    revision,
		Go:          runtime.Version(),
		Platform:    runtime.GOOS + "/" + runtime.GOARCH,
		TemporalSDK: temporal.SDKVersion,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Revision = setting.Value
		case "vcs.time":
			v.Time = setting.Value
		case "vcs.modified":
			v.Modified = setting.Value == "true"
		}
	}
	return v
}

// release identifies this build in one word: its version, and a hash of the executable,
// since there may be several builds of a version.
func release() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the executable of this program: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the executable of this program: %w", err)
	}
	defer func() { _ = file.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("read the executable of this program: %w", err)
	}
	return readVersion().Version + "+" + hex.EncodeToString(h.Sum(nil)[:6]), nil
}

func (i *invocation) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  arguments(),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return i.emit(v, func(w io.Writer) error {
				var s sheet
				s.add("starter", "%s", v.Version)
				s.add("revision", "%s", v.Revision)
				s.add("go", "%s %s", v.Go, v.Platform)
				s.add("temporal sdk", "%s", v.TemporalSDK)
				return s.write(w)
			})
		},
	}
}
