package extract_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// A server that sends frames without end that are no records.
func TestLdmpServerThatSendsNoRecords(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "ldmp_no_records")
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		frames := 0
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			for err == nil {
				frames++
				_, err = fmt.Fprintf(connection, "frame %d\x00", frames)
			}
			_ = connection.Close()
		}
	}()
	l.spec.Server, l.spec.MaxRefused = listener.Addr().String(), 2
	result, err := l.start(l.extract, l.spec).end()
	require.Equal(t, errclass.LdmpBadRecords, job.ClassOf(err), err)
	require.ErrorContains(t, err, "2 frames of one connection are refused, the last because")
	require.EqualValues(t, 4, result.Counts["connections"])
	require.EqualValues(t, 8, result.Counts["quarantined"])
	require.Contains(t, result.Message, "; 8 to quarantine")
}
