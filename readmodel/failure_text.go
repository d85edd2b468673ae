package readmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

// maxAlike bounds the text that runs which failed alike have in common, in bytes. Texts of
// errors are cut further on, so that what was cut off does not matter.
const maxAlike = 160

// differing is what of an error's text differs from run to run: an address, what is in quotation
// marks, and each word with a digit, such as a number, a time, an id or HOST:PORT.
var differing = regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s"'<>]*[^\s"'<>.,:;)\]]|"[^"]*"|[\pL\pN_.:/@#%+\-]*\pN[\pL\pN_.:/@#%+\-]*`)

// gaps are what stands for several things that differ, beside each other.
var gaps = regexp.MustCompile(`…[…\s]*…`)

// alike is the text of an error without what differs from run to run, and from job to job.
func alike(text, jobID string) string {
	const gap = "…"
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, gap)), " ")
	_, key, _ := strings.Cut(jobID, ".")
	for _, name := range []string{jobID, key} {
		text = withoutWord(text, name, gap)
	}
	text = differing.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, `"`) {
			return gap
		}
		return gap + found[len(strings.TrimRight(found, ".:/")):] // What ends a sentence stays.
	})
	return job.Cut(strings.TrimSpace(gaps.ReplaceAllString(text, gap)), maxAlike)
}

// withoutWord puts something in place of a name where it is not a part of a longer one.
func withoutWord(text, name, instead string) string {
	var b strings.Builder
	for {
		before, after, found := cutWord(text, name)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(instead)
		text = after
	}
}

// cutWord cuts a text around the first place where a name is not a part of a longer one.
func cutWord(text, name string) (before, after string, found bool) {
	for from := 0; name != ""; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			break
		}
		at += from
		end := at + len(name)
		if (at == 0 || !goesOn(text[:at], -1)) && !goesOn(text[end:], 1) {
			return text[:at], text[end:], true
		}
		from = at + 1
	}
	return text, "", false
}

// goesOn reports whether a name goes on where a text begins, or ends if by is negative. A period
// or a colon at the end of a word is none of it.
func goesOn(text string, by int) bool {
	at := func(n int) byte {
		if by < 0 {
			n = len(text) - 1 - n
		}
		if n < 0 || n >= len(text) {
			return ' '
		}
		return text[n]
	}
	letter := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c >= 0x80
	}
	return letter(at(0)) || at(0) == '.' && letter(at(1))
}

// named reports whether a text names something: not as a part of a longer name.
func named(text, name string) bool {
	_, _, found := cutWord(text, name)
	return found
}

// failureKind is how runs of a job type fail: those of one kind are a group.
type failureKind struct{ jobType, class, text string }

// kindOf is the kind of a failure of a job.
func kindOf(jobID, jobType, class, text string) failureKind {
	return failureKind{jobType, class, alike(text, jobID)}
}

// name names the group: it is the same in every process.
func (k failureKind) name() string {
	hash := sha256.Sum256([]byte(k.jobType + "\x00" + k.class + "\x00" + k.text))
	return hex.EncodeToString(hash[:])[:12]
}

// errorOf is the error of a run that failed. One that was cut off has none: it says how it ended.
func errorOf(run client.Run) string {
	if run.Error != "" {
		return run.Error
	}
	return "the run " + strings.ReplaceAll(string(run.Status), "_", " ")
}

// FailureOf names the failure group of a run, "" if it did not fail by itself.
func FailureOf(run client.Run) string {
	if run.Status != client.RunFailed && run.Status != client.RunTimedOut {
		return ""
	}
	return kindOf(run.JobID, run.Type, run.Class, errorOf(run)).name()
}
