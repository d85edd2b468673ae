package platform

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// devService writes resources as the users of a real Platform API would.
type devService struct{ store *store.Store }

func (s *devService) mount(mux *http.ServeMux, path string) {
	mux.HandleFunc("PUT "+path+"resources", s.put)
	mux.HandleFunc("DELETE "+path+"resources/{kind}/{id}", s.delete)
	mux.HandleFunc("POST "+path+"trim", s.trim)
	mux.HandleFunc("POST "+path+"fault", s.fault)
}

// put makes or replaces a resource. With If-Match the stored one must have that etag.
func (s *devService) put(w http.ResponseWriter, r *http.Request) {
	given, err := readResource(r.Body)
	if err != nil {
		answer(w, nil, err)
		return
	}
	var stored *platformv1.Resource
	err = s.store.Update(r.Context(), actorOf(r.Context()), func(tx *store.Tx) error {
		before, err := tx.Get(r.Context(), store.Kind(given), store.ID(given))
		if err != nil {
			return err
		}
		if err := checkEtag(r.Header.Get("If-Match"), before); err != nil {
			return err
		}
		keepServerFields(before, given)
		if err := checkParents(r.Context(), tx, given); err != nil {
			return err
		}
		stored, err = tx.Put(r.Context(), given)
		return err
	})
	answer(w, stored, err)
}

func readResource(body io.Reader) (*platformv1.Resource, error) {
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(body, most))
	if err != nil {
		return nil, err
	}
	r := &platformv1.Resource{}
	if err := protojson.Unmarshal(text, r); err != nil {
		return nil, connect.Errorf(connect.CodeInvalidArgument, "%v", err)
	}
	switch store.Kind(r) {
	case platformv1.ResourceKind_RESOURCE_KIND_UNSPECIFIED:
		return nil, connect.NewError(connect.CodeInvalidArgument, "the body holds no resource")
	case kindTable:
		return nil, connect.NewError(connect.CodeInvalidArgument, "UpsertTableInfos writes tables")
	}
	if err := protovalidate.Validate(r); err != nil {
		return nil, connect.Errorf(connect.CodeInvalidArgument, "%v", err)
	}
	return r, nil
}

// keepServerFields takes over what only the server, or a job, writes.
func keepServerFields(before, given *platformv1.Resource) {
	if o := given.GetOrganization(); o != nil {
		stored := before.GetOrganization()
		o.DeleteTime, o.PurgeTime, o.Finalizers = stored.GetDeleteTime(), stored.GetPurgeTime(), stored.GetFinalizers()
		o.DeleteArchive = stored.GetDeleteArchive()
	}
	if c := given.GetIntegrationConfig(); c != nil {
		stored := before.GetIntegrationConfig()
		c.Etag, c.Modification, c.Version, c.Status = stored.GetEtag(), stored.GetModification(), stored.GetVersion(), stored.GetStatus()
		if stored == nil || !proto.Equal(stored, c) {
			c.Version++
		}
	}
}

// checkParents finds that the organization and the station of a resource are there.
func checkParents(ctx context.Context, tx *store.Tx, r *platformv1.Resource) error {
	if store.Kind(r) == kindOrganization {
		return nil
	}
	if id := store.OrganizationID(r); id != "" {
		organization, err := get[*platformv1.Organization](ctx, tx, kindOrganization, id)
		if err != nil {
			return err
		}
		if organization.GetDeleteTime() != nil {
			return platform.Error(connect.CodeFailedPrecondition, platformv1.ErrorReason_ERROR_REASON_ORGANIZATION_DELETED,
				"%s is marked as deleted", store.Name(kindOrganization, id))
		}
	}
	if id := store.StationID(r); id != "" {
		_, err := get[*platformv1.Station](ctx, tx, kindStation, id)
		return err
	}
	return nil
}

func (s *devService) delete(w http.ResponseWriter, r *http.Request) {
	field := (&platformv1.Resource{}).ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(r.PathValue("kind")))
	switch {
	case field == nil:
		answer(w, nil, connect.Errorf(connect.CodeInvalidArgument, "there is no kind %q", r.PathValue("kind")))
		return
	case platformv1.ResourceKind(field.Number()) == kindOrganization:
		answer(w, nil, connect.NewError(connect.CodeInvalidArgument, "DeleteOrganization deletes organizations"))
		return
	}
	answer(w, nil, s.store.Update(r.Context(), actorOf(r.Context()), func(tx *store.Tx) error {
		return tx.Delete(r.Context(), platformv1.ResourceKind(field.Number()), r.PathValue("id"))
	}))
}

func (s *devService) trim(w http.ResponseWriter, r *http.Request) {
	keep, err := strconv.ParseInt(r.FormValue("keep"), 10, 64)
	if err != nil || keep < 0 {
		answer(w, nil, connect.NewError(connect.CodeInvalidArgument, "keep is not a number of changes"))
		return
	}
	answer(w, nil, s.store.Trim(r.Context(), keep))
}

// fault sets the fault of the change feed.
func (s *devService) fault(w http.ResponseWriter, r *http.Request) {
	drop, err1 := strconv.ParseFloat(r.FormValue("drop"), 64)
	double, err2 := strconv.ParseFloat(r.FormValue("double"), 64)
	seed, err3 := strconv.ParseUint(r.FormValue("seed"), 10, 64)
	if errors.Join(err1, err2, err3) != nil || !(drop >= 0 && double >= 0 && drop+double <= 1) {
		answer(w, nil, connect.NewError(connect.CodeInvalidArgument, "drop and double are shares, at most 1 together, and seed is a number"))
		return
	}
	answer(w, nil, s.store.SetFault(r.Context(), store.Fault{Drop: drop, Double: double, Seed: seed}))
}

// answer writes a resource, or what went wrong.
func answer(w http.ResponseWriter, r *platformv1.Resource, err error) {
	if err != nil {
		status := http.StatusInternalServerError
		switch connect.CodeOf(err) {
		case connect.CodeInvalidArgument:
			status = http.StatusBadRequest
		case connect.CodeNotFound:
			status = http.StatusNotFound
		case connect.CodeAborted, connect.CodeFailedPrecondition:
			status = http.StatusPreconditionFailed
		}
		failed, _ := errors.AsType[*connect.Error](failure(err))
		http.Error(w, failed.Message(), status)
		return
	}
	text, err := protojson.Marshal(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the client may be gone
}
