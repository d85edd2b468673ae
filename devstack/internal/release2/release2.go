// Package release2 is a stand-in for the metadata API of Release 2, the target of
// reverse sync. It has the rules of its writes and queries, for the services that
// reverse sync writes to.
package release2

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dendrascience/dendra-jobs/devstack/internal/sqlite"
)

// API is the metadata API over a database.
type API struct {
	db       *sql.DB
	services map[string]*service
}

// Open opens the database, which it makes.
func Open(ctx context.Context, file string) (*API, error) {
	services, err := readServices()
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, file, tables)
	return &API{db: db, services: services}, err
}

// Close closes the database.
func (a *API) Close() error { return a.db.Close() }

// Handler serves the API. actor names who makes a request.
func (a *API) Handler(actor func(context.Context) string) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, status int, do func(*request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := a.serve(r, actor(r.Context()), do)
			answer(w, status, result, err)
		})
	}
	handle("GET /{service}", http.StatusOK, (*request).find)
	handle("POST /{service}", http.StatusCreated, (*request).create)
	handle("GET /{service}/{id}", http.StatusOK, (*request).get)
	handle("PUT /{service}/{id}", http.StatusOK, (*request).update)
	handle("PATCH /{service}/{id}", http.StatusOK, (*request).patch)
	handle("DELETE /{service}/{id}", http.StatusOK, (*request).remove)
	return mux
}

// userID is the id of a user of Release 2 who has this name.
func userID(actor string) string {
	sum := sha256.Sum256([]byte(actor))
	return hex.EncodeToString(sum[:12])
}

// request is a request in a transaction.
type request struct {
	*http.Request
	service *service
	id      string
	user    string // id of who makes it
	now     time.Time
	tx      *sql.Tx
}

// serve does a request in a transaction.
func (a *API) serve(r *http.Request, actor string, do func(*request) (any, error)) (any, error) {
	service, ok := a.services[r.PathValue("service")]
	if !ok {
		return nil, &Error{Name: "NotFound", Message: "Page not found", Code: http.StatusNotFound, ClassName: "not-found"}
	}
	tx, err := a.db.BeginTx(r.Context(), &sql.TxOptions{ReadOnly: r.Method == http.MethodGet})
	if err != nil {
		return nil, err
	}
	result, err := do(&request{
		Request: r, service: service, id: r.PathValue("id"), user: userID(actor), now: time.Now().UTC(), tx: tx,
	})
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return result, tx.Commit()
}

// found is a page of a find.
type found struct {
	Total int        `json:"total"`
	Limit int        `json:"limit"`
	Skip  int        `json:"skip"`
	Data  []document `json:"data"`
}

func (r *request) find() (any, error) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	page, total, err := find(r.Context(), r.tx, r.service.name, q)
	if err != nil {
		return nil, err
	}
	for i, d := range page {
		if page[i], err = resolve(r.Context(), r.tx, r.service.name, d); err != nil {
			return nil, err
		}
		delete(page[i], "datapoints_config_built") // finds leave it out
	}
	return found{Total: total, Limit: q.limit, Skip: q.skip, Data: page}, nil
}

func (r *request) get() (any, error) {
	d, err := r.matching()
	if err != nil {
		return nil, err
	}
	return resolve(r.Context(), r.tx, r.service.name, d)
}

// matching is the document with the request's id, if the request's query matches it.
func (r *request) matching() (document, error) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		return nil, err
	}
	d, err := read(r.Context(), r.tx, r.service.name, coerceString(r.id, true))
	if err != nil {
		return nil, err
	}
	if d == nil || !q.matches(d) {
		return nil, notFound(r.id)
	}
	return d, nil
}

func (r *request) create() (any, error) {
	given, err := r.body()
	if err != nil {
		return nil, err
	}
	d := r.service.prepared(given)
	if err := validate(r.service.create, d); err != nil {
		return nil, err
	}
	d = coerceObject(d, false)
	if d["_id"] == nil {
		d["_id"] = newObjectID(r.now)
	}
	id, _ := d["_id"].(string)
	switch there, err := read(r.Context(), r.tx, r.service.name, id); {
	case err != nil:
		return nil, err
	case there != nil:
		return nil, conflict(id)
	}
	d["created_at"], d["created_by"] = r.now.Format(timeLayout), r.user
	return r.write(d, d)
}

// update replaces a document. A query would not compare and set, as it is not coerced:
// so there may be none.
func (r *request) update() (any, error) {
	if r.URL.RawQuery != "" {
		return nil, badRequest("An update with a query compares nothing here: patch instead")
	}
	before, err := r.matching()
	if err != nil {
		return nil, err
	}
	given, err := r.body()
	if err != nil {
		return nil, err
	}
	d := r.service.prepared(given)
	d["_id"] = before["_id"]
	if err := validate(r.service.create, d); err != nil {
		return nil, err
	}
	d = coerceObject(d, false)
	d["created_at"], d["created_by"] = before["created_at"], before["created_by"]
	return r.write(d, d)
}

// patch sets and unsets keys of a document that matches the request's query. With
// version_id in it that is a compare-and-set.
func (r *request) patch() (any, error) {
	before, err := r.matching()
	if err != nil {
		return nil, err
	}
	given, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := validate(r.service.patch, given); err != nil {
		return nil, err
	}
	d := maps.Clone(before)
	set, _ := given["$set"].(map[string]any)
	set = coerceObject(set, false)
	maps.Copy(d, set)
	unset, _ := given["$unset"].(map[string]any)
	for key := range unset {
		delete(d, key)
	}
	return r.write(d, set)
}

// write stamps and stores a document, of which the keys of written are new.
func (r *request) write(d, written document) (any, error) {
	if terms, ok := written["terms"].(map[string]any); ok && r.service.name == "datastreams" {
		info, err := termsInfo(r.Context(), r.tx, terms)
		if err != nil {
			return nil, err
		}
		d["terms_info"] = info
	}
	d["updated_at"], d["updated_by"] = r.now.Format(timeLayout), r.user
	d["version_id"] = newObjectID(r.now)
	return d, write(r.Context(), r.tx, r.service.name, d)
}

func (r *request) remove() (any, error) {
	d, err := r.matching()
	if err != nil {
		return nil, err
	}
	id, _ := d["_id"].(string)
	return d, remove(r.Context(), r.tx, r.service.name, id)
}

// body is the JSON object that was sent.
func (r *request) body() (document, error) {
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(r.Body, most))
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil || d == nil {
		return nil, badRequest("The body is not a JSON object")
	}
	return d, nil
}

func validate(schema *jsonschema.Schema, d document) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	err = schema.Validate(instance)
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	failed := badRequest("Data does not match schema")
	for _, cause := range invalid.BasicOutput().Errors {
		if cause.Error != nil {
			failed.Errors = append(failed.Errors, cause.InstanceLocation+": "+cause.Error.String())
		}
	}
	return failed
}
