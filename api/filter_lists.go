package api

import (
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// fieldFailure is the field of runs that names their failure group.
const fieldFailure = "failure"

// jobStatuses are the words of a job's status.
func jobStatuses() []client.JobStatus {
	return []client.JobStatus{
		client.JobScheduled, client.JobRunning, client.JobFailing, client.JobPaused, client.JobWaiting,
		client.JobCanceling, client.JobCompleted, client.JobFailed, client.JobStopped, client.JobTerminated, client.JobDeleted,
	}
}

// jobFields are the fields of the filter of ListJobs.
func jobFields() map[string]fieldRule {
	return map[string]fieldRule{
		"id": anyText, "type": anyText, "mode": oneOfWords(words(job.Modes())...), "status": oneOfWords(words(jobStatuses())...),
		"provider": anyText, "owner": anyText, "queue": anyText, "error_class": anyText, "last_start_time": timeBound, fieldTags: tagValue,
	}
}

// runFields are those of ListRuns.
func runFields() map[string]fieldRule {
	return map[string]fieldRule{
		"job_id": anyText, "type": anyText, "mode": oneOfWords(words(job.Modes())...), "status": oneOfWords(words(client.RunStatuses())...),
		"owner": anyText, "queue": anyText, "start_time": timeBound, fieldTags: tagValue,
		"error_class": anyText, fieldFailure: exactText,
	}
}

// upcomingFields are those of ListUpcomingStarts.
func upcomingFields() map[string]fieldRule {
	return map[string]fieldRule{"type": exactText, "owner": exactText}
}

// missedFields are those of ListMissedStarts.
func missedFields() map[string]fieldRule {
	return map[string]fieldRule{"id": exactText, "type": exactText, "owner": exactText, fieldTags: tagValue}
}

// tagsOf are the tags that terms ask for, as package client takes them: "" for any value.
// False means that nothing can have them: one is asked for with two values.
func tagsOf(terms []term) (map[string]string, bool) {
	var tags map[string]string
	for _, t := range terms {
		if t.field != fieldTags {
			continue
		}
		if before, named := tags[t.tag]; named && before != "" && t.value != "" && before != t.value {
			return nil, false
		}
		if tags == nil {
			tags = map[string]string{}
		}
		if t.value != "" || tags[t.tag] == "" {
			tags[t.tag] = t.value
		}
	}
	return tags, true
}

// firstExact are the values that fields have to have. Where there are several of a field,
// the other terms decide.
func firstExact(terms []term) map[string]string {
	exact := map[string]string{}
	for _, t := range terms {
		if value, ok := t.exact(); ok && t.field != fieldTags {
			if _, named := exact[t.field]; !named {
				exact[t.field] = value
			}
		}
	}
	return exact
}

// holdAll reports whether all terms but those of tags hold.
func holdAll(terms []term, value func(field string) string) bool {
	for _, t := range terms {
		if t.field != fieldTags && !t.isTime() && !t.holds(value(t.field)) {
			return false
		}
	}
	return true
}

// jobFilter is what package client can narrow a list of jobs by; false if nothing matches.
func jobFilter(terms []term) (client.JobFilter, bool) {
	tags, possible := tagsOf(terms)
	exact := firstExact(terms)
	return client.JobFilter{
		Type: exact["type"], Mode: modeOf(exact["mode"]), Status: client.JobStatus(exact["status"]),
		Owner: exact["owner"], Queue: exact["queue"], Tags: tags,
	}, possible
}

// modeOf is the mode that a word stands for.
func modeOf(name string) job.Mode {
	for _, mode := range job.Modes() {
		if word(string(mode)) == name {
			return mode
		}
	}
	return ""
}

// matchesJob reports whether a job of a list matches.
func matchesJob(terms []term, row client.JobRow) bool {
	return within(terms, row.LastStart) && holdAll(terms, func(field string) string {
		switch field {
		case "id":
			return row.ID
		case "type":
			return row.Type
		case "mode":
			return word(string(row.Mode))
		case "status":
			return word(string(row.Status))
		case "provider":
			return string(row.Provider)
		case "owner":
			return row.Owner
		case "error_class":
			return errorClassOf(row)
		default:
			return row.Queue
		}
	})
}

// errorClassOf is the class of the error that a job has failed with, or fails with.
func errorClassOf(row client.JobRow) string {
	if row.Failing != nil {
		return row.Failing.Class
	}
	return row.Class
}

// runFilter is what package client can narrow a list of runs by; false if nothing matches.
func runFilter(terms []term) (client.RunFilter, bool) {
	tags, possible := tagsOf(terms)
	exact := firstExact(terms)
	filter := client.RunFilter{
		JobID: exact["job_id"], Type: exact["type"], Mode: modeOf(exact["mode"]), Status: client.RunStatus(exact["status"]),
		Owner: exact["owner"], Queue: exact["queue"], Tags: tags,
	}
	filter.Statuses = statusesOf(terms)
	if filter.Statuses == nil && exact[fieldFailure] != "" {
		filter.Statuses = []client.RunStatus{client.RunFailed, client.RunTimedOut} // No others are looked through.
	}
	filter.Since, filter.Until = boundsOf(terms)
	return filter, possible
}

// boundsOf are the times that terms bound a field by, zero where there is no bound.
func boundsOf(terms []term) (from, before time.Time) {
	for _, t := range terms {
		switch t.op {
		case opFrom:
			from, _ = time.Parse(time.RFC3339, t.value) // It was checked.
		case opBefore:
			before, _ = time.Parse(time.RFC3339, t.value)
		}
	}
	return from, before
}

// within reports whether a time is within the bounds of terms. One that is not known is not, if
// there are any.
func within(terms []term, at time.Time) bool {
	from, before := boundsOf(terms)
	if from.IsZero() && before.IsZero() {
		return true
	}
	return !at.IsZero() && !at.Before(from) && (before.IsZero() || at.Before(before))
}

// statusesOf are the statuses that terms leave, nil if they name none.
func statusesOf(terms []term) []client.RunStatus {
	named := false
	var left []client.RunStatus
	for _, status := range client.RunStatuses() {
		fits := true
		for _, t := range terms {
			if t.field == "status" {
				named = true
				fits = fits && t.holds(word(string(status)))
			}
		}
		if fits {
			left = append(left, status)
		}
	}
	if !named {
		return nil
	}
	return left
}

// lookedThrough reports whether runs have to be looked at one by one, since package client does
// not know all terms.
func lookedThrough(terms []term) bool {
	seen := map[string]bool{}
	for _, t := range terms {
		value, exact := t.exact()
		if t.field == "error_class" || t.field == fieldFailure {
			return true
		}
		if t.field != fieldTags && !t.isTime() && (!exact || value == "" || seen[t.field]) {
			return true
		}
		seen[t.field] = true
	}
	return false
}

// matchesRun reports whether a run of a list matches.
func matchesRun(terms []term, run client.Run) bool {
	return holdAll(terms, func(field string) string {
		switch field {
		case "job_id":
			return run.JobID
		case "type":
			return run.Type
		case "mode":
			return word(string(run.Mode))
		case "status":
			return word(string(run.Status))
		case "owner":
			return run.Owner
		case "error_class":
			return run.Class
		case fieldFailure:
			return readmodel.FailureOf(run)
		default:
			return run.Queue
		}
	})
}
