package metrics

// Names of labels.
const (
	jobType    = "job_type"
	workerType = "worker_type"
	outcome    = "outcome"
	location   = "location"
	operation  = "operation"
	mirror     = "mirror"
	procedure  = "procedure"
)

// Outcomes of runs and attempts.
const (
	Completed  = "completed"
	Failed     = "failed"
	Canceled   = "canceled"
	TimedOut   = "timed_out"   // longer than run_timeout
	HandedOver = "handed_over" // its worker shut down
	Lost       = "lost"        // it may be another worker's
	Stuck      = "stuck"       // its handler was given up
	HeldBack   = "held_back"   // a run that did nothing: its job is failing, or it gave way to another
)

// The metrics of workers.
var (
	WorkerServing = gauge("worker_serving", "1 while the process takes work, 0 while it connects or drains", workerType)
	Slots         = gauge("slots", "Handlers that may run at once in the process", workerType)
	SlotsUsed     = gauge("slots_used", "Slots in use, those of stuck handlers included", workerType)

	Runs            = counter("runs_total", "Runs that ended in a workflow of this process", jobType, outcome)
	Attempts        = counter("attempts_total", "Attempts of runs and iterations that ended in this process", jobType, outcome)
	HandlerDuration = histogram("handler_duration_seconds", "How long handlers worked", jobType)
	HandlersRunning = gauge("handlers_running", "Handlers at work, stuck ones included", jobType)
	HandlersStuck   = gauge("handlers_stuck", "Handlers that ignored the end of their context and were given up", jobType)
	LeasesLost      = counter("leases_lost_total", "Attempts whose run may have gone to another worker", jobType)
	HeartbeatFailed = counter("heartbeats_failed_total", "Heartbeats that Temporal did not acknowledge", jobType)
	Checkpoints     = counter("checkpoints_total", "Checkpoints of handlers", jobType)
	LogLinesLost    = counter("run_log_lines_lost_total", "Lines of run logs that could not be kept in NATS")
)

// The metrics of servers of the Job API.
var (
	APICalls    = counter("api_calls_total", "Calls of the Job API that ended, by code", procedure, "code")
	APIDuration = histogram("api_call_duration_seconds", "How long calls of the Job API took, streams left out", procedure)
)

// The metrics of the watchdog.
var (
	AlertsFiring  = recently("alerts_firing", "Alerts that fire", "rule")
	Heartbeat     = recently("heartbeat_time_seconds", "When the URL of the heartbeat took a call last, as Unix time")
	Notifications = counter("notifications_total", "Messages of the watchdog that a receiver has taken, or not", "receiver", "result")
)

// The metrics of loads into InfluxDB. Load jobs know them.
var (
	LoadPoints      = counter("load_points_total", "Points that a mirror has stored, repeats included", location, operation, mirror)
	LoadRefused     = counter("load_refused_total", "Points and messages that went to quarantine", location, operation, mirror)
	LoadExpired     = counter("load_points_expired_total", "Points older than the database keeps", location, operation, mirror)
	LoadMirrorUp    = recently("load_mirror_up", "1 while the mirror is written to, 0 while it is left alone or tried", location, operation, mirror)
	LoadWaiting     = recently("load_waiting_messages", "Messages that the mirror has not stored yet", location, operation, mirror)
	LoadLag         = recently("load_lag_seconds", "Age of the oldest message that waits, 0 if none does", location, operation, mirror)
	PipelineSent    = counter("pipeline_messages_total", "Messages that a stream has taken, or had already", "stream", "result")
	Quarantined     = counter("quarantined_messages_total", "Messages and points that went to quarantine", "stage", "class")
	LDMPRecords     = counter("ldmp_records_total", "Records read from LoggerNet servers", "organization", "result")
	HOBORequests    = counter("hobolink_requests_total", "Requests to LI-COR Cloud by HTTP status, or none", "status")
	ArchiveObjects  = counter("archive_objects_total", "Objects written into the archive")
	ArchiveMessages = counter("archive_messages_total", "Messages in the objects that were written")
	ArchiveBytes    = counter("archive_bytes_total", "Bytes of these messages before compression")
	ArchiveStored   = counter("archive_stored_bytes_total", "Bytes of these objects as stored")
)

// Values of the label result.
const (
	ResultStored    = "stored"
	ResultDuplicate = "duplicate"
	ResultRepeat    = "repeat"
	ResultRefused   = "refused"
)
