package contract

// WatchRunInput names the run to watch.
type WatchRunInput struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// Types of the errors of WatchRun and ReadPage.
const (
	ErrorTypePageNotFound   = "PageNotFound"
	ErrorTypePageUnreadable = "PageUnreadable"
	ErrorTypeRunCanceled    = "RunCanceled"
	ErrorTypeRunFailed      = "RunFailed"
	ErrorTypeRunCutOff      = "RunCutOff"
)
