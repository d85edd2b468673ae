package process

import (
	"cmp"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// Names of the environment variables of the settings.
const (
	EnvProcesses = "DENDRA_IMAGE_PROCESSES"
	EnvMemory    = "DENDRA_IMAGE_MEMORY_MIB"
	EnvSeconds   = "DENDRA_IMAGE_SECONDS"
	EnvEngine    = "DENDRA_IMAGE_ENGINE"
)

// Settings are those of a pool.
type Settings struct {
	// Program is what the processes run, with [Main]. Defaults to the program that makes the pool.
	Program string
	// Engine decodes and encodes JPEG. Defaults to [imaging.Turbo] where it is installed, else
	// [imaging.Standard].
	Engine imaging.EngineName
	// Processes is how many there are at most. Defaults to the number of processors.
	Processes int
	// MemoryMiB is how much memory one may take at most, in MiB. Defaults to 2304: the largest
	// picture within [imaging.DefaultLimits].
	MemoryMiB int
	// Seconds of processor time that one picture may take. Defaults to 30. All in all it may
	// take four times as long, waits for the store included.
	Seconds int
}

func (s Settings) withDefaults() Settings {
	return Settings{
		Program: s.Program, Engine: s.Engine, Processes: cmp.Or(s.Processes, runtime.GOMAXPROCS(0)), MemoryMiB: cmp.Or(s.MemoryMiB, 2304), Seconds: cmp.Or(s.Seconds, 30),
	}
}

func (s Settings) wall() time.Duration { return 4 * time.Duration(s.Seconds) * time.Second }

// SettingsFromEnv reads the settings. What is not set has its default.
func SettingsFromEnv(getenv func(string) string) (s Settings, err error) {
	for _, v := range []struct {
		name  string
		into  *int
		least int
		most  int
	}{{EnvProcesses, &s.Processes, 1, 1024}, {EnvMemory, &s.MemoryMiB, 300, 1 << 20}, {EnvSeconds, &s.Seconds, 1, 3600}} {
		text := getenv(v.name)
		if text == "" {
			continue
		}
		if *v.into, err = strconv.Atoi(text); err != nil || *v.into < v.least || *v.into > v.most {
			return s, fmt.Errorf("%s is %q, and not a number from %d to %d", v.name, text, v.least, v.most)
		}
	}
	switch s.Engine = imaging.EngineName(getenv(EnvEngine)); s.Engine {
	case "", imaging.Turbo, imaging.Standard:
		return s, nil
	default:
		return s, fmt.Errorf("%s is %q, and not %s or %s", EnvEngine, s.Engine, imaging.Turbo, imaging.Standard)
	}
}
