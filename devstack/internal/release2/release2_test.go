package release2_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/devstack/internal/release2"
)

type document = map[string]any

// api is the API of a test, over HTTP. Calls are made by the actor of X-Actor.
type api struct{ url string }

type actorKey struct{}

func start(t *testing.T) api {
	t.Helper()
	a, err := release2.Open(t.Context(), filepath.Join(t.TempDir(), "release2.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	handler := a.Handler(func(ctx context.Context) string { return ctx.Value(actorKey{}).(string) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, r.Header.Get("X-Actor"))))
	}))
	t.Cleanup(server.Close)
	return api{server.URL}
}

// call requires the status of the answer.
func (a api) call(t *testing.T, want int, method, path string, body any, actor ...string) document {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), method, a.url+path, bytes.NewReader(text))
	require.NoError(t, err)
	for _, name := range actor {
		request.Header.Set("X-Actor", name)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, want, response.StatusCode, "%s %s: %s", method, path, answer)
	var d document
	require.NoError(t, json.Unmarshal(answer, &d))
	return d
}

func id(n int) string { return fmt.Sprintf("%021xabc", n) }

func with(d document, key string, value any) document {
	d = maps.Clone(d)
	d[key] = value
	return d
}

func station(n int) document {
	return document{"_id": id(n), "name": fmt.Sprint("Station ", n), "time_zone": "PST", "utc_offset": -28800}
}

func TestTheServerStampsDocuments(t *testing.T) {
	t.Parallel()
	a := start(t)
	made := a.call(t, http.StatusCreated, "POST", "/stations", with(with(station(1), "created_by", "x"), "version_id", "x"), "ada")
	defaults := document{
		"is_active": true, "is_enabled": true, "is_geo_protected": false, "is_hidden": false, "is_stationary": true,
		"state": "ready", "station_type": "weather", "_id": id(1),
	}
	for key, want := range defaults {
		require.Equal(t, want, made[key], key)
	}
	require.Regexp(t, `^[0-9a-f]{24}$`, made["version_id"])
	require.Regexp(t, `^[0-9a-f]{24}$`, made["created_by"])
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, made["created_at"])
	require.Equal(t, made["created_by"], made["updated_by"])

	patched := a.call(t, http.StatusOK, "PATCH", "/stations/"+id(1), document{"$set": document{"state": "away"}}, "bob")
	require.NotEqual(t, made["version_id"], patched["version_id"])
	require.NotEqual(t, made["updated_by"], patched["updated_by"])
	require.Equal(t, made["created_by"], patched["created_by"])
	updated := a.call(t, http.StatusOK, "PUT", "/stations/"+id(1), with(station(1), "name", "Another"), "bob")
	require.NotEqual(t, patched["version_id"], updated["version_id"])
	require.Equal(t, made["created_at"], updated["created_at"])
	require.Equal(t, "ready", updated["state"], "an update replaces the document")

	without := station(2)
	delete(without, "_id")
	require.Regexp(t, `^[0-9a-f]{24}$`, a.call(t, http.StatusCreated, "POST", "/stations", without)["_id"])
	a.call(t, http.StatusConflict, "POST", "/stations", station(1))
	require.Equal(t, "Another", a.call(t, http.StatusOK, "DELETE", "/stations/"+id(1), nil)["name"])
	a.call(t, http.StatusNotFound, "GET", "/stations/"+id(1), nil)
	a.call(t, http.StatusNotFound, "GET", "/photos", nil)
}

// One wrong key refuses the whole document.
func TestWritesThatAreRefused(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.call(t, http.StatusCreated, "POST", "/stations", station(1))
	path := "/stations/" + id(1)
	for name, c := range map[string]struct {
		method, path string
		body         any
		want         string
	}{
		"unknown key":              {"POST", "/stations", with(station(2), "colour", "red"), "colour"},
		"required key":             {"POST", "/stations", document{"name": "x", "utc_offset": 0}, "time_zone"},
		"type of a key":            {"POST", "/stations", with(station(2), "is_enabled", "true"), "/is_enabled"},
		"slug":                     {"POST", "/stations", with(station(2), "slug", "No_Slug"), "/slug"},
		"id":                       {"POST", "/stations", with(station(2), "_id", "2"), "/_id"},
		"empty list":               {"POST", "/stations", with(station(2), "thing_type_ids", []any{}), "/thing_type_ids"},
		"unknown key of an update": {"PUT", path, with(station(1), "colour", "red"), "colour"},
		"patch without $set":       {"PATCH", path, document{"name": "x"}, "name"},
		"patch of what is stamped": {"PATCH", path, document{"$set": document{"version_id": id(9)}}, "version_id"},
		"patch of what is added":   {"PATCH", path, document{"$set": document{"access_levels_resolved": document{}}}, "access_levels_resolved"},
		"patch of the id":          {"PATCH", path, document{"$set": document{"_id": id(9)}}, "_id"},
		"unset with a value":       {"PATCH", path, document{"$unset": document{"slug": true}}, "/$unset/slug"},
		"unset of what is needed":  {"PATCH", path, document{"$unset": document{"name": ""}}, "name"},
		"another operator":         {"PATCH", path, document{"$inc": document{"utc_offset": 1}}, "$inc"},
		"no object":                {"POST", "/stations", []any{}, ""},
		"source type":              {"POST", "/datastreams", document{"name": "x", "source_type": "robot"}, "/source_type"},
		"time without milliseconds": {"POST", "/datastreams", document{"name": "x", "extent": document{"begins_at": "2020-01-01T00:00:00Z"}},
			"/extent/begins_at"},
		"vocabulary without id": {"POST", "/vocabularies", document{"label": "Medium", "scheme_id": "ds"}, "_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := a.call(t, http.StatusBadRequest, c.method, c.path, c.body)
			require.Equal(t, "BadRequest", failed["name"])
			require.Contains(t, fmt.Sprint(failed["errors"]), c.want)
		})
	}
}

func TestPatchSetsAndUnsets(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.call(t, http.StatusCreated, "POST", "/stations", with(with(station(1), "slug", "one"), "description", "x"))
	patched := a.call(t, http.StatusOK, "PATCH", "/stations/"+id(1), document{
		"$set": document{"organization_id": "ABCDEFABCDEFABCDEFABCDEF", "name": "ABCDEFABCDEFABCDEFABCDEF"}, "$unset": document{"slug": ""},
	})
	require.NotContains(t, patched, "slug")
	require.Equal(t, "x", patched["description"])
	require.Equal(t, "abcdefabcdefabcdefabcdef", patched["organization_id"], "an id")
	require.Equal(t, "ABCDEFABCDEFABCDEFABCDEF", patched["name"], "no id")
}

func TestAVersionComparesAndSets(t *testing.T) {
	t.Parallel()
	a := start(t)
	versioned := func(state string) (version string) {
		version, _ = a.call(t, http.StatusOK, "PATCH", "/stations/"+id(1), document{"$set": document{"state": state}})["version_id"].(string)
		return version
	}
	a.call(t, http.StatusCreated, "POST", "/stations", station(1))
	path := "/stations/" + id(1) + "?version_id="
	old := versioned("old")
	current := versioned("current")
	set := document{"$set": document{"state": "mine"}}
	a.call(t, http.StatusNotFound, "PATCH", path+old, set)
	require.Equal(t, "current", a.call(t, http.StatusOK, "GET", "/stations/"+id(1), nil)["state"])
	require.Equal(t, "mine", a.call(t, http.StatusOK, "PATCH", path+current, set)["state"])
	a.call(t, http.StatusNotFound, "PATCH", path+current, set)
	a.call(t, http.StatusBadRequest, "PUT", path+current, station(1))
}

func TestReadsAnswerMoreThanWritesTake(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.call(t, http.StatusCreated, "POST", "/organizations", document{
		"_id": id(1), "name": "One", "slug": "one", "access_levels": document{"public_level": 1}, "general_config": document{"a": 1},
	})
	a.call(t, http.StatusCreated, "POST", "/stations", with(with(station(2), "organization_id", id(1)), "access_levels", document{"member_level": 2}))
	read := a.call(t, http.StatusOK, "GET", "/stations/"+id(2), nil)
	require.Equal(t, document{"member_level": 2.0, "public_level": 1.0}, read["access_levels_resolved"])
	require.Equal(t, document{"a": 1.0}, read["general_config_resolved"])
	require.Equal(t, document{"name": "One", "slug": "one"}, read["organization_lookup"])
	updated := a.call(t, http.StatusOK, "PUT", "/stations/"+id(2), read)
	require.NotContains(t, updated, "access_levels_resolved", "an update drops them")
}

func TestQueriesAreCoerced(t *testing.T) {
	t.Parallel()
	a := start(t)
	slugs := []string{"123", "abc", "true"}
	for n, slug := range slugs {
		s := with(with(station(n), "slug", slug), "organization_id", id(100+n))
		s["thing_type_ids"], s["utc_offset"], s["is_hidden"] = []any{id(200 + n), id(300)}, -3600*n, n == 2
		a.call(t, http.StatusCreated, "POST", "/stations", s)
	}
	for query, want := range map[string][]any{
		"slug=abc":                     {id(1)},
		"slug=123":                     {}, // a number
		"slug=true":                    {}, // a boolean
		"organization_id=" + id(101):   {id(1)},
		"is_hidden=true":               {id(2)},
		"utc_offset=-3600":             {id(1)},
		"utc_offset[$lt]=-1":           {id(1), id(2)},
		"_id[$gt]=" + id(1):            {id(2)},
		"slug[$ne]=abc":                {id(0), id(2)},
		"_id[$in][]=" + id(0):          {id(0)},
		"thing_type_ids=" + id(201):    {id(1)},
		"thing_type_ids=" + id(300):    {id(0), id(1), id(2)},
		"$sort[utc_offset]=1&$limit=2": {id(2), id(1)},
		"$sort[_id]=-1&$skip=1":        {id(1), id(0)},
	} {
		found := a.call(t, http.StatusOK, "GET", "/stations?"+query, nil)
		ids := []any{}
		for _, d := range found["data"].([]any) {
			ids = append(ids, d.(document)["_id"])
		}
		require.Equal(t, want, ids, query)
	}
	for _, wrong := range []string{"slug[$regex]=a", "$limit=x", "$select[]=name", "a[b][c]=d"} {
		a.call(t, http.StatusBadRequest, "GET", "/stations?"+wrong, nil)
	}
}

func TestListsHavePages(t *testing.T) {
	t.Parallel()
	a := start(t)
	for n := range 250 {
		a.call(t, http.StatusCreated, "POST", "/stations", station(n))
	}
	first := a.call(t, http.StatusOK, "GET", "/stations", nil)
	require.Equal(t, []any{250.0, 200.0, 0.0}, []any{first["total"], first["limit"], first["skip"]})
	require.Len(t, first["data"], 200)
	rest := a.call(t, http.StatusOK, "GET", "/stations?$limit=5000&$skip=200", nil)
	require.Equal(t, []any{2000.0, 200.0}, []any{rest["limit"], rest["skip"]})
	require.Len(t, rest["data"], 50)
	require.Equal(t, id(200), rest["data"].([]any)[0].(document)["_id"])
}

func TestTermsAreOfVocabularies(t *testing.T) {
	t.Parallel()
	a := start(t)
	vocabulary := func(label string, terms ...string) document {
		listed := []any{}
		for _, term := range terms {
			listed = append(listed, document{"label": term})
		}
		return document{"_id": "ds-" + label, "scheme_id": "ds", "label": label, "terms": listed}
	}
	medium := a.call(t, http.StatusCreated, "POST", "/vocabularies", vocabulary("Medium", "Air", "Soil"))
	require.Equal(t, "class", medium["vocabulary_type"])
	unit := a.call(t, http.StatusCreated, "POST", "/vocabularies", vocabulary("Unit", "Meter"))
	require.Equal(t, "unit", unit["vocabulary_type"])

	made := a.call(t, http.StatusCreated, "POST", "/datastreams", document{
		"_id": id(1), "name": "x", "terms": document{"ds": document{"Medium": "Air", "Unit": "Meter"}}, "terms_info": document{"x": 1},
	})
	require.Equal(t, document{
		"class_keys": []any{"ds__Medium_Air"}, "class_tags": []any{"ds_Medium_Air"}, "unit_tag": "ds_Unit_Meter",
	}, made["terms_info"])
	patched := a.call(t, http.StatusOK, "PATCH", "/datastreams/"+id(1), document{"$set": document{"terms": document{"ds": document{"Medium": "Soil"}}}})
	require.Equal(t, []any{"ds_Medium_Soil"}, patched["terms_info"].(document)["class_tags"])
	for want, terms := range map[string]document{
		"No vocabulary found for 'ds.Variable'.":        {"ds": document{"Variable": "Temperature"}},
		"No vocabulary term found for 'ds.Medium.Ice'.": {"ds": document{"Medium": "Ice"}},
	} {
		failed := a.call(t, http.StatusBadRequest, "PATCH", "/datastreams/"+id(1), document{"$set": document{"terms": terms}})
		require.Equal(t, want, failed["message"])
	}
}
