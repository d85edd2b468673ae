package platform

import (
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Domain is the domain of the reasons of errors.
const Domain = "platform.dendra.science"

const reasonPrefix = "ERROR_REASON_"

// Error makes an error of the Platform API that has a reason.
func Error(code connect.Code, reason platformv1.ErrorReason, format string, args ...any) error {
	err := connect.NewError(code, fmt.Sprintf(format, args...))
	detail, encoded := connectproto.NewErrorDetail(&errdetails.ErrorInfo{
		Reason: strings.TrimPrefix(reason.String(), reasonPrefix), Domain: Domain,
	})
	if encoded != nil {
		return err.WithCause(encoded)
	}
	return err.WithDetail(detail)
}

// Reason is the reason of an error of the Platform API, or unspecified.
func Reason(err error) platformv1.ErrorReason {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return platformv1.ErrorReason_ERROR_REASON_UNSPECIFIED
	}
	for _, detail := range failed.Details() {
		message, err := connectproto.UnmarshalErrorDetail(detail)
		if err != nil {
			continue // of a type that this program does not know
		}
		if info, ok := message.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return platformv1.ErrorReason(platformv1.ErrorReason_value[reasonPrefix+info.GetReason()])
		}
	}
	return platformv1.ErrorReason_ERROR_REASON_UNSPECIFIED
}
