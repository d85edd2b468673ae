package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/servers"
)

// Reasons of errors of the Job API that commands act on.
const (
	reasonNotFound    = jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND
	reasonUnsupported = jobsv1.ErrorReason_ERROR_REASON_UNSUPPORTED
	reasonNoWorker    = jobsv1.ErrorReason_ERROR_REASON_NO_WORKER
	reasonBackendDown = jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE
	reasonNotRetried  = jobsv1.ErrorReason_ERROR_REASON_NOT_RETRIED
)

// hasReason reports whether the Job API gave an error for a reason.
func hasReason(err error, reason jobsv1.ErrorReason) bool {
	found, _ := api.InfoOf(err)
	return found == reason
}

// hints turn texts of the Job API into what helps on the command line.
var hints = []struct {
	reason jobsv1.ErrorReason
	text   *regexp.Regexp
	hint   string
}{
	{reasonNotFound, regexp.MustCompile(`^job (\S+): not found$`), "there is no job $1; starter jobs list shows those there are"},
	{reasonNotFound, regexp.MustCompile(`^schedule of job (\S+): not found$`), "job $1 is not there yet: apply it first"},
	{reasonNotFound, regexp.MustCompile(`^(there is no queue \S+)$`), "$1; the first job that is enqueued creates it"},
	{reasonNotFound, regexp.MustCompile(`^(job \S+ is not in queue (\S+))$`), "$1; starter queues peek $2 lists the waiting items"},
	{reasonNotFound, regexp.MustCompile(`^(item .*: it is not in quarantine)$`), "$1; starter quarantine list shows the items"},
	{reasonNotFound, regexp.MustCompile(`^(integration config \S+): not found$`), "there is no $1; starter integrations list lists those there are"},
	{reasonNotFound, regexp.MustCompile(`^(organization \S+): not found$`), "there is no $1"},
	{reasonNotRetried, regexp.MustCompile(`^(.*): it is not tried again$`), "$1"},
}

// hinted is the text of an error of the Job API for people.
func hinted(err error) string {
	text := apiText(err)
	for _, h := range hints {
		if hasReason(err, h.reason) && h.text.MatchString(text) {
			return h.text.ReplaceAllString(text, h.hint)
		}
	}
	return text
}

// apiText is the text of an error for people. An error of the Job API has no code in it.
func apiText(err error) string {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err.Error()
	}
	return strings.Replace(err.Error(), failed.Error(), failed.Message(), 1)
}

// ofServer is the text of an error that --server, or what stands before it, gave in place
// of an answer of the Job API; "" if err is another error.
func (i *invocation) ofServer(err error) string {
	failed, ok := errors.AsType[*connect.Error](err)
	if reason, _ := api.InfoOf(err); !ok || i.serverURL() == "" || reason != jobsv1.ErrorReason_ERROR_REASON_UNSPECIFIED {
		return ""
	}
	server := i.shownServer()
	if text := tlsText(err); text != "" {
		return fmt.Sprintf("the server %s cannot be reached with TLS: %s", server, text)
	}
	if elsewhere, ok := errors.AsType[*servers.RedirectError](err); ok {
		return fmt.Sprintf("the server %s is not the one: %s", server, elsewhere)
	}
	if _, network := errors.AsType[net.Error](err); network {
		return fmt.Sprintf("the server %s cannot be reached (%s)", server, innermost(err))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("the server %s broke off its answer", server)
	}
	switch failed.Code() {
	case connect.CodeUnauthenticated:
		return fmt.Sprintf("the server %s does not know you: give a token with --token-file or $%s, or a certificate with --client-cert", server, EnvToken)
	case connect.CodePermissionDenied:
		return fmt.Sprintf("the server %s does not allow this to you", server)
	case connect.CodeUnavailable:
		return fmt.Sprintf("the server %s is not available now: try again later (%s)", server, failed.Message())
	}
	return fmt.Sprintf("what answers at %s is not a Job API (%s)", server, failed.Message())
}

// shownServer is the URL of --server without a password.
func (i *invocation) shownServer() string {
	if u, err := url.Parse(i.serverURL()); err == nil {
		return u.Redacted()
	}
	return i.serverURL()
}

// tlsText says why TLS failed, "" if it did not.
func tlsText(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is of an authority that is not known here; name it with --server-ca"
	}
	if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return wrong.Err.Error()
	}
	_, noRecord := errors.AsType[tls.RecordHeaderError](err)
	if noRecord || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return "it does not speak TLS; is its URL http://?"
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "it refuses the connection: does it want a certificate, --client-cert? (" + innermost(err) + ")"
	}
	return ""
}

// innermost is the text of the error that others wrap.
func innermost(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}
