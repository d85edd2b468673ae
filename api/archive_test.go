package api_test

import (
	"errors"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestAuditsAreBounded begins as many audits as there may be, and one more.
func TestAuditsAreBounded(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	c := api.NewInProcess(api.Config{Store: func() (*objects.Store, error) {
		begun <- struct{}{}
		<-end
		return nil, errors.New("the store is away")
	}})
	audit := func() error {
		stream, err := c.Archive.AuditArchive(t.Context(), &jobsv1.AuditArchiveRequest{Offline: true})
		if err == nil {
			_, err = stream.Receive()
		}
		return err
	}
	var audits errgroup.Group
	failed := make(chan error, api.MaxAudits+1)
	begin := func() {
		audits.Go(func() error {
			failed <- audit()
			return nil
		})
		<-begun
	}
	for range api.MaxAudits {
		begin()
	}
	err := audit()
	requireError(t, err, connect.CodeResourceExhausted, jobsv1.ErrorReason_ERROR_REASON_TOO_MANY_CALLS)
	require.ErrorContains(t, err, "2 audits of archives are under way, which is the limit of this server: try again when one has ended")

	end <- struct{}{}
	require.ErrorContains(t, <-failed, "the store is away")
	begin()
	close(end)
	require.NoError(t, audits.Wait())
}
