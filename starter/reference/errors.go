package reference

import "github.com/dendrascience/dendra-jobs/job/errclass"

// Errors is docs/errors.md: the classes of errors.
func Errors() []byte { return errclass.Reference() }

// Class is what the page says of a class: why it comes, what to do, and where on the page it
// is. There is none of a class that is not listed.
func Class(name string) (cause, cure, at string, listed bool) {
	class, listed := errclass.Find(name)
	if !listed {
		return "", "", "", false
	}
	return class.Cause, class.Cure, "docs/" + class.Anchor(), true
}
