package secrets_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/secrets"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// TestWhereASecretMayGo: what stands before a secret decides.
func TestWhereASecretMayGo(t *testing.T) {
	t.Parallel()
	nobody, demo, other := job.Owner{}, job.Owner{Organization: "demo"}, job.Owner{Organization: "other"}
	for name, test := range map[string]struct {
		text, destination string
		owner             job.Owner
		refused           string // "" if it goes there
	}{
		"nothing before it, loopback":  {"x", "http://127.0.0.1:8090/v1", nobody, ""},
		"by its name":                  {"x", "http://localhost:8090", nobody, ""},
		"IPv6":                         {"x", "http://[::1]:8090", nobody, ""},
		"nothing before it, elsewhere": {"x", "https://api.example.org/v1", nobody, `may not go to api.example.org: a line "hosts: api.example.org" before it would allow that`},
		"nothing before it, an owner":  {"x", "http://127.0.0.1:8090", demo, `is not for jobs of organization:demo: a line "owners: organization:demo" before it would allow them`},
		"its host":                     {"hosts: api.example.org\n\nx", "https://api.example.org/v1", nobody, ""},
		"capitals and a dot":           {"hosts: API.example.org\n\nx", "https://api.Example.org./v1", nobody, ""},
		"second host, its port":        {"hosts: a.example.org, b.example.org:443\n\nx", "https://b.example.org", nobody, ""},
		"another port":                 {"hosts: b.example.org:8443\n\nx", "https://b.example.org", nobody, "may not go to b.example.org"},
		"another host":                 {"hosts: api.example.org\n\nx", "https://api.example.org.evil.example", nobody, "may not go to api.example.org.evil.example"},
		"a host as user":               {"hosts: api.example.org\n\nx", "https://api.example.org@evil.example/", nobody, "may not go to evil.example"},
		"a host as fragment":           {"hosts: api.example.org\n\nx", "https://evil.example#@api.example.org", nobody, "may not go to evil.example"},
		"with hosts, loopback":         {"hosts: api.example.org\n\nx", "http://127.0.0.1:1", nobody, "may not go to 127.0.0.1:1"},
		"without TLS":                  {"hosts: api.example.org\n\nx", "http://api.example.org", nobody, "may not go to api.example.org without TLS"},
		"private, not allowed so":      {"hosts: 10.0.0.7\n\nx", "http://10.0.0.7:8086", nobody, "may not go to 10.0.0.7:8086 without TLS: in the line of hosts before it, http://10.0.0.7:8086 would allow that"},
		"private and allowed":          {"hosts: http://10.0.0.7:8086\n\nx", "http://10.0.0.7:8086", nobody, ""},
		"allowed, not private":         {"hosts: http://192.0.2.1\n\nx", "http://192.0.2.1", nobody, "without TLS, since that has addresses which are not private"},
		"another scheme":               {"hosts: api.example.org\n\nx", "ftp://api.example.org", nobody, "without TLS"},
		"no scheme":                    {"hosts: api.example.org\n\nx", "api.example.org:443", nobody, "its destination is not a URL with a host"},
		"nowhere":                      {"x", "", nobody, "its destination is not a URL with a host"},
		"mail":                         {"hosts: mail.example.org\n\nx", "smtp://mail.example.org", nobody, ""},
		"its owner":                    {"owners: organization:demo\n\nx", "http://127.0.0.1", demo, ""},
		"one of its owners":            {"hosts: h.example.org\r\nowners: user:ann, organization:other\r\n\r\nx\r\n", "https://h.example.org", other, ""},
		"another owner":                {"owners: organization:demo\n\nx", "http://127.0.0.1", other, "is not for jobs of organization:other"},
		"a user of that name":          {"owners: organization:demo\n\nx", "http://127.0.0.1", job.Owner{User: "demo"}, "is not for jobs of user:demo"},
		"an owner, a job without":      {"owners: organization:demo\n\nx", "http://127.0.0.1", nobody, `is not for jobs without an owner: a line "owners: *" before it would allow them`},
		"all owners":                   {"owners: *\n\nx", "http://127.0.0.1", other, ""},
		"all owners and none":          {"owners: *\n\nx", "http://127.0.0.1", nobody, ""},
		"a URL that is called":         {"https://hc.example.org/x", secrets.Itself, nobody, ""},
		"a URL without TLS":            {"http://hc.example.org/x", secrets.Itself, nobody, "without TLS"},
		"a URL with another host":      {"hosts: hc.example.org\n\nhttps://evil.example/x", secrets.Itself, nobody, "may not go to evil.example"},
		"no URL":                       {"x", secrets.Itself, nobody, "is not a URL"},
		"a value with a colon":         {"user:x", "https://127.0.0.1", nobody, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, err := variable("DENDRA_SECRET_A", test.text).Resolve("secret://a", test.destination, test.owner)
			if test.refused == "" {
				require.NoError(t, err)
				require.NotContains(t, value, "\n")
				return
			}
			require.ErrorContains(t, err, test.refused)
			require.Empty(t, value)
			f := said(err)
			require.True(t, f.Final)
		})
	}
}

// TestHeadersThatAreWrong: none is taken for a part of the value, which it never tells.
func TestHeadersThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"hosts: a.example.org\nhunter2":                    "an empty line has to be between",
		"host: a.example.org\n\nhunter2":                   "lines of hosts and of owners alone",
		"hosts: a\nhosts: b\n\nhunter2":                    "one line of hosts",
		"hosts: a\nhunter2\n\nx":                           "one line of hosts",
		"hosts: *\n\nhunter2":                              "hosts: \"*\" is not HOST",
		"hosts: *.example.org\n\nhunter2":                  "hosts: \"*.example.org\" is not HOST",
		"hosts: https://a.example.org\n\nhunter2":          "is not HOST",
		"hosts: u@a.example.org\n\nhunter2":                "is not HOST",
		"hosts: a.example.org/v1\n\nhunter2":               "is not HOST",
		"hosts:\n\nhunter2":                                "hosts: \"\" is not HOST",
		"owners: demo\n\nhunter2":                          "owners: \"demo\" is not an owner: write organization:NAME or user:NAME, or a star for all",
		"owners: *\n\n":                                    "is empty",
		"owners: organization:\n\nhunter2":                 "is not an owner",
		"hosts: a.example.org\nowners: *, user\n\nhunter2": "is not an owner",
	} {
		_, err := variable("DENDRA_SECRET_A", text).Resolve("secret://a", "https://a.example.org", job.Owner{})
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "hunter2", text)
		require.Equal(t, errclass.Secret, said(err).Class, text)
	}
}

// TestNamesThatDifferInPunctuation do not meet, and files come before variables.
func TestNamesThatDifferInPunctuation(t *testing.T) {
	t.Parallel()
	get := func(r secrets.Resolver, ref job.SecretRef) string {
		value, err := r.Resolve(ref, "http://127.0.0.1", job.Owner{})
		if err != nil {
			return said(err).Class
		}
		return value
	}
	r := variable("DENDRA_SECRET_A_B", "dash")
	require.Equal(t, "dash", get(r, "secret://a-b"))
	require.Equal(t, errclass.Secret, get(r, "secret://a.b"))
	require.Equal(t, errclass.Secret, get(r, "secret://a_b"))

	folder := t.TempDir()
	for name, value := range map[string]string{"a-b": "file dash", "a.b": "file dot", "a_b": "file line", "empty": "\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(value), 0o600))
	}
	r = secrets.New(func(name string) string {
		return map[string]string{folderVariable: folder, "DENDRA_SECRET_A_B": "dash", "DENDRA_SECRET_EMPTY": "x", "DENDRA_SECRET_OTHER": "variable"}[name]
	})
	require.Equal(t, "file dash", get(r, "secret://a-b"))
	require.Equal(t, "file dot", get(r, "secret://a.b"))
	require.Equal(t, "file line", get(r, "secret://a_b"))
	require.Equal(t, "variable", get(r, "secret://other"))
	_, err := r.Resolve("secret://empty", "http://127.0.0.1", job.Owner{})
	require.EqualError(t, err, "secret secret://empty, in the file "+filepath.Join(folder, "empty")+", is empty")
}

func variable(name, text string) secrets.Resolver {
	return secrets.New(func(asked string) string { return map[string]string{name: text}[asked] })
}
