package page

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"net/http"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/verbs"
)

//go:embed templates/*.html
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))

// view makes the document of a request.
type view func(*http.Request) (*document, error)

// document is a page that browsers show.
type document struct {
	// Title is that of the window; View the name of the template.
	Title, View string
	// Section is the view that the navigation marks.
	Section string
	// Follow are the topics of events after which the document is read again.
	Follow []string
	// Run is the run that is followed.
	Run string
	// Revision is that of the overview that was read, with the name of the process.
	Revision string
	// Runs is how many outcomes the grid has. 0 in other views.
	Runs int
	// Sort is what the rows of the grid are ordered by.
	Sort string
	// Chart says that the view has charts.
	Chart bool
	// MaySilence says that there is the dialog for a silence.
	MaySilence bool
	Data       any
}

var errNoView = errors.New("there is no such view")

// show answers with the document of a view.
func (p *Page) show(view view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		doc, err := view(r)
		if err != nil {
			status, doc = p.failed(r, err)
		}
		p.write(w, r, status, doc)
	})
}

// write sends a document.
func (p *Page) write(w http.ResponseWriter, r *http.Request, status int, doc *document) {
	doc.MaySilence = offers(p.role(r), verbs.CreateSilence, verbs.Subject{})
	text, err := render("layout", doc)
	if err != nil {
		p.Logger.ErrorContext(r.Context(), "a view cannot be shown", "view", doc.View, "error", err)
		http.Error(w, "This view cannot be shown. The server's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // Whoever has left needs no answer.
}

func render(name string, data any) ([]byte, error) {
	var text bytes.Buffer
	err := templates.ExecuteTemplate(&text, name, data)
	return text.Bytes(), err
}

// failed is the document of an error.
func (p *Page) failed(r *http.Request, err error) (int, *document) {
	status := http.StatusBadGateway
	switch code := connect.CodeOf(err); {
	case errors.Is(err, errNoView), code == connect.CodeNotFound, code == connect.CodeInvalidArgument:
		status = http.StatusNotFound
	case code == connect.CodePermissionDenied, code == connect.CodeUnauthenticated:
		status = http.StatusForbidden
	case r.Context().Err() != nil, code == connect.CodeCanceled:
		p.Logger.DebugContext(r.Context(), "a browser left a view", "path", r.URL.Path, "error", err)
	default:
		p.Logger.WarnContext(r.Context(), "a view cannot be read", "path", r.URL.Path, "error", err)
	}
	return status, &document{Title: "Not shown", View: "failed", Data: sentence(err)}
}

// sentence is what an error tells people.
func sentence(err error) string {
	if known, ok := errors.AsType[*connect.Error](err); ok {
		return known.Message()
	}
	return err.Error()
}
