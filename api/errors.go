package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// Domain is the domain of the reasons of errors.
const Domain = "jobs.dendra.science"

const reasonPrefix = "ERROR_REASON_"

// Short names of the reasons.
const (
	invalidRequest   = jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST
	invalidFilter    = jobsv1.ErrorReason_ERROR_REASON_INVALID_FILTER
	invalidPageToken = jobsv1.ErrorReason_ERROR_REASON_INVALID_PAGE_TOKEN
	notFound         = jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND
	alreadyExists    = jobsv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS
	etagMismatch     = jobsv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH
	notOwned         = jobsv1.ErrorReason_ERROR_REASON_NOT_OWNED
	unsupported      = jobsv1.ErrorReason_ERROR_REASON_UNSUPPORTED
	massDelete       = jobsv1.ErrorReason_ERROR_REASON_MASS_DELETE
	noWorker         = jobsv1.ErrorReason_ERROR_REASON_NO_WORKER
	backendDown      = jobsv1.ErrorReason_ERROR_REASON_BACKEND_UNAVAILABLE
	canceled         = jobsv1.ErrorReason_ERROR_REASON_CANCELED
	tooLarge         = jobsv1.ErrorReason_ERROR_REASON_TOO_LARGE
	tooManyCalls     = jobsv1.ErrorReason_ERROR_REASON_TOO_MANY_CALLS
	unknownProcedure = jobsv1.ErrorReason_ERROR_REASON_UNKNOWN_METHOD
	notRetried       = jobsv1.ErrorReason_ERROR_REASON_NOT_RETRIED
	quotaExceeded    = jobsv1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED
	internalReason   = jobsv1.ErrorReason_ERROR_REASON_INTERNAL
)

// NewError makes an error as those of the API are: with a code and a reason. Its text is
// for the caller.
func NewError(code connect.Code, reason jobsv1.ErrorReason, format string, args ...any) *connect.Error {
	return newError(code, reason, format, args...)
}

// newError makes an error with a reason. Its text is for the caller.
func newError(code connect.Code, reason jobsv1.ErrorReason, format string, args ...any) *connect.Error {
	return withInfo(connect.NewError(code, fmt.Sprintf(format, args...)), reason, nil)
}

// withInfo adds the reason to an error.
func withInfo(err *connect.Error, reason jobsv1.ErrorReason, metadata map[string]string) *connect.Error {
	return withDetail(err, &errdetails.ErrorInfo{
		Reason: strings.TrimPrefix(reason.String(), reasonPrefix), Domain: Domain, Metadata: metadata,
	})
}

func withDetail(err *connect.Error, message proto.Message) *connect.Error {
	detail, encoded := connectproto.NewErrorDetail(message)
	if encoded != nil {
		return err.WithCause(encoded)
	}
	return err.WithDetail(detail)
}

// violation is what is wrong with a field of a request.
type violation struct{ field, text string }

// badRequest is the error of a request whose fields are not valid.
func badRequest(violations ...violation) *connect.Error {
	return badRequestFor(invalidRequest, violations...)
}

// badRequestFor is badRequest with a reason of its own. Of many violations it has the first
// maxViolations: there may be more than were found.
func badRequestFor(reason jobsv1.ErrorReason, violations ...violation) *connect.Error {
	found, least := len(violations), ""
	if found > maxViolations {
		violations, least = violations[:maxViolations], "at least "
	}
	texts := make([]string, len(violations))
	details := &errdetails.BadRequest{}
	for i, v := range violations {
		texts[i] = v.text
		if v.field != "" {
			texts[i] = v.field + ": " + v.text
		}
		details.FieldViolations = append(details.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: v.field, Description: v.text})
	}
	const shown = 10
	if more := found - shown; more > 0 {
		texts = append(texts[:shown], fmt.Sprintf("and %s%d more", least, more))
	}
	return withDetail(newError(connect.CodeInvalidArgument, reason, "%s", strings.Join(texts, "; ")), details)
}

// internalError tells nothing: the log does.
func internalError() *connect.Error {
	return newError(connect.CodeInternal, internalReason, "the server failed; its log says why")
}

// errClass is what a kind of error becomes.
type errClass struct {
	is     func(error) bool
	code   connect.Code
	reason jobsv1.ErrorReason
}

// matching reports whether an error wraps another.
func matching(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// ofType reports whether an error wraps one of a type.
func ofType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// errClasses are looked through in their order. The text of such an error is for people,
// and goes to the caller.
var errClasses = []errClass{
	{matching(context.Canceled), connect.CodeCanceled, canceled},
	{ofType[*client.UnsupportedError], connect.CodeFailedPrecondition, unsupported},
	{ofType[*client.QueueEndedError], connect.CodeFailedPrecondition, unsupported},
	{ofType[*client.StateError], connect.CodeFailedPrecondition, unsupported},
	{matching(client.ErrNoServices), connect.CodeFailedPrecondition, unsupported},
	{matching(client.ErrFailoverAfter), connect.CodeFailedPrecondition, unsupported},
	{matching(client.ErrNotRetried), connect.CodeFailedPrecondition, notRetried},
	{matching(client.ErrTooLate), connect.CodeFailedPrecondition, unsupported},
	{matching(client.ErrNotOurs), connect.CodeFailedPrecondition, notOwned},
	{matching(client.ErrMoved), connect.CodeAborted, etagMismatch},
	{matching(schedules.ErrUnderWay), connect.CodeFailedPrecondition, unsupported},
	{matching(schedules.ErrMassPrune), connect.CodeFailedPrecondition, massDelete},
	{matching(client.ErrNoWorker), connect.CodeUnavailable, noWorker},
	{matching(client.ErrOutcomeUnknown), connect.CodeDeadlineExceeded, canceled},
	{matching(client.ErrSlow), connect.CodeUnavailable, backendDown},
	{matching(client.ErrNotFound), connect.CodeNotFound, notFound},
	{matching(pipeline.ErrNoItem), connect.CodeNotFound, notFound},
	{matching(client.ErrPlace), connect.CodeInvalidArgument, invalidPageToken},
	{ofType[*serviceerror.NotFound], connect.CodeNotFound, notFound},
	{ofType[*serviceerror.FailedPrecondition], connect.CodeFailedPrecondition, unsupported}, // a payload whose key is missing
	{ofType[*temporal.ApplicationError], connect.CodeFailedPrecondition, unsupported},       // a workflow refuses a message
	{matching(schedules.ErrRefused), connect.CodeUnavailable, backendDown},
	{isPipelineDown, connect.CodeUnavailable, backendDown},
	{matching(context.DeadlineExceeded), connect.CodeDeadlineExceeded, canceled},
}

// isPipelineDown reports whether NATS cannot be reached, or refuses a call.
func isPipelineDown(err error) bool { return ofType[*job.Failure](err) }

// serverErrors are errors of Temporal whose text is its own.
var serverErrors = []errClass{
	{ofType[*serviceerror.InvalidArgument], connect.CodeInvalidArgument, invalidRequest},
	{ofType[*serviceerror.Unavailable], connect.CodeUnavailable, backendDown},
	{ofType[*serviceerror.ResourceExhausted], connect.CodeUnavailable, backendDown},
	{ofType[*serviceerror.DeadlineExceeded], connect.CodeUnavailable, backendDown},
	{ofType[*serviceerror.Canceled], connect.CodeUnavailable, backendDown},
	{ofType[*serviceerror.PermissionDenied], connect.CodeUnavailable, backendDown},
}

// serverTexts are what callers are told in place of the text.
var serverTexts = map[connect.Code]string{
	connect.CodeInvalidArgument: "Temporal refuses the request: a name in it is not valid",
	connect.CodeUnavailable:     "Temporal does not answer, or refuses calls: try again later",
}

// explain gives an error its code and reason, nil if there is none.
func explain(ctx context.Context, err error) *connect.Error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*connect.Error](err); ok {
		return explainConnect(known)
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return newError(connect.CodeDeadlineExceeded, canceled, "the call took too long")
	}
	if errors.Is(err, client.ErrOtherSpec) {
		return otherSpec(oneLine(err), otherEnded)
	}
	for _, class := range errClasses {
		if class.is(err) {
			return newError(class.code, class.reason, "%s", oneLine(err))
		}
	}
	for _, class := range serverErrors {
		if class.is(err) {
			return newError(class.code, class.reason, "%s", serverTexts[class.code]).WithCause(err)
		}
	}
	return internalError().WithCause(err)
}

// explain is explain with the address of a Temporal server that does not answer.
func (s *Server) explain(ctx context.Context, err error) *connect.Error {
	explained := explain(ctx, err)
	if explained == nil || s.Address == "" || ctx.Err() != nil {
		return explained
	}
	if text := s.aboutTemporal(err); text != "" {
		return newError(connect.CodeUnavailable, backendDown, "%s", text).WithCause(err)
	}
	return explained
}

// aboutTemporal says that Temporal does not answer, "" if err is about something else.
func (s *Server) aboutTemporal(err error) string {
	switch {
	case ofType[*connect.Error](err), ofType[*job.Failure](err), errors.Is(err, client.ErrNoWorker),
		errors.Is(err, client.ErrOutcomeUnknown):
		return ""
	case ofType[*serviceerror.Unavailable](err), ofType[*serviceerror.ResourceExhausted](err):
		return temporalclient.ExplainCall(sdk.Options{HostPort: s.Address, Namespace: s.Client.Namespace()}, err).Error()
	case ofType[*serviceerror.DeadlineExceeded](err), ofType[*serviceerror.Canceled](err),
		errors.Is(err, client.ErrSlow), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("temporal at %s does not answer in time", s.Address)
	}
	return ""
}

// oneLine is the text of an error; joined errors have one on each line. Of those that say the
// same, one is enough.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSuffix(line, "\n"); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return job.Cut(strings.Join(lines, "; "), maxErrorText)
}

// maxErrorText bounds the text of an error in bytes: gRPC sends it in a header.
const maxErrorText = 2000

// connectReasons are the reasons of errors that the protocols have found.
var connectReasons = map[connect.Code]jobsv1.ErrorReason{
	connect.CodeInvalidArgument:   invalidRequest,
	connect.CodeOutOfRange:        invalidRequest,
	connect.CodeResourceExhausted: tooLarge,
	connect.CodeUnimplemented:     unknownProcedure,
	connect.CodeCanceled:          canceled,
	connect.CodeDeadlineExceeded:  canceled,
	connect.CodeUnavailable:       backendDown,
	connect.CodeNotFound:          notFound,
}

// explainConnect adds what an error of a protocol, or of the validation, lacks.
func explainConnect(err *connect.Error) *connect.Error {
	for _, detail := range err.Details() {
		if message, failed := connectproto.UnmarshalErrorDetail(detail); failed == nil {
			if _, ok := message.(*errdetails.ErrorInfo); ok {
				return err
			}
		}
	}
	if invalid, ok := errors.AsType[*protovalidate.ValidationError](err); ok {
		return ofValidation(invalid)
	}
	reason, ok := connectReasons[err.Code()]
	if !ok {
		return internalError().WithCause(err)
	}
	return withInfo(err, reason, nil)
}

// ofValidation is the error of a request that the contract forbids. It has the violations
// as BadRequest, and in the form that protovalidate gives them.
func ofValidation(invalid *protovalidate.ValidationError) *connect.Error {
	var violations []violation
	for _, v := range invalid.Violations {
		violations = append(violations, violation{protovalidate.FieldPathString(v.Proto.GetField()), ruleText(v)})
	}
	told := protovalidate.ValidationError{Violations: invalid.Violations[:min(len(invalid.Violations), maxViolations)]}
	return withDetail(badRequest(violations...), told.ToProto())
}

// InfoOf is the reason of an error of the Job API with its metadata, unspecified if it is
// none.
func InfoOf(err error) (jobsv1.ErrorReason, map[string]string) {
	for _, message := range detailsOf(err) {
		if info, ok := message.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return jobsv1.ErrorReason(jobsv1.ErrorReason_value[reasonPrefix+info.GetReason()]), info.GetMetadata()
		}
	}
	return jobsv1.ErrorReason_ERROR_REASON_UNSPECIFIED, nil
}

// otherSpecKey is the key of the metadata of an error ALREADY_EXISTS that says that the id of a job
// stands for work with another spec, which is running, or has ended.
const otherSpecKey = "other_spec"

// Values of that key.
const (
	otherRunning = "running"
	otherEnded   = "ended"
)

func otherSpec(text, state string) *connect.Error {
	return withInfo(connect.NewError(connect.CodeAlreadyExists, text), alreadyExists, map[string]string{otherSpecKey: state})
}

// otherSpecRuns is the error of a job that is to run while it runs with another spec.
func otherSpecRuns(jobID string) error {
	return otherSpec(fmt.Sprintf("a run of job %s with another spec is running: wait for its end, or stop it", jobID), otherRunning)
}

// HasRunOtherSpec reports whether a job is not run since its id stands for work that has ended, with
// another spec.
func HasRunOtherSpec(err error) bool {
	_, metadata := InfoOf(err)
	return metadata[otherSpecKey] == otherEnded
}

// ViolationsOf are the fields of a request that an error of the Job API complains of, with
// what is wrong.
func ViolationsOf(err error) []*errdetails.BadRequest_FieldViolation {
	for _, message := range detailsOf(err) {
		if bad, ok := message.(*errdetails.BadRequest); ok {
			return bad.GetFieldViolations()
		}
	}
	return nil
}

// detailsOf are the details of an error, but for those of types that are not known here.
func detailsOf(err error) []proto.Message {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return nil
	}
	var messages []proto.Message
	for _, detail := range failed.Details() {
		if message, err := connectproto.UnmarshalErrorDetail(detail); err == nil {
			messages = append(messages, message)
		}
	}
	return messages
}

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
