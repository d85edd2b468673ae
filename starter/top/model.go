package top

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Messages to the model.
type (
	// read is a message of WatchOverview.
	read struct{ message *jobsv1.WatchOverviewResponse }
	// lost is why there are no messages for now.
	lost struct{ err error }
	// done is the end of an action.
	done struct {
		text string
		err  error
	}
	// tick moves the times that are counted from now.
	tick struct{}
)

// model is the state of the screen.
type model struct {
	// ctx is that of the program, for its calls.
	ctx     context.Context //nolint:containedctx // Update of the library has no context.
	clients *api.Clients
	now     func() time.Time
	place   *time.Location
	colors  bool

	width, height int
	// latest is what was read; shown is what the screen shows: other than latest while frozen.
	latest, shown *jobsv1.Overview
	frozen        bool
	frozenAt      time.Time
	connection    error

	pane     pane
	selected [panes]int
	filter   string
	typing   bool
	// all says that jobs that have ended, and items of queues, are shown too.
	all     bool
	help    bool
	asked   *action
	message string
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return everySecond() }

func everySecond() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} })
}

// Update implements tea.Model.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch got := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = got.Width, got.Height
	case tick:
		return m, everySecond()
	case read:
		m.connection = nil
		m.latest = merged(m.latest, got.message)
		if !m.frozen {
			m.shown = m.latest
		}
	case lost:
		m.connection = got.err
	case done:
		m.message = got.text
		if got.err != nil {
			m.message = errorText(got.err)
		}
	case tea.KeyPressMsg:
		return m, m.press(got)
	}
	return m, nil
}

// press handles a key.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.typing:
		m.edit(name, key.Text)
		return nil
	case m.asked != nil:
		return m.answer(name)
	}
	m.message = ""
	switch name {
	case "q":
		return tea.Quit
	case "esc":
		m.help, m.filter = false, ""
	case "?":
		m.help = !m.help
	case "/":
		m.typing = true
	case "space":
		m.freeze()
	case "a":
		m.all = !m.all
	case "tab", "right":
		m.pane = (m.pane + 1) % panes
	case "shift+tab", "left":
		m.pane = (m.pane + panes - 1) % panes
	case "1", "2", "3", "4", "5", "6":
		m.pane = pane(name[0] - '1')
	case "up", "k":
		m.selected[m.pane]--
	case "down", "j":
		m.selected[m.pane]++
	case "pgup":
		m.selected[m.pane] -= m.tableHeight()
	case "pgdown":
		m.selected[m.pane] += m.tableHeight()
	default:
		rows := m.rows()
		if len(rows) > 0 {
			r := rows[m.within(len(rows))]
			if m.asked = keyAction(name, m.pane, r); m.asked == nil {
				m.message = whyNot(name, m.pane, r)
			}
		}
	}
	return nil
}

// edit changes the filter.
func (m *model) edit(name, text string) {
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if letters := []rune(m.filter); len(letters) > 0 {
			m.filter = string(letters[:len(letters)-1])
		}
	default:
		m.filter += text
	}
	m.selected[m.pane] = 0
}

// answer takes the answer to the question about an action.
func (m *model) answer(name string) tea.Cmd {
	asked := m.asked
	m.asked = nil
	if name != "y" {
		m.message = "Nothing was changed."
		return nil
	}
	m.message = asked.question() + " …"
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, time.Minute)
		defer cancel()
		is, err := asked.verb.Do(ctx, m.clients.Calls, asked.args)
		return done{is.Text, err}
	}
}

// freeze stops or continues all changes of the screen.
func (m *model) freeze() {
	m.frozen = !m.frozen
	m.frozenAt = m.now()
	if !m.frozen {
		m.shown = m.latest
	}
}

func (m *model) clock() clock {
	if m.frozen {
		return clock{m.frozenAt, m.place}
	}
	return clock{m.now(), m.place}
}

// rows are those of the pane that the filter lets through.
func (m *model) rows() []row {
	rows := m.pane.rows(m.shown, m.clock(), m.all)
	if m.filter == "" {
		return rows
	}
	wanted := strings.ToLower(m.filter)
	var kept []row
	for _, r := range rows {
		if strings.Contains(r.text(), wanted) {
			kept = append(kept, r)
		}
	}
	return kept
}

// within is the index of the selected row among so many.
func (m *model) within(count int) int {
	m.selected[m.pane] = max(0, min(m.selected[m.pane], count-1))
	return m.selected[m.pane]
}

// headLines are above the rows of the table: servers, counts, panes, an empty line and the
// header. Below it are the lines of messages.
const headLines = 5

func (m *model) tableHeight() int { return max(1, m.height-headLines-len(m.footLines())) }

// View implements tea.Model.
func (m *model) View() tea.View {
	view := tea.NewView(plantext.CleanLines(m.screen(), red, bold, plain))
	view.AltScreen = true
	view.WindowTitle = "starter top"
	return view
}

func (m *model) screen() string {
	if m.width == 0 || m.shown == nil {
		if m.connection != nil {
			return errorText(m.connection)
		}
		return "Reading …"
	}
	lines := []string{servers(m.shown, m.clock()), counts(m.shown), m.tabs(), ""}
	if m.help {
		lines = append(lines, strings.Split(helpText, "\n")...)
	} else {
		lines = append(lines, m.table()...)
	}
	foot := m.footLines()
	body := max(0, m.height-len(foot))
	lines = lines[:min(len(lines), body)]
	for len(lines) < body {
		lines = append(lines, "")
	}
	lines = append(lines, foot...)
	for n, text := range lines {
		lines[n] = ansi.Truncate(text, m.width, "…")
	}
	return strings.Join(lines, "\n")
}

// tabs names the panes.
func (m *model) tabs() string {
	parts := make([]string, 0, panes)
	for p := range panes {
		title := fmt.Sprintf("%d %s %d", p+1, p.title(), p.count(p.rows(m.shown, m.clock(), m.all)))
		if p == m.pane {
			title = "[" + title + "]"
		}
		parts = append(parts, title)
	}
	return strings.Join(parts, "  ")
}

func (m *model) table() []string {
	rows := m.rows()
	if len(rows) == 0 {
		if m.pane == paneAlerts && m.filter == "" {
			return []string{"Nothing needs you."}
		}
		return []string{"There are none."}
	}
	selected := m.within(len(rows))
	first := max(0, min(selected-m.tableHeight()/2, len(rows)-m.tableHeight()))
	shown := rows[first:min(len(rows), first+m.tableHeight())]
	const mark = "> "
	lines, _ := m.pane.fit(shown, max(1, m.width-len(mark)))
	lines[0] = strings.Repeat(" ", len(mark)) + lines[0]
	for n, r := range shown {
		text, chosen := lines[1+n], first+n == selected
		if chosen {
			text = mark + text
		} else {
			text = strings.Repeat(" ", len(mark)) + text
		}
		lines[1+n] = m.paint(text, r.urgent, chosen)
	}
	return lines
}

// The sequences of colors.
const red, bold, plain = "\x1b[31m", "\x1b[1m", "\x1b[0m"

// paint colors a line, if there are colors.
func (m *model) paint(text string, urgent, selected bool) string {
	if !m.colors || !urgent && !selected {
		return text
	}
	start := ""
	if urgent {
		start += red
	}
	if selected {
		start += bold
	}
	return start + text + plain
}

// footLines are the last lines: a question or an answer may take several.
func (m *model) footLines() []string { return strings.Split(ansi.Wrap(m.foot(), m.width, ""), "\n") }

// foot is the text below the table.
func (m *model) foot() string {
	switch {
	case m.asked != nil:
		return m.asked.question() + " y/n"
	case m.typing:
		return "/" + m.filter + "_"
	case m.message != "":
		return m.message
	case m.connection != nil:
		return "The overview is old: " + errorText(m.connection)
	}
	text := "? help · q quit · / filter · space freeze"
	if left := leftOut(m.shown); left > 0 && m.pane == paneJobs && !m.all {
		text += fmt.Sprintf(" · a shows %d more", left)
	}
	if m.frozen {
		text = "FROZEN at " + m.frozenAt.In(m.place).Format(time.TimeOnly) + " · space goes on"
	}
	if m.filter != "" {
		text += " · filter " + m.filter + " (esc ends it)"
	}
	return text
}

var helpText = `1 to 6, tab    choose a list
j k, arrows    choose a line
/              show only lines with a text
a              also jobs that have ended, and items of queues
space          freeze the screen, and go on
p              pause or resume the job or the queue
r              run the job now
c              stop what the job does now
enter          of an alert: do what helps
esc            end the filter and this help
q              quit

Changes are asked about first.
Latest runs: ` + outcomes()

// outcomes says what the letters are, in lines that fit a terminal.
func outcomes() string {
	var b strings.Builder
	for n, o := range verbs.Outcomes() {
		switch {
		case n > 0 && n%5 == 0:
			b.WriteString(",\n")
		case n > 0:
			b.WriteString(", ")
		}
		b.WriteString(o.Letter + " " + o.Text)
	}
	return b.String() + "."
}
