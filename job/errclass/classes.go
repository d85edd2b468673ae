package errclass

// The classes. The reference says what each means.
const (
	// The job system.
	Unclassified           = "Error"
	InvalidSpec            = "InvalidSpec"
	Secret                 = "Secret"
	SecretRefused          = "SecretRefused"
	Panic                  = "Panic"
	NoService              = "NoService"
	RunTimeout             = "RunTimeout"
	ResultTooLarge         = "ResultTooLarge"
	StoppedUnasked         = "StoppedUnasked"
	RunLost                = "RunLost"
	HandlerStuck           = "HandlerStuck"
	RunTakenBack           = "RunTakenBack"
	HeartbeatTimeout       = "HeartbeatTimeout"
	StartToCloseTimeout    = "StartToCloseTimeout"
	ScheduleToStartTimeout = "ScheduleToStartTimeout"
	// Object stores.
	AccessDenied     = "AccessDenied"
	BucketMissing    = "BucketMissing"
	Conflict         = "Conflict"
	InvalidName      = "InvalidName"
	ObjectChanged    = "ObjectChanged"
	ObjectMissing    = "ObjectMissing"
	ObjectTooLarge   = "ObjectTooLarge"
	StoreError       = "StoreError"
	StoreUnreachable = "StoreUnreachable"
	// Images.
	ImageProcessDied = "ImageProcessDied"
	ImageTooLarge    = "ImageTooLarge"
	InvalidImage     = "InvalidImage"
	NotAnUpload      = "NotAnUpload"
	// Files.
	ExportRefused = "ExportRefused"
	InvalidFile   = "InvalidFile"
	// HOBOlink.
	HobolinkToken       = "HobolinkToken"
	HobolinkRequest     = "HobolinkRequest"
	HobolinkTooDense    = "HobolinkTooDense"
	HobolinkRateLimit   = "HobolinkRateLimit"
	HobolinkBusy        = "HobolinkBusy"
	HobolinkUnreachable = "HobolinkUnreachable"
	HobolinkAnswer      = "HobolinkAnswer"
	// Campbell LDMP.
	LdmpUnreachable  = "LdmpUnreachable"
	LdmpDisconnected = "LdmpDisconnected"
	LdmpEndless      = "LdmpEndless"
	LdmpBadRecords   = "LdmpBadRecords"
	// Pipeline.
	PipelineUnreachable = "PipelineUnreachable"
	NATSTooOld          = "NATSTooOld"
	MessageTooLarge     = "MessageTooLarge"
	StaleBookmark       = "StaleBookmark"
	BadBookmark         = "BadBookmark"
	BadRecord           = "BadRecord"
	UnknownTable        = "UnknownTable"
	BadObservation      = "BadObservation"
	FutureTimestamp     = "FutureTimestamp"
	ForeignLogger       = "ForeignLogger"
	BadMessage          = "BadMessage"
	BadValue            = "BadValue"
	BadPoint            = "BadPoint"
	RefusedPoint        = "RefusedPoint"
	RefusedName         = "RefusedName"
	DatabaseNotAllowed  = "DatabaseNotAllowed"
	Skipped             = "Skipped"
	// InfluxDB.
	InfluxUnreachable = "InfluxUnreachable"
	InfluxConfig      = "InfluxConfig"
	InfluxLimits      = "InfluxLimits"
	TwoLoaders        = "TwoLoaders"
	AckNotNoted       = "AckNotNoted"
	// Archive.
	ArchiveDamaged    = "ArchiveDamaged"
	ArchiveConflict   = "ArchiveConflict"
	ArchiveIncomplete = "ArchiveIncomplete"
	StreamWentBack    = "StreamWentBack"
	NotArchived       = "NotArchived"
	// Platform.
	NoPlatform          = "NoPlatform"
	PlatformUnreachable = "PlatformUnreachable"
	PlatformRefused     = "PlatformRefused"
	PlatformAnswer      = "PlatformAnswer"
	BadChange           = "BadChange"
	QueueUnreachable    = "QueueUnreachable"
	QueueRefused        = "QueueRefused"
	NotApplied          = "NotApplied"
	NoConfigs           = "NoConfigs"
	TeardownBlocked     = "TeardownBlocked"
	PurgeNotDue         = "PurgeNotDue"
	// Release 2.
	Release2Token       = "Release2Token"
	Release2Refused     = "Release2Refused"
	Release2Unreachable = "Release2Unreachable"
	Release2Contended   = "Release2Contended"
	ReverseSyncFailed   = "ReverseSyncFailed"
	ReverseSyncSettings = "ReverseSyncSettings"
)

func groups() []group {
	return []group{
		{"The job system", []Class{
			{Unclassified, Transient,
				"The handler returned an error without a class.",
				"Read the message; the handler's code says more."},
			{InvalidSpec, Misconfigured,
				"The spec does not fit its job type, or a setting of the worker does not.",
				"Correct what the message names, in the jobs file or the worker's environment, and apply or restart it."},
			{Secret, Misconfigured,
				"A secret is not set on this worker, or is not usable.",
				"Set the variable or the file that the message names, and restart the worker."},
			{SecretRefused, Misconfigured,
				"A secret may not go to this server, or is not for jobs of this owner.",
				"Look where the job sends it. If that is right, write what the message says before the secret."},
			{Panic, Permanent,
				"The handler panicked: a bug, which this input shows.",
				"Read the stack in the worker's log, and mend the handler."},
			{NoService, Permanent,
				"The service of a bound job is gone, and its failover is to fail.",
				"Start the service again, or choose another failover; then retry the run."},
			{RunTimeout, Transient,
				"The handler took longer than run_timeout.",
				"Look where it is slow, or raise run_timeout."},
			{ResultTooLarge, Permanent,
				"The result of the handler is larger than a history may hold.",
				"Have the handler write data elsewhere, and return its keys."},
			{StoppedUnasked, Transient,
				"The handler returned job.ErrStopped without having been asked to stop.",
				"Mend the handler."},
			{RunLost, Transient,
				"The worker could not reach Temporal for the heartbeat timeout, and the run may have gone to another worker.",
				"Nothing: the run goes on elsewhere. If it comes often, look at the network and at the load of the worker."},
			{HandlerStuck, Permanent,
				"The handler did not return although its context had ended. It still holds a slot.",
				"Restart the worker, and have the handler heed its context; then retry the run."},
			{RunTakenBack, Transient,
				"Someone paused or reset the run's activity in Temporal.",
				"Nothing: it goes on when it is unpaused."},
			{HeartbeatTimeout, Transient,
				"The worker fell silent: it died, or lost its network.",
				"Nothing: another worker takes the run. If it comes often, look at the worker's log and memory."},
			{StartToCloseTimeout, Transient,
				"An attempt lasted longer than run_timeout and what its end may take.",
				"Look at the worker: it should have ended the run itself."},
			{ScheduleToStartTimeout, Transient,
				"The service of a bound run did not take it in time.",
				"Nothing: another one is looked for. Look whether the service's slots are full."},
		}},
		{"Object stores", []Class{
			{AccessDenied, Permanent,
				"The store refuses the credentials, or their rights do not cover the object.",
				"Check the credentials and the policy of the bucket; then retry the run."},
			{BucketMissing, Permanent,
				"The bucket does not exist.",
				"Create the bucket, or correct its name; then retry the run."},
			{Conflict, Permanent,
				"The key is taken by other content, which was not overwritten.",
				"Compare the two, and remove the wrong one."},
			{InvalidName, Permanent,
				"The store does not accept the name of a bucket or a key.",
				"Correct the name in the spec, or rename the object."},
			{ObjectChanged, Permanent,
				"The object was written anew: its ETag is not that of the spec, or not that with which the run began.",
				"Start the run anew with the present ETag."},
			{ObjectMissing, Transient,
				"The object does not exist, or not yet: an upload may be under way.",
				"If it stays away, upload it again, or drop the run."},
			{ObjectTooLarge, Permanent,
				"The object is larger than the reader takes.",
				"Upload a smaller one."},
			{StoreError, Transient,
				"The store gave another error, such as SlowDown.",
				"Look at the store's log if it lasts."},
			{StoreUnreachable, Unavailable,
				"The store does not answer, or the connection broke.",
				"Start the store, or check its address and the network."},
		}},
		{"Images", []Class{
			{ImageProcessDied, Permanent,
				"The process that made the pictures ended in the middle of this image.",
				"Upload the image in another form. If good images fail alike, look at the memory of the host."},
			{ImageTooLarge, Permanent,
				"The image is beyond the limits of file size, pixels, memory or time.",
				"Upload a smaller image."},
			{InvalidImage, Permanent,
				"The file is empty, of no accepted format, damaged or cut short.",
				"Upload the image again, as JPEG, PNG, GIF, WebP, HEIC or AVIF."},
			{NotAnUpload, Permanent,
				"The object that a record names is no upload of its organization.",
				"Correct the record, or upload the file anew. What is in the wrong place stays there."},
		}},
		{"Files", []Class{
			{ExportRefused, Permanent,
				"The export asks for what is not the organization's, is not there, or is more than is allowed.",
				"Correct what the message names in the spec, or ask for less."},
			{InvalidFile, Permanent,
				"The file is of no known format or does not fit its mapping, or too many of its lines are refused.",
				"Look at the file with dry_run, and correct the spec or the file."},
		}},
		{"HOBOlink", []Class{
			{HobolinkToken, Misconfigured,
				"HOBOlink refuses the token (401, 403).",
				"Put a valid token into the secret, and restart the worker."},
			{HobolinkRequest, Permanent,
				"HOBOlink refuses a request (400, other 4xx). Other loggers are still read.",
				"Check the serial numbers of the loggers, and that the token may see them."},
			{HobolinkTooDense, Permanent,
				"A second or an hour of a logger holds more than answers may. Other loggers are still read.",
				"Have the logger measure less often."},
			{HobolinkRateLimit, Unavailable,
				"HOBOlink wants fewer requests (429). The next one comes after Retry-After.",
				"Raise the interval of jobs that share the token."},
			{HobolinkBusy, Unavailable,
				"HOBOlink is busy or in trouble (408, 509, other 5xx).",
				"Wait. Ask the vendor if it lasts."},
			{HobolinkUnreachable, Unavailable,
				"HOBOlink does not answer.",
				"Check the network from the worker."},
			{HobolinkAnswer, Transient,
				"The answer is none of the HOBOlink API, as of a proxy.",
				"Check the URL and what is between it and the worker."},
		}},
		{"Campbell LDMP", []Class{
			{LdmpUnreachable, Unavailable,
				"The LoggerNet server takes no connections.",
				"Start LoggerNet with LDMP, or check the address and the firewall."},
			{LdmpDisconnected, Unavailable,
				"Several connections in a row ended, or the server stopped within a record.",
				"Look at LoggerNet and at the network. What was not acknowledged comes again."},
			{LdmpEndless, Transient,
				"The server sends without ever ending a record.",
				"Check that the address is that of an LDMP server."},
			{LdmpBadRecords, Transient,
				"The server sends frames that are no records, or records that were not asked for.",
				"Look at the frames in quarantine. Raise max_refused if such records are to be passed over."},
		}},
		{"Pipeline", []Class{
			{PipelineUnreachable, Unavailable,
				"NATS cannot be reached, or does not answer or acknowledge.",
				"Start NATS, or check its address, its disk and the network."},
			{NATSTooOld, Unavailable,
				"The NATS server lacks calls that the pipeline needs. It is asked again every minute.",
				"Update it to version 2.14 or later."},
			{MessageTooLarge, Permanent,
				"A message is larger than the NATS server takes.",
				"Raise max_payload of the server; what is in quarantine can then be looked at there."},
			{StaleBookmark, Transient,
				"Another attempt moved the bookmark. A retry reads it anew.",
				"If it comes often, look for two jobs that extract the same."},
			{BadBookmark, Permanent,
				"A bookmark cannot be read, or would move back.",
				"Look at it with starter bookmarks list, and set it with starter bookmarks set."},
			{BadRecord, Permanent,
				"A frame of the LDMP server, or a line of a file, is no record. It is in quarantine.",
				"Look at the item, and at the table in LoggerNet or the file."},
			{UnknownTable, Permanent,
				"The LDMP server sent a record of a table that was not asked for. It is in quarantine.",
				"Check the stations and tables of the spec."},
			{BadObservation, Permanent,
				"An item of HOBOlink is no observation. It is in quarantine.",
				"Look at the item; ask the vendor if there are many."},
			{FutureTimestamp, Permanent,
				"An observation is from the future. It is in quarantine.",
				"Set the clock of the logger. Replay the item if it is right by then."},
			{ForeignLogger, Permanent,
				"HOBOlink sent an observation of a logger that was not asked for. It is in quarantine.",
				"Check the loggers of the spec."},
			{BadMessage, Permanent,
				"A message of the pipeline is not what its stage takes. It is in quarantine.",
				"Look at who published it. Replay it after an update that reads it."},
			{BadValue, Permanent,
				"A record has values that cannot be stored. The others of the record are.",
				"Look at the item, and at the program of the logger."},
			{BadPoint, Permanent,
				"A point cannot be written as line protocol. It is in quarantine.",
				"Look at its names and values."},
			{RefusedPoint, Permanent,
				"InfluxDB refuses a point, mostly since a field has another type there. It is in quarantine.",
				"Set drop_fields, number_fields or on_conflict; then replay it."},
			{RefusedName, Permanent,
				"InfluxDB refuses the database or the retention policy that a message names. It is in quarantine.",
				"Create the retention policy, or correct the name; then replay it."},
			{DatabaseNotAllowed, Permanent,
				"A message names a database that does not exist, and the load job may not create it. It is in quarantine.",
				"Add the name to create_databases of the load job if it is right, then replay it; or look at who published it."},
			{Skipped, Permanent,
				"An operator skipped the message. It is in quarantine.",
				"Replay it once the mirror takes it, or drop it."},
		}},
		{"InfluxDB", []Class{
			{InfluxUnreachable, Unavailable,
				"InfluxDB does not answer, or is too busy. Messages wait.",
				"Start InfluxDB, or check its URL and load. Nothing has to be restarted here."},
			{InfluxConfig, Unavailable,
				"InfluxDB refuses the credentials or says what no one knows, or a secret is missing. Messages wait.",
				"Correct the user, its rights, the password or the URL of the mirror."},
			{InfluxLimits, Unavailable,
				"InfluxDB is at a limit of its configuration: series, values of a tag, or its cache. Messages wait.",
				"Raise the limit in InfluxDB, or remove series."},
			{TwoLoaders, Unavailable,
				"Another job loads the same mirror of the location.",
				"Keep one of the two jobs. After a crash it passes by itself."},
			{AckNotNoted, Unavailable,
				"NATS answers acknowledgements and does not keep them.",
				"Look at the disk and at the log of NATS."},
		}},
		{"Archive", []Class{
			{ArchiveDamaged, Permanent,
				"An object or a record of the archive is not what was written.",
				"Restore it from a copy; starter archive audit --deep finds all."},
			{ArchiveConflict, Transient,
				"An object or the stream was changed. The new content is kept under conflicts.",
				"Compare it with the content under conflicts, and keep the right one."},
			{ArchiveIncomplete, Transient,
				"A run died within a batch, and the stream dropped its messages.",
				"Nothing; the audit shows it for good."},
			{StreamWentBack, Unavailable,
				"The stream lost its tail and gives numbers twice. Archiving waits, and nothing is lost.",
				"Raise the job's generation."},
			{NotArchived, Permanent,
				"The archive has nothing of the organization or source that shall be replayed.",
				"Correct the spec; the message names what there is."},
		}},
		{"Platform", []Class{
			{NoPlatform, Unavailable,
				"This worker is not told where the Platform API is.",
				"Set the variables that the message names, and restart the worker."},
			{PlatformUnreachable, Unavailable,
				"The Platform API does not answer, or is in trouble.",
				"Start it, or check its URL and the network."},
			{PlatformRefused, Unavailable,
				"The Platform API refuses the token.",
				"Give the worker a valid token, and restart it."},
			{PlatformAnswer, Transient,
				"The Platform API answers with another error.",
				"Read the message: it is the platform's."},
			{BadChange, Permanent,
				"A change of the platform leads to a job that cannot be, or cannot be written. It is in quarantine.",
				"Look at the item, and correct the resource in the platform."},
			{QueueUnreachable, Unavailable,
				"A queue could not be asked to take a job: Temporal or its workers do not answer.",
				"Start Temporal and the backend workers."},
			{QueueRefused, Transient,
				"A queue refuses a job, since it is drained or full.",
				"Resume the queue, or have it worked off. The next snapshot looks again."},
			{NotApplied, Transient,
				"Jobs of a config could not be applied. It is tried again.",
				"Read the message; the conditions of the config say the same."},
			{NoConfigs, Transient,
				"The platform lists no config or registers no job, though there are jobs of integrations. Nothing is changed.",
				"Look at the platform. If the jobs are to go, run starter reconcile --allow-empty."},
			{TeardownBlocked, Transient,
				"A stage of a teardown waits for someone.",
				"Do what the message says; the next attempt goes on."},
			{PurgeNotDue, Transient,
				"The purge of an organization begins later, by the clock of the platform.",
				"Nothing: it is tried again."},
		}},
		{"Release 2", []Class{
			{Release2Token, Misconfigured,
				"Release 2 refuses the token.",
				"Give the worker a valid token, and restart it."},
			{Release2Refused, Permanent,
				"Release 2 does not accept what was sent (400, other 4xx).",
				"Read the message, and correct the entity in Release 3 or the document in Release 2."},
			{Release2Unreachable, Unavailable,
				"Release 2 does not answer, is in trouble, or something else is at its URL.",
				"Start it, or check its URL and the network."},
			{Release2Contended, Unavailable,
				"A document was changed by others each time it was compared.",
				"Nothing: it is tried again. Look for a program that writes it all the time."},
			{ReverseSyncFailed, Transient,
				"Some entities of a full sync failed. The message tells the first ten.",
				"Mend what they name; the next sync looks at all again."},
			{ReverseSyncSettings, Misconfigured,
				"The worker is not told where Release 2 or the Platform API is.",
				"Set the variables that the message names, and restart the worker."},
		}},
	}
}
