package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/turbo"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// sidesOfLadder are the squares of the ladder release2, the largest first.
func sidesOfLadder() []int { return []int{1080, 960, 480, 480, 240, 120, 60} }

// photoCase is a photo that is generated.
type photoCase struct {
	name          string
	width, height int
	subsampling   turbo.Subsampling
	grain         int // most that a sample differs from its neighbours
}

// imagesBench measures the processor time of the ladder of seven variants: by image processes
// with each engine, by libvips as a cascade, and by sharp, in turns.
func imagesBench(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench images", flag.ContinueOnError)
	sharpModules := fs.String("sharp", "node_modules", "`FOLDER` where npm has installed sharp, which node loads")
	program := fs.String("program", "bin/backend", "`FILE` of the worker whose image processes are measured")
	rounds := fs.Int("rounds", 5, "rounds per case; the medians are shown")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || fs.NArg() > 0 {
		return errors.New("bench images takes --rounds of at least 1, and no arguments")
	}
	worker, err := filepath.Abs(*program)
	if err != nil {
		return err
	}
	if _, err := os.Stat(worker); err != nil {
		return fmt.Errorf("the worker is missing: %w", err)
	}
	library, err := turbo.Open()
	if err != nil {
		return fmt.Errorf("the photos are made by libjpeg-turbo: %w", err)
	}
	folder, err := os.MkdirTemp("", "bench-images")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	var table strings.Builder
	table.WriteString("\n| CPU ms (peak MiB of its own) | libjpeg-turbo | go | libvips cascade | sharp | WebP | WebP by libvips | WebP by sharp |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, photo := range []photoCase{
		{"12 MP 4:2:2", 4032, 3024, turbo.HalfWidth, 8}, {"22 MP 4:4:4", 5472, 4104, turbo.Full, 8}, {"24 MP noisy 4:2:0", 6000, 4000, turbo.Quarter, 60},
	} {
		file, err := photo.encode(library)
		if err != nil {
			return err
		}
		path := filepath.Join(folder, "photo.jpg")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			return err
		}
		ours := func(engine imaging.EngineName, format imaging.Format) func() (time.Duration, mebibytes, error) {
			return func() (time.Duration, mebibytes, error) { return ladderByUs(ctx, worker, file, engine, format) }
		}
		ways := []func() (time.Duration, mebibytes, error){
			ours(imaging.Turbo, imaging.JPEG), ours(imaging.Standard, imaging.JPEG),
			func() (time.Duration, mebibytes, error) { return ladderByVips(ctx, path, ".jpg") },
			func() (time.Duration, mebibytes, error) { return ladderBySharp(ctx, *sharpModules, path, "jpeg") },
			ours(imaging.Turbo, imaging.WebP),
			func() (time.Duration, mebibytes, error) { return ladderByVips(ctx, path, ".webp") },
			func() (time.Duration, mebibytes, error) { return ladderBySharp(ctx, *sharpModules, path, "webp") },
		}
		samples, peaks := make([][]sample, len(ways)), make([]mebibytes, len(ways))
		for range *rounds {
			for n, way := range ways {
				took, peak, err := way()
				if errors.Is(err, exec.ErrNotFound) {
					continue
				}
				if err != nil {
					return err
				}
				samples[n], peaks[n] = append(samples[n], sample{P50: took}), max(peaks[n], peak)
			}
		}
		fmt.Fprintf(&table, "| %s, %d kB |", photo.name, len(file)/1000)
		for n := range ways {
			cell := " not installed |"
			if len(samples[n]) > 0 {
				cell = fmt.Sprintf(" %.0f |", median(samples[n], func(s sample) float64 { return float64(s.P50) / float64(time.Millisecond) }))
			}
			if peaks[n] > 0 {
				cell = fmt.Sprintf("%s (%d) |", strings.TrimSuffix(cell, " |"), peaks[n])
			}
			table.WriteString(cell)
		}
		table.WriteString("\n")
	}
	fmt.Fprintf(&table, "\nload %s\n", loadAverage())
	_, err = io.WriteString(out, table.String())
	return err
}

// encode makes the file: soft waves with grain.
func (p photoCase) encode(library *turbo.Library) ([]byte, error) {
	random := rand.New(rand.NewPCG(1, uint64(p.width)))
	planes := turbo.Planes{Width: p.width, Height: p.height, Subsampling: p.subsampling}
	for n := range 3 {
		w, h := p.width, p.height
		if n > 0 && p.subsampling != turbo.Full {
			w = (w + 1) / 2
		}
		if n > 0 && p.subsampling == turbo.Quarter {
			h = (h + 1) / 2
		}
		plane := turbo.Plane{Pix: make([]byte, w*h), Stride: w, Width: w, Height: h}
		for y := range h {
			v := 128 + 70*math.Sin(float64(y)*float64(5+n)/float64(h))
			for x := range w {
				wave := 40 * math.Sin(float64(x*y)/float64(w*h)*30)
				plane.Pix[y*w+x] = byte(min(max(v+wave+float64(random.IntN(p.grain)), 0), 255))
			}
		}
		planes.Planes = append(planes.Planes, plane)
	}
	return library.Encode(planes, 90, false)
}

// ladderByUs is the processor time of an image process of a worker from its start to its end.
func ladderByUs(ctx context.Context, worker string, file []byte, engine imaging.EngineName, format imaging.Format) (time.Duration, mebibytes, error) {
	var task imaging.Task
	for _, side := range sidesOfLadder() {
		task.Outputs = append(task.Outputs, imaging.Wanted{
			Name: strconv.Itoa(side), Width: side, Height: side, Fit: imaging.Cover, Format: format, Quality: 82,
		})
	}
	before := timeOfChildren()
	pool := process.NewPool(process.Settings{Program: worker, Processes: 1, Engine: engine})
	_, err := pool.Make(ctx, file, imaging.DefaultLimits(), task)
	var peak mebibytes
	for _, pid := range stack.Children(os.Getpid()) {
		if of, failed := ownMemory(pid); failed == nil {
			peak = max(peak, of)
		}
	}
	pool.Close()
	return timeOfChildren() - before, peak, err
}

// ladderByVips is the processor time of libvips as sharp drives it: the decoder reduces once, and
// each size is made of the one before. Its command has a process for each step, so that their
// starts count but once.
func ladderByVips(ctx context.Context, path, extension string) (time.Duration, mebibytes, error) {
	began := timeOfChildren()
	if err := vips(ctx, "--version"); err != nil {
		return 0, 0, err
	}
	start := timeOfChildren() - began
	began = timeOfChildren()
	steps, from := 0, path
	for n, side := range sidesOfLadder() {
		to := filepath.Join(filepath.Dir(path), strconv.Itoa(n)+".v")
		size := strconv.Itoa(side)
		for _, step := range [][]string{
			{"thumbnail", from, to, size, "--height", size, "--crop", "centre"}, {"copy", to, strings.TrimSuffix(to, ".v") + extension + "[Q=82,strip]"},
		} {
			steps++
			if err := vips(ctx, step...); err != nil {
				return 0, 0, err
			}
		}
		from = to
	}
	return timeOfChildren() - began - time.Duration(steps-1)*start, 0, nil
}

func vips(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "vips", args...)
	cmd.Env = append(os.Environ(), "VIPS_CONCURRENCY=1")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("vips %s: %w: %s", args[0], err, said)
	}
	return nil
}

// sharpScript makes the ladder size by size, each of the file itself: its decoder reduces while
// it decodes. Arguments: the file, the format, the sides.
const sharpScript = `const sharp = require("sharp");
sharp.concurrency(1);
sharp.cache(false);
const [file, format, ...sides] = process.argv.slice(1);
(async () => {
  for (const side of sides.map(Number)) {
    await sharp(file).resize(side, side, { fit: "cover" }).toFormat(format, { quality: 82 }).toFile(file + "-" + side + "." + format);
  }
})();`

// ladderBySharp is the processor time of a process of node from its start to its end.
func ladderBySharp(ctx context.Context, modules, path, format string) (time.Duration, mebibytes, error) {
	modules, err := filepath.Abs(modules)
	if err != nil {
		return 0, 0, err
	}
	if _, err := os.Stat(filepath.Join(modules, "sharp")); err != nil {
		return 0, 0, exec.ErrNotFound
	}
	args := []string{"-e", sharpScript, path, format}
	for _, side := range sidesOfLadder() {
		args = append(args, strconv.Itoa(side))
	}
	before := timeOfChildren()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	if said, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("sharp: %w: %s", err, said)
	}
	return timeOfChildren() - before, 0, nil
}

// timeOfChildren is the processor time of all processes that this one has waited for.
func timeOfChildren() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
