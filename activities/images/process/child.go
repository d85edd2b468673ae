package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// Arguments of a child: what it does, and its engine.
const (
	argument    = "image-process" // makes pictures
	askArgument = "image-engine"  // says whether it has the engine
)

// Main makes pictures and ends the process, if the program was started by a [Pool]. Otherwise it
// returns at once. It has to be the first call of main. The codecs are those of package codecs.
func Main(codecs imaging.Codecs) {
	if len(os.Args) != 3 || os.Args[1] != argument && os.Args[1] != askArgument {
		return
	}
	// Before it confines itself: a library is a file.
	engine, err := imaging.OpenEngine(imaging.EngineName(os.Args[2]), codecs)
	if err == nil && os.Args[1] == argument {
		err = serve(engine)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // The main of a child.
	}
	os.Exit(0) //nolint:forbidigo // The main of a child.
}

// serve makes the pictures of one request after the other, until there are no more.
func serve(engine imaging.Engine) error {
	runtime.GOMAXPROCS(1) // The pool has as many processes as there are processors.
	if err := confine(); err != nil {
		return fmt.Errorf("the image process cannot be confined: %w", err)
	}
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		var r request
		data, err := readFrame(in, &r)
		if errors.Is(err, io.EOF) {
			return nil // The pool has no more.
		}
		if err != nil {
			return err
		}
		if err := r.limit(); err != nil {
			return err
		}
		if err := r.make(engine, data, out); err != nil {
			return err
		}
		debug.FreeOSMemory() // The file and its pixels are garbage by now.
	}
}

// make makes the pictures of a request. The error is that of a pipe.
func (r request) make(engine imaging.Engine, data []byte, out *bufio.Writer) error {
	var broken error
	err := engine.Make(context.Background(), data, r.Limits, r.Task, func(made imaging.Made) error {
		if broken = writeFrame(out, answer{Made: &made}, made.Data); broken == nil {
			broken = out.Flush()
		}
		return broken
	})
	if broken != nil {
		return broken
	}
	var last answer
	var invalid *imaging.InvalidError
	var limit *imaging.LimitError
	switch {
	case errors.As(err, &invalid):
		last.Invalid = invalid.Error()
	case errors.As(err, &limit):
		last.Limit = limit.Error()
	case err != nil:
		last.Failed = err.Error()
	}
	if last.Used, err = used(); err != nil {
		return err
	}
	if err := writeFrame(out, last, nil); err != nil {
		return err
	}
	return out.Flush()
}
