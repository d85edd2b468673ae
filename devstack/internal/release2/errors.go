package release2

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Error is an answer of the API that is no success.
type Error struct {
	Name      string   `json:"name"`
	Message   string   `json:"message"`
	Code      int      `json:"code"`
	ClassName string   `json:"className"`
	Errors    []string `json:"errors,omitempty"`
}

func (e *Error) Error() string { return e.Message }

func badRequest(format string, args ...any) *Error {
	return &Error{Name: "BadRequest", Message: fmt.Sprintf(format, args...), Code: http.StatusBadRequest, ClassName: "bad-request"}
}

func notFound(id string) *Error {
	return &Error{Name: "NotFound", Message: fmt.Sprintf("No record found for id '%s'", id), Code: http.StatusNotFound, ClassName: "not-found"}
}

func conflict(id string) *Error {
	return &Error{Name: "Conflict", Message: fmt.Sprintf("There is a record of id '%s'", id), Code: http.StatusConflict, ClassName: "conflict"}
}

// answer writes a result, or what went wrong.
func answer(w http.ResponseWriter, status int, result any, err error) {
	if err != nil {
		failed, ok := errors.AsType[*Error](err)
		if !ok {
			failed = &Error{Name: "GeneralError", Message: err.Error(), Code: http.StatusInternalServerError, ClassName: "general-error"}
		}
		status, result = failed.Code, failed
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result) // the client may be gone
}
