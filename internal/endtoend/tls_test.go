package endtoend_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// nkey is a key of NATS, with the public one.
type nkey struct {
	nkeys.KeyPair

	public string
}

func newNKey(t *testing.T, create func() (nkeys.KeyPair, error)) nkey {
	t.Helper()
	pair, err := create()
	require.NoError(t, err)
	public, err := pair.PublicKey()
	require.NoError(t, err)
	return nkey{pair, public}
}

func (k nkey) seed(t *testing.T) string {
	t.Helper()
	seed, err := k.Seed()
	require.NoError(t, err)
	return string(seed)
}

// sign makes a JWT about a subject, as NATS has them: signed by Ed25519, with what is of NATS
// under its own claim. https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt
func (k nkey) sign(t *testing.T, subject nkey, claims map[string]any) string {
	t.Helper()
	claims["version"] = 2
	encode := func(value any) string {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := encode(map[string]string{"typ": "JWT", "alg": "ed25519-nkey"}) + "." +
		encode(map[string]any{"iss": k.public, "sub": subject.public, "name": "test", "iat": 1, "jti": "test", "nats": claims})
	signature, err := k.Sign([]byte(text))
	require.NoError(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// withCreds is a NATS whose users come with creds files, and such a file.
func withCreds(t *testing.T) (config, creds string) {
	t.Helper()
	operator, account, system, user := newNKey(t, nkeys.CreateOperator), newNKey(t, nkeys.CreateAccount), newNKey(t, nkeys.CreateAccount), newNKey(t, nkeys.CreateUser)
	unlimited := func(names ...string) map[string]any {
		limits := map[string]any{}
		for _, name := range names {
			limits[name] = -1
		}
		return limits
	}
	limits := unlimited("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage", "streams", "consumer")
	limits["wildcards"] = true
	systemLimits := unlimited("subs", "data", "payload", "imports", "exports", "conn", "leaf")
	config = fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }\n",
		operator.sign(t, operator, map[string]any{"type": "operator"}), system.public,
		account.public, operator.sign(t, account, map[string]any{"type": "account", "limits": limits}),
		system.public, operator.sign(t, system, map[string]any{"type": "account", "limits": systemLimits}))
	claims := unlimited("subs", "data", "payload")
	claims["type"], claims["pub"], claims["sub"] = "user", map[string]any{}, map[string]any{}
	text := fmt.Sprintf("-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n",
		account.sign(t, user, claims), user.seed(t))
	return config, writeFile(t, "jobs.creds", text)
}

// TestNATSLogsInAsPeopleHaveIt: by a creds file, by an NKEY, and by a client's certificate,
// each over TLS with an authority of the test's own, and not without.
func TestNATSLogsInAsPeopleHaveIt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	ca := stacktest.NewAuthority(t)
	file, pair := ca.File(t), ca.Pair(t, "NATS")
	creds, credsFile := withCreds(t)
	user := newNKey(t, nkeys.CreateUser)
	client := ca.Pair(t, "jobs")
	for name, test := range map[string]struct {
		config, tls string
		env         []string
	}{
		"creds": {creds, "", []string{"DENDRA_NATS_CREDS=" + credsFile}},
		"NKEY": {"authorization: { users: [ { nkey: " + user.public + " } ] }\n", "",
			[]string{"DENDRA_NATS_NKEY=" + writeFile(t, "jobs.nk", user.seed(t)+"\n")}},
		"mTLS": {"", fmt.Sprintf(", ca_file: %q, verify: true", file), []string{"DENDRA_NATS_CERT=" + client, "DENDRA_NATS_KEY=" + client}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := writeFile(t, "nats.conf", test.config+fmt.Sprintf("tls: { cert_file: %[1]q, key_file: %[1]q%[2]s }\n", pair, test.tls))
			st := stacktest.StartOwn(t, "--only", "nats", "--nats-config", config)
			setup := func(env ...string) answer {
				return starter(t, append(st.Env(), env...), "setup", "--only", "nats")
			}
			a := setup(append(test.env, "DENDRA_NATS_CA="+file)...)
			require.Zero(t, a.code, "%s%s\n%s", a.stdout, a.stderr, st.Log())
			a = starter(t, append(append(st.Env(), test.env...), "DENDRA_NATS_CA="+file), "doctor", "--only", "nats")
			require.Zero(t, a.code, "%s%s", a.stdout, a.stderr)
			require.NotZero(t, setup("DENDRA_NATS_CA="+file).code, "nobody")
			require.NotZero(t, setup(test.env...).code, "an authority that is not known")
		})
	}
}

// TestTemporalOverTLS: Temporal takes a client's certificate, and has one of an authority of the
// test's own.
func TestTemporalOverTLS(t *testing.T) {
	t.Parallel()
	st, ca := stacktest.StartNamespace(t), stacktest.NewAuthority(t)
	address, client := ca.Tunnel(t, st.Temporal), ca.Pair(t, "jobs")
	authority := []string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca.File(t)}
	certificate := []string{"TEMPORAL_TLS_CLIENT_CERT_PATH=" + client, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + client}
	list := func(env ...string) answer {
		return starter(t, append(append(st.Env(), env...), "TEMPORAL_ADDRESS="+address), "queues", "list")
	}
	a := list(append(authority, certificate...)...)
	require.Zero(t, a.code, "%s%s", a.stdout, a.stderr)
	require.NotZero(t, list(authority...).code, "no certificate")
	a = list(certificate...)
	require.NotZero(t, a.code)
	require.Contains(t, a.stderr, "unknown authority")
}

// TestStoresOverTLS: the S3 store, with a file of credentials, InfluxDB and the Platform API take
// HTTPS by an authority that SSL_CERT_DIR adds, and not without.
func TestStoresOverTLS(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	st, ca := stacktest.StartOwn(t, "--only", "s3,influx,platform"), stacktest.NewAuthority(t)
	credentials := writeFile(t, "credentials", fmt.Sprintf("[jobs]\naws_access_key_id = %s\naws_secret_access_key = %s\n", st.S3.AccessKey, st.S3.SecretKey))
	jobs := writeFile(t, "jobs.toml", fmt.Sprintf("[jobs.live_load_influx_v1.here]\ncontinuous = { interval = \"PT1S\" }\nspec = { location = \"here\", influx_url = %q }\n",
		ca.Proxy(t, st.Influx)))
	look := func(env ...string) (code int, text string) {
		a := starter(t, append(append(st.Env(), "DENDRA_S3_ENDPOINT="+ca.Proxy(t, st.S3.Endpoint), "DENDRA_S3_ACCESS_KEY=", "DENDRA_S3_SECRET_KEY=",
			"DENDRA_S3_CREDENTIALS_FILE="+credentials, "DENDRA_S3_PROFILE=jobs",
			"DENDRA_PLATFORM_URL="+ca.Proxy(t, st.Platform.URL)), env...), "doctor", "--only", "s3,influx,platform", "-f", jobs)
		return a.code, a.stdout + a.stderr
	}
	_, text := look("SSL_CERT_DIR=" + filepath.Dir(ca.File(t)))
	require.NotContains(t, text, "wrong")
	require.Contains(t, text, "with conditional writes")
	require.Regexp(t, `ok +influx +here/default`, text)
	code, text := look()
	require.Equal(t, 2, code)
	require.GreaterOrEqual(t, strings.Count(text, "unknown authority"), 3, text)
}
