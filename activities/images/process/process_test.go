package process_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/codecs"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// The test binary is also the image process.
func TestMain(m *testing.M) {
	process.Main(codecs.All())
	os.Exit(m.Run()) //nolint:forbidigo // The main of the test binary.
}

func newPool(t *testing.T, settings process.Settings) *process.Pool {
	t.Helper()
	pool := process.NewPool(settings)
	t.Cleanup(pool.Close)
	return pool
}

// photo is a JPEG with a gradient.
func photo(t *testing.T, w, h int) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetRGBA(x, y, color.RGBA{uint8(255 * x / w), uint8(255 * y / h), uint8(x ^ y), 255})
		}
	}
	var file bytes.Buffer
	require.NoError(t, jpeg.Encode(&file, img, &jpeg.Options{Quality: 85}))
	return file.Bytes()
}

// Color types of a PNG (PNG 3rd edition, 11.2.1).
const (
	grayAlpha = 4 // is decoded as a whole
	rgba      = 6 // is decoded row by row
)

// bomb is a PNG of 5000×5000 pixels of zeros with 16 bits for each channel: small in a file, and
// 190 MiB for a decoder that decodes it as a whole.
func bomb(t *testing.T, colorType byte) []byte {
	t.Helper()
	const side = 5000
	channels := map[byte]int{grayAlpha: 2, rgba: 4}[colorType]
	var rows bytes.Buffer
	z := zlib.NewWriter(&rows)
	row := make([]byte, 1+2*channels*side)
	for range side {
		_, err := z.Write(row)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	file := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, body []byte) {
		file = binary.BigEndian.AppendUint32(file, uint32(len(body)))
		typed := append([]byte(kind), body...)
		file = append(file, typed...)
		file = binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(typed))
	}
	header := binary.BigEndian.AppendUint32(nil, side)
	header = binary.BigEndian.AppendUint32(header, side)
	chunk("IHDR", append(header, 16, colorType, 0, 0, 0))
	chunk("IDAT", rows.Bytes())
	chunk("IEND", nil)
	return file
}

func ladder(sides ...int) imaging.Task {
	var task imaging.Task
	for _, side := range sides {
		task.Outputs = append(task.Outputs, imaging.Wanted{
			Name: strconv.Itoa(side), Width: side, Height: side, Fit: imaging.Cover, Format: imaging.JPEG, Quality: 82,
		})
	}
	return task
}

// What a process of the pool makes is what package imaging makes by the same engine, byte by byte,
// time after time.
func TestMakesTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range []imaging.EngineName{imaging.Standard, imaging.Turbo} {
		engine, err := imaging.OpenEngine(name, codecs.All())
		if err != nil {
			t.Log(err)
			continue
		}
		pool := newPool(t, process.Settings{Processes: 2, Engine: name})
		file, task := photo(t, 1200, 900), ladder(60, 480, 240)
		task.Outputs[2].Format = imaging.WebP
		want := map[int][]byte{}
		err = engine.Make(t.Context(), file, imaging.DefaultLimits(), task, func(m imaging.Made) error {
			want[m.Output] = m.Data
			return nil
		})
		require.NoError(t, err)
		for range 3 {
			made, err := pool.Make(t.Context(), file, imaging.DefaultLimits(), task)
			require.NoError(t, err)
			require.Len(t, made, 3)
			require.Equal(t, []int{1, 2, 0}, []int{made[0].Output, made[1].Output, made[2].Output}, "the largest first")
			for _, m := range made {
				require.Equal(t, want[m.Output], m.Data)
			}
		}
	}
}

// Without a setting the engine is libjpeg-turbo where it is installed, and settings may name one.
func TestEngineOfSettings(t *testing.T) {
	t.Parallel()
	want := imaging.Turbo
	_, err := imaging.OpenEngine(imaging.Turbo, codecs.All())
	if err != nil {
		want = imaging.Standard
	}
	for text, want := range map[string]imaging.EngineName{"": want, "go": imaging.Standard} {
		settings, err := process.SettingsFromEnv(func(name string) string { return map[string]string{process.EnvEngine: text}[name] })
		require.NoError(t, err)
		engine, err := newPool(t, settings).Engine()
		require.NoError(t, err)
		require.Equal(t, want, engine)
	}
	_, err = process.SettingsFromEnv(func(name string) string { return map[string]string{process.EnvEngine: "libvips"}[name] })
	require.ErrorContains(t, err, `DENDRA_IMAGE_ENGINE is "libvips", and not libjpeg-turbo or go`)
}

// The errors of a child are those of package imaging, and the child goes on.
func TestErrorsComeBack(t *testing.T) {
	t.Parallel()
	pool := newPool(t, process.Settings{Processes: 1})
	file := photo(t, 300, 200)
	_, err := pool.Make(t.Context(), file[:len(file)/2], imaging.DefaultLimits(), ladder(60))
	var invalid *imaging.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.ErrorContains(t, err, "damaged or cut short")
	small := imaging.DefaultLimits()
	small.MaxPixels = 100
	_, err = pool.Make(t.Context(), file, small, ladder(60))
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	_, err = pool.Make(t.Context(), file, imaging.DefaultLimits(), ladder(60))
	require.NoError(t, err)
}

// A picture that its decoder needs more memory for than the file says ends its process, and no
// other: the limit of the system holds.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	onLinux(t)
	if process.Racing {
		t.Skip("the race detector has the memory")
	}
	pool := newPool(t, process.Settings{Processes: 2})
	whole := bomb(t, grayAlpha)
	limits := imaging.DefaultLimits()
	_, err := newPool(t, process.Settings{MemoryMiB: 500}).Make(t.Context(), whole, limits, ladder(60))
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "may need 637 MiB, more than the 500 MiB of an image process")
	_, err = pool.MakeWithin(t.Context(), whole, limits, ladder(60), 150)
	var died *process.DiedError
	require.ErrorAs(t, err, &died)
	require.ErrorContains(t, err, "the image process ended in the middle of this picture (exit status 2): ")
	_, err = pool.Make(t.Context(), photo(t, 300, 200), limits, ladder(60))
	require.NoError(t, err)
	_, err = pool.MakeWithin(t.Context(), bomb(t, rgba), limits, ladder(60), 150)
	require.NoError(t, err)
}

// Work that takes too long ends with its process.
func TestTimeIsBounded(t *testing.T) {
	t.Parallel()
	onLinux(t)
	pool := newPool(t, process.Settings{Processes: 1, Seconds: 1})
	slow := bomb(t, grayAlpha)
	_, err := pool.Make(t.Context(), slow, imaging.DefaultLimits(), ladder(4096, 4000, 3900, 3800, 3700, 3600, 3500, 3400))
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	require.Regexp(t, "takes (more than 1 s of a processor|longer than 4s)", err.Error()) // The latter on a busy machine.
}

// A caller that gives up ends the process, not the pool.
func TestCallersMayGiveUp(t *testing.T) {
	t.Parallel()
	pool := newPool(t, process.Settings{Processes: 2})
	file := photo(t, 2000, 1500)
	var all sync.WaitGroup
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			_, err := pool.Make(ctx, file, imaging.DefaultLimits(), ladder(480))
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		all.Go(cancel)
	}
	all.Wait()
	_, err := pool.Make(t.Context(), file, imaging.DefaultLimits(), ladder(480))
	require.NoError(t, err)
}

// Processes that are killed in the middle of pictures are replaced: all pictures are made.
func TestKilledProcessesAreReplaced(t *testing.T) { //nolint:paralleltest // It kills the processes of all tests.
	onLinux(t)
	pool := newPool(t, process.Settings{Processes: 2})
	file := photo(t, 2000, 1500)
	random := stacktest.Random(t)
	const pictures, kills = 8, 3
	ended := make(chan error, pictures)
	for range pictures {
		go func() {
			_, err := pool.Make(t.Context(), file, imaging.DefaultLimits(), ladder(1080, 480))
			ended <- err
		}()
	}
	for range kills {
		stacktest.WaitFor(t, "a process to kill", func() (bool, error) {
			pids := stack.Children(os.Getpid())
			return len(pids) > 0 && syscall.Kill(pids[random.IntN(len(pids))], syscall.SIGKILL) == nil, nil
		})
	}
	failed := 0
	for range pictures {
		if err := <-ended; err != nil {
			failed++
			require.ErrorContains(t, err, "was killed twice")
		}
	}
	require.LessOrEqual(t, failed, kills/2)
}

// A process has no way to files, network or other processes.
func TestConfined(t *testing.T) {
	t.Parallel()
	onLinux(t)
	said := process.TryToEscape(t)
	for _, way := range []string{"open a file", "write a file", "connect", "listen", "start a program", "fork", "trace the worker", "kill the worker"} {
		require.Contains(t, said, way+": operation not permitted", said)
	}
	require.Contains(t, said, "environment: 0 variables")
}

func onLinux(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/limits"); err != nil {
		t.Skip("the limits are those of Linux")
	}
}
