package page

import (
	"context"
	"html/template"
	"strings"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// shownChanges is how many changes a view lists.
const shownChanges = 20

// changes are the latest changes that fit a filter.
func (p *Page) changes(ctx context.Context, filter string) ([]*jobsv1.Change, error) {
	answer, err := p.API.Changes.ListChanges(ctx, &jobsv1.ListChangesRequest{PageSize: shownChanges, Filter: filter})
	return answer.GetChanges(), err
}

// differing marks the lines of a difference.
func differing(text string) template.HTML {
	var b strings.Builder
	for line := range strings.Lines(text) {
		tag := map[byte]string{'+': "ins", '-': "del", '@': "small"}[line[0]]
		line = template.HTMLEscapeString(line)
		if tag != "" {
			line = "<" + tag + ">" + strings.TrimSuffix(line, "\n") + "</" + tag + ">\n"
		}
		b.WriteString(line)
	}
	return template.HTML(b.String()) //nolint:gosec // Its lines are escaped.
}
