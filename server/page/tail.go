package page

import "net/http"

// tailLines is how many lines of a log are shown beside an alert.
const tailLines = 3

// tail answers with the last lines of the log of a run, for the place where people ask for them.
func (p *Page) tail(w http.ResponseWriter, r *http.Request) {
	view := p.log(r.Context(), r.PathValue("name"), logQuery{})
	view.Lines = view.Lines[max(0, len(view.Lines)-tailLines):]
	text, err := render("tail", view)
	if err != nil {
		p.Logger.ErrorContext(r.Context(), "the last lines of a log cannot be shown", "run", r.PathValue("name"), "error", err)
		http.Error(w, "The last lines cannot be shown. The server's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(text) //nolint:gosec // The template has escaped it. Whoever has left needs no answer.
}
