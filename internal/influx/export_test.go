package influx

// ErrorOf is the error of an answer.
func ErrorOf(text string) *Error { return &Error{Text: text, full: text} }
