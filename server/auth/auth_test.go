package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// TestTable fails when a method with side effects has no row, and when a row has no method.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := map[string]*verbs.Verb{}
	for _, v := range verbs.All() {
		require.NotContains(t, rows, v.Procedure)
		rows[v.Procedure] = v
	}
	require.Greater(t, len(auth.Specs()), 50)
	for _, spec := range auth.Specs() {
		_, found := rows[spec.Procedure]
		delete(rows, spec.Procedure)
		if spec.IdempotencyLevel == connect.IdempotencyNoSideEffects {
			require.False(t, found, "%s only reads: it needs no row", spec.Procedure)
			require.Equal(t, verbs.RoleViewer, auth.Least(spec))
			continue
		}
		require.True(t, found, "%s has no row in package verbs", spec.Procedure)
		require.Greater(t, auth.Least(spec), verbs.RoleViewer, spec.Procedure)
	}
	require.Empty(t, rows, "there are no such methods")
	unknown := connect.Spec{Schema: auth.Specs()[0].Schema, Procedure: "/dendra.jobs.v1.JobService/NewMethod"}
	require.Equal(t, verbs.RoleAdmin, auth.Least(unknown))
}

// TestDefinitionsNeedAnAdmin holds every field of every request against every role: who may
// not declare a job may not bring a definition in a request for something else.
func TestDefinitionsNeedAnAdmin(t *testing.T) {
	t.Parallel()
	var declaring []string
	for _, spec := range auth.Specs() {
		method, ok := spec.Schema.(protoreflect.MethodDescriptor)
		require.True(t, ok)
		kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
		require.NoError(t, err)
		for i := range method.Input().Fields().Len() {
			field := method.Input().Fields().Get(i)
			request := kind.New()
			set(request, field)
			need := auth.Least(spec)
			if spec.IdempotencyLevel != connect.IdempotencyNoSideEffects && mayDeclare(field, nil) {
				declaring = append(declaring, string(method.Name())+"."+string(field.Name()))
				need = verbs.RoleAdmin
			}
			for role := verbs.RoleNone; role <= verbs.RoleAdmin; role++ {
				require.Equal(t, role < need, role < auth.LeastFor(spec, request.Interface()), "%s.%s as %s", spec.Procedure, field.Name(), role)
			}
		}
	}
	require.ElementsMatch(t, []string{"ApplyJobSet.job_set", "CreateJob.job", "EnqueueJobs.jobs", "RunJob.job", "UpdateJob.job"}, declaring)
}

// mayDeclare reports whether a definition of a job, or a spec, has a place in a field.
func mayDeclare(field protoreflect.FieldDescriptor, seen []protoreflect.FullName) bool {
	m := field.Message()
	if m == nil || slices.Contains(seen, m.FullName()) {
		return false
	}
	if m.FullName() == "dendra.jobs.v1.Job" || m.FullName() == "google.protobuf.Struct" {
		return true
	}
	for i := range m.Fields().Len() {
		if mayDeclare(m.Fields().Get(i), append(seen, m.FullName())) {
			return true
		}
	}
	return false
}

// set sets a field to the least that may stand in it: a message has its own messages.
func set(m protoreflect.Message, field protoreflect.FieldDescriptor) {
	fill := func(inner protoreflect.Message) {
		for i := range inner.Descriptor().Fields().Len() {
			if each := inner.Descriptor().Fields().Get(i); each.Message() != nil && mayDeclare(each, nil) && inner.Descriptor().ParentFile() == m.Descriptor().ParentFile() {
				set(inner, each)
			}
		}
	}
	switch {
	case field.IsMap():
	case field.IsList() && field.Message() != nil:
		fill(m.Mutable(field).List().AppendMutable().Message())
	case field.IsList():
		m.Mutable(field).List().Append(m.NewField(field).List().NewElement())
	case field.Message() != nil:
		fill(m.Mutable(field).Message())
	default:
		m.Set(field, m.NewField(field))
	}
}

// write writes a file of credentials, with a time of its own.
func write(t *testing.T, path string, lines ...string) {
	t.Helper()
	next := path + ".next"
	require.NoError(t, os.WriteFile(next, []byte(strings.Join(lines, "\n")), 0o600))
	require.NoError(t, os.Rename(next, path))
}

func bearer(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func open(t *testing.T, lines ...string) (*auth.Authenticator, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials.toml")
	write(t, path, lines...)
	file, err := auth.OpenFile(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return auth.New(auth.Config{File: file, Logger: slog.New(slog.DiscardHandler)}), path
}

func TestTokens(t *testing.T) {
	t.Parallel()
	token, other := auth.NewToken(), auth.NewToken()
	require.NotEqual(t, token, other)
	require.Len(t, token, len("dendra_jobs_")+43)
	line := auth.Line("a b", verbs.RoleOperator, auth.Hash(token), time.Now().Add(time.Hour))
	require.NotContains(t, line, token)
	a, path := open(t, line, auth.Line("late", verbs.RoleAdmin, auth.Hash(other), time.Now().Add(-time.Second)))

	caller, failed := a.Authenticate(bearer(token))
	require.Nil(t, failed)
	require.Equal(t, auth.Caller{Name: "a b", Role: verbs.RoleOperator, KnownBy: auth.ByToken, Address: "192.0.2.1"}, caller)
	for want, r := range map[string]*http.Request{
		"the token of late expired at":   bearer(other),
		"the token is not known":         bearer(auth.NewToken()),
		"not of the form":                {Header: http.Header{"Authorization": {"Basic eDp5"}}},
		"the request has no credentials": {Header: http.Header{}},
	} {
		_, failed := a.Authenticate(r)
		require.Equal(t, connect.CodeUnauthenticated, failed.Code())
		require.Contains(t, failed.Message(), want)
	}
	twice := bearer(token)
	twice.Header.Add("Authorization", "Bearer "+other)
	_, failed = a.Authenticate(twice)
	require.NotNil(t, failed)

	// Another role, a file that cannot be used, no line any more, no file any more.
	write(t, path, auth.Line("a b", verbs.RoleViewer, auth.Hash(token), time.Time{}))
	caller, failed = a.Authenticate(bearer(token))
	require.Nil(t, failed)
	require.Equal(t, verbs.RoleViewer, caller.Role)
	write(t, path, "tokens = 1 and more")
	caller, failed = a.Authenticate(bearer(token))
	require.Nil(t, failed)
	require.Equal(t, verbs.RoleViewer, caller.Role)
	write(t, path, "# nobody at all")
	_, failed = a.Authenticate(bearer(token))
	require.NotNil(t, failed)
	write(t, path, auth.Line("a b", verbs.RoleViewer, auth.Hash(token), time.Time{}))
	_, failed = a.Authenticate(bearer(token))
	require.Nil(t, failed)
	require.NoError(t, os.Remove(path))
	_, failed = a.Authenticate(bearer(token))
	require.NotNil(t, failed)
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	a, _ := open(t, `certificates."gateway 1" = { role = "operator" }`, `certificates.late = { role = "admin", expires = 2020-01-01T00:00:00Z }`)
	verified := func(commonName string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		leaf := &x509.Certificate{Subject: pkix.Name{CommonName: commonName}}
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}
		return r
	}
	caller, failed := a.Authenticate(verified("gateway 1"))
	require.Nil(t, failed)
	require.Equal(t, auth.Caller{Name: "gateway 1", Role: verbs.RoleOperator, KnownBy: auth.ByCertificate, Address: "192.0.2.1"}, caller)
	for _, name := range []string{"gateway 2", "late", ""} {
		_, failed = a.Authenticate(verified(name))
		require.NotNil(t, failed, name)
	}
	unverified := verified("gateway 1")
	unverified.TLS.VerifiedChains = nil
	_, failed = a.Authenticate(unverified)
	require.NotNil(t, failed)
	wrong := verified("gateway 1")
	wrong.Header.Set("Authorization", "Bearer "+auth.NewToken())
	_, failed = a.Authenticate(wrong)
	require.NotNil(t, failed, "a token that is wrong counts, whatever else there is")
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	hash := auth.Hash("x")
	for text, want := range map[string]string{
		`tokens.a = { role = "root", sha256 = "` + hash + `" }`: "is no role",
		`tokens.a = { sha256 = "` + hash + `" }`:                "token a has no role",
		`tokens.a = { role = "viewer", sha256 = "abc" }`:        "not 64 hexadecimal digits",
		`tokens.a = { role = "viewer", token = "abc" }`:         "unknown keys",
		"tokens.a = { role = \"viewer\", sha256 = \"" + hash + "\" }\ntokens.b = { role = \"admin\", sha256 = \"" + hash + "\" }": "are the same token",
		`certificates.a = { }`: "needs a role",
		`tokens."" = { role = "viewer", sha256 = "` + hash + `" }`: "is no name",
	} {
		path := filepath.Join(t.TempDir(), "c.toml")
		write(t, path, text)
		_, err := auth.OpenFile(path, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, want, text)
	}
	path := filepath.Join(t.TempDir(), "c.toml")
	write(t, path, "")
	require.NoError(t, os.Chmod(path, 0o666))
	_, err := auth.OpenFile(path, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "everybody can write")
	_, err = auth.OpenFile(path+".none", slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "no such file")
}

// operatorTexts are all texts that a request of an operator has a place for, and what they are.
// None is a spec, a bucket, a host, or the name of a secret: with those, who may only handle
// what is declared could have a worker send what it knows elsewhere.
var operatorTexts = map[string]string{
	"id": "a job or an integration config that is there", "job_id": "a job that is there", "name": "a run or a silence that is there",
	"queue": "a queue", "source": "a bookmark of a job", "skipped_by": "who skips a start", "reason": "for people", "organization": "whose teardown is planned",
	"location": "a load", "mirror": "a load", "flow": "a load",
	"QuarantineFilter.error_class": "which items", "QuarantineFilter.flow": "which items", "QuarantineFilter.location": "which items",
	"QuarantineFilter.organization": "which items", "QuarantineFilter.stage": "which items",
	"Silence.creator": "the server sets it", "Silence.name": "the server sets it", "Silence.object": "which alerts", "Silence.reason": "for people",
}

// TestTextsOfOperators holds every text of every request that changes something, and that needs
// no admin, against the list.
func TestTextsOfOperators(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, spec := range auth.Specs() {
		method, ok := spec.Schema.(protoreflect.MethodDescriptor)
		require.True(t, ok)
		if auth.Changes(spec) && auth.Least(spec) < verbs.RoleAdmin {
			for _, text := range textsOf(method.Input(), nil) {
				require.Contains(t, operatorTexts, text, "%s: what is it? An operator may send it", spec.Procedure)
				found[text] = true
			}
		}
	}
	require.Len(t, found, len(operatorTexts), "the list has more than there is")
}

// textsOf are the names of all texts of a message, MESSAGE.FIELD within it. What only an admin
// may send is left out.
func textsOf(m protoreflect.MessageDescriptor, seen []protoreflect.FullName) []string {
	var texts []string
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		if field.IsMap() {
			field = field.MapValue()
		}
		switch inner := field.Message(); {
		case inner != nil && !slices.Contains(seen, inner.FullName()) && inner.FullName() != "dendra.jobs.v1.Job":
			texts = append(texts, textsOf(inner, append(seen, m.FullName()))...)
		case field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.BytesKind:
			name := string(field.Name())
			if len(seen) > 0 {
				name = string(m.Name()) + "." + name
			}
			texts = append(texts, name)
		}
	}
	return texts
}
