package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// told reads what a command of the starter has printed: a message of the Job API.
func told[M any, P interface {
	*M
	proto.Message
}](out []byte, err error) (P, error) {
	var message P = new(M)
	if err == nil {
		err = protojson.Unmarshal(out, message)
	}
	return message, err
}

// lower is the word of a value of an enum, without the prefix of its names.
func lower(value fmt.Stringer, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}

// toldRuns are the runs that the starter has listed.
func toldRuns(listed *jobsv1.ListRunsResponse) []ledger.Run {
	var runs []ledger.Run
	for _, run := range listed.GetRuns() {
		_, id, _ := strings.Cut(run.GetName(), "@")
		noted := ledger.Run{ID: id, Started: run.GetStartTime().AsTime(), Status: lower(run.GetStatus(), "RUN_STATUS_")}
		if at := run.GetScheduledTime(); at != nil {
			noted.Due = at.AsTime()
		}
		if at := run.GetEndTime(); at != nil {
			noted.Ended = at.AsTime()
		}
		if at := run.GetSupersededByTime(); at != nil {
			noted.Superseded = at.AsTime()
		}
		runs = append(runs, noted)
	}
	return runs
}
