package platform

import (
	"context"
	"errors"
	"slices"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

type changeService struct {
	store      *store.Store
	checkpoint time.Duration
	stopping   <-chan struct{}
}

// resumeToken is where a stream goes on.
type resumeToken struct {
	Kinds string // the kinds that the stream tells of
	store.Position
	// Snapshot says that the rest of a snapshot comes first: what is after the place.
	Snapshot bool
	store.Place
}

// subscription is one stream.
type subscription struct {
	*changeService
	kinds  []platformv1.ResourceKind
	token  resumeToken // of what was sent last
	stream platformv1connect.ChangeServiceStreamChangesServerStream
}

func (s *changeService) StreamChanges(ctx context.Context, r *platformv1.StreamChangesRequest, stream platformv1connect.ChangeServiceStreamChangesServerStream) error {
	sub := &subscription{changeService: s, kinds: slices.Sorted(slices.Values(r.GetKinds())), stream: stream}
	err := sub.begin(ctx, r)
	if err == nil && sub.token.Snapshot {
		err = sub.snapshot(ctx)
	}
	if err == nil {
		err = sub.tail(ctx)
	}
	if errors.Is(err, store.ErrTooOld) {
		return platform.Error(connect.CodeOutOfRange, platformv1.ErrorReason_ERROR_REASON_TOO_OLD, "%v: begin with a snapshot", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failure(err)
}

// begin sets the token to where the stream begins.
func (s *subscription) begin(ctx context.Context, r *platformv1.StreamChangesRequest) error {
	kinds := fingerprint(s.kinds)
	if token := r.GetResumeToken(); token != "" {
		if !decodeToken(token, &s.token) || s.token.Kinds != kinds {
			return platform.Error(connect.CodeInvalidArgument, platformv1.ErrorReason_ERROR_REASON_TOKEN_INVALID,
				"resume_token is not one of a stream of these kinds: begin with a snapshot")
		}
		// What cannot be resumed is found before the rest of a snapshot is sent.
		_, _, err := s.store.Changes(ctx, s.kinds, s.token.Position, 0)
		return err
	}
	head, err := s.store.Head(ctx)
	s.token = resumeToken{Kinds: kinds, Position: head, Snapshot: r.GetSnapshot()}
	return err
}

// snapshot sends all resources after the token's place. A snapshot that begins also sets
// the position from which changes follow it; one that is resumed leaves it.
func (s *subscription) snapshot(ctx context.Context) error {
	fresh, now := s.token.Place == store.Place{}, timestamppb.New(s.store.Now())
	moment, err := s.store.Snapshot(ctx, s.kinds, s.token.Place, func(moment store.Position, r *platformv1.Resource) error {
		if fresh {
			s.token.Position = moment
		}
		s.token.Place = store.Place{Kind: store.Kind(r), ID: store.ID(r)}
		return s.send(&platformv1.Change{
			Operation:      platformv1.Operation_OPERATION_READ,
			Kind:           store.Kind(r),
			ResourceId:     store.ID(r),
			OrganizationId: store.OrganizationID(r),
			After:          r,
			Time:           now,
		})
	})
	if fresh {
		s.token.Position = moment // also if nothing was read
	}
	s.token.Snapshot, s.token.Place = false, store.Place{}
	return err
}

// batch is how many changes are read at a time.
const batch = 500

// tail sends the changes after the token, until the caller or the server ends it.
func (s *subscription) tail(ctx context.Context) error {
	tick := time.NewTicker(s.checkpoint)
	defer tick.Stop()
	due := true // a checkpoint
	for {
		changed := s.store.Changed() // asked before the log is read, so that no commit is missed
		entries, upTo, err := s.store.Changes(ctx, s.kinds, s.token.Position, batch)
		if err != nil {
			return err
		}
		fault, err := s.store.Fault(ctx)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			s.token.Seq = entry.Seq
			for range fault.Times(s.token.Kinds, entry.Seq) {
				if err := s.send(entry.Change); err != nil {
					return err
				}
			}
			due = true
		}
		s.token.Position = upTo
		if len(entries) == batch {
			continue
		}
		if due {
			if err := s.send(nil); err != nil {
				return err
			}
			due = false
		}
		select {
		case <-changed:
		case <-tick.C:
			due = true
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stopping:
			return connect.NewError(connect.CodeUnavailable, "the server stops")
		}
	}
}

// send sends a change, or a checkpoint.
func (s *subscription) send(change *platformv1.Change) error {
	return s.stream.Send(&platformv1.StreamChangesResponse{Change: change, ResumeToken: encodeToken(s.token)})
}
