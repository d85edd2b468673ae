package grpcproxy

import (
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// OlderVersion is the release that [Older] makes of a Temporal server.
const OlderVersion = "1.29.1"

// Older makes a Temporal server answer as release 1.29.1 does, which has no standalone
// activities: it does not know their calls, and no namespace has the capability.
func Older() Options {
	return Options{
		Refuse: func(method string) error {
			if !strings.Contains(method, "ActivityExecution") {
				return nil
			}
			return status.Error(codes.Unimplemented, "unknown method "+method+" for service temporal.api.workflowservice.v1.WorkflowService")
		},
		Rewrite: func(method string, answer []byte) ([]byte, error) {
			switch method {
			case "DescribeNamespace":
				var namespace workflowservice.DescribeNamespaceResponse
				if err := proto.Unmarshal(answer, &namespace); err != nil {
					return nil, err
				}
				namespace.GetNamespaceInfo().GetCapabilities().StandaloneActivities = false
				return proto.Marshal(&namespace)
			case "GetSystemInfo":
				var system workflowservice.GetSystemInfoResponse
				if err := proto.Unmarshal(answer, &system); err != nil {
					return nil, err
				}
				system.ServerVersion = OlderVersion
				return proto.Marshal(&system)
			}
			return answer, nil
		},
	}
}
