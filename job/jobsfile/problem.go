package jobsfile

import (
	"cmp"
	"fmt"
	"slices"
)

// Problem is something wrong in a jobs file.
type Problem struct {
	// File is the name that was given to Read or Load.
	File string `json:"file"`
	// Line and Column count from 1; columns count characters.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Message is one sentence.
	Message string `json:"message"`
	// UnknownType is the name of the job type that is not known, if that is what
	// is wrong.
	UnknownType string `json:"-"`
}

// String writes file:line:column: message, as editors and terminals read it.
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// arrange orders problems by position and drops repeats: what is inherited by
// many jobs is wrong once.
func arrange(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}
