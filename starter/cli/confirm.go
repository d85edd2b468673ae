package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// askYes asks whether to go on. Of a command that cannot ask, the error says what
// --yes does; of one that is answered otherwise than with yes, what was not done.
func (i *invocation) askYes(ctx context.Context, command, question, toDo, notDone string) error {
	if i.format == formatJSON {
		return fmt.Errorf("%s with -o json does not ask: add --yes to %s", command, toDo)
	}
	if !i.IsTerminal(i.Stdin) || !i.IsTerminal(i.Stderr) {
		return fmt.Errorf("there is no terminal to ask on: add --yes to %s", toDo)
	}
	_, _ = fmt.Fprintf(i.Stderr, "\n%s [y/N] ", question) // Shown at the terminal or not at all.
	answers := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(i.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errors.New(notDone)
	case <-ctx.Done():
		i.note("")
		return ctx.Err()
	}
}
