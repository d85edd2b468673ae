package auth

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/dendrascience/dendra-jobs/verbs"
)

// entry is a token or a certificate of the file.
type entry struct {
	Role    verbs.Role `toml:"role"`
	SHA256  string     `toml:"sha256"`
	Expires time.Time  `toml:"expires"`
}

// credentials are what the file has.
type credentials struct {
	// Tokens are by the name of their holder.
	Tokens map[string]entry `toml:"tokens"`
	// Certificates are by their common name.
	Certificates map[string]entry `toml:"certificates"`

	byHash map[string]Caller
	expiry map[string]time.Time
}

var hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// readCredentials reads and checks the text of a file. It lists all problems.
func readCredentials(text []byte) (*credentials, error) {
	c := &credentials{byHash: map[string]Caller{}, expiry: map[string]time.Time{}}
	decoder := toml.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(c); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			return nil, fmt.Errorf("unknown keys: %s", strings.TrimSpace(strict.String()))
		}
		return nil, err
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(c.Tokens)) {
		token := c.Tokens[name]
		other, taken := c.byHash[token.SHA256]
		switch err := CheckName(name); {
		case err != nil:
			problems = append(problems, err)
		case token.Role == verbs.RoleNone:
			problems = append(problems, fmt.Errorf("token %s has no role", name))
		case !hashPattern.MatchString(token.SHA256):
			problems = append(problems, fmt.Errorf("the sha256 of token %s is not 64 hexadecimal digits in lower case", name))
		case taken:
			problems = append(problems, fmt.Errorf("tokens %s and %s are the same token", other.Name, name))
		default:
			c.byHash[token.SHA256], c.expiry[token.SHA256] = Caller{Name: name, Role: token.Role, KnownBy: ByToken}, token.Expires
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Certificates)) {
		if certificate := c.Certificates[name]; certificate.Role == verbs.RoleNone || certificate.SHA256 != "" {
			problems = append(problems, fmt.Errorf("certificate %s needs a role, and has no sha256", name))
		}
	}
	return c, errors.Join(problems...)
}

// File is the file of tokens and certificates. It is read again when it changes.
type File struct {
	path   string
	logger *slog.Logger

	mu   sync.Mutex
	info fs.FileInfo
	now  *credentials
	bad  bool // The file cannot be used, or is gone.
}

// OpenFile reads a file. One that everybody can write is refused.
func OpenFile(path string, logger *slog.Logger) (*File, error) {
	f := &File{path: path, logger: logger}
	info, err := os.Stat(path)
	if err == nil {
		f.now, err = load(path, info)
	}
	if err != nil {
		return nil, fmt.Errorf("the file of credentials cannot be used: %w", err)
	}
	f.info = info
	return f, nil
}

func load(path string, info fs.FileInfo) (*credentials, error) {
	if info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("everybody can write %s: chmod o-w", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := readCredentials(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// current is what the file has now. A look at its time and size costs microseconds, so each
// request takes one, and a token is revoked at once. A file that cannot be used leaves what
// was read last in force, but one that is gone lets nobody in.
func (f *File) current() *credentials {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if f.info != nil {
			f.logger.Error("the file of credentials is gone: nobody is let in by it", "path", f.path)
		}
		f.info, f.now, f.bad = nil, &credentials{}, true
		return f.now
	case err != nil, f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()):
		return f.now
	}
	f.info = info // A file that cannot be used is told of once.
	next, err := load(f.path, info)
	if f.bad = err != nil; f.bad {
		f.logger.Error("the file of credentials cannot be used: what was read before stays in force", "error", err)
		return f.now
	}
	f.now = next
	f.logger.Info("the file of credentials was read again", "tokens", len(next.Tokens), "certificates", len(next.Certificates))
	return f.now
}

// usable reports whether what is in force is what the file has now.
func (f *File) usable() bool {
	f.current()
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.bad
}

// token finds the caller of a token. The time of a lookup tells nothing of use: who does
// not know a token cannot choose the digits of its hash.
func (f *File) token(token string) (Caller, error) {
	c, hash := f.current(), Hash(token)
	caller, ok := c.byHash[hash]
	switch expires := c.expiry[hash]; {
	case !ok:
		return Caller{}, errors.New("the token is not known")
	case !expires.IsZero() && !time.Now().Before(expires):
		return Caller{}, fmt.Errorf("the token of %s expired at %s", caller.Name, expires.UTC().Format(time.RFC3339))
	}
	return caller, nil
}

// certificate finds the caller of a client certificate that was verified.
func (f *File) certificate(commonName string) (Caller, error) {
	found, ok := f.current().Certificates[commonName]
	switch {
	case !ok:
		return Caller{}, fmt.Errorf("the certificate of %.100q has no role here", commonName)
	case !found.Expires.IsZero() && !time.Now().Before(found.Expires):
		return Caller{}, fmt.Errorf("the role of the certificate of %.100q expired at %s", commonName, found.Expires.UTC().Format(time.RFC3339))
	}
	return Caller{Name: commonName, Role: found.Role, KnownBy: ByCertificate}, nil
}

// AddLine adds the line of a token to a file, which is made if it is missing. It leaves a file
// alone that has a token of the name, and says so.
func AddLine(path, name, line string) (added bool, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	has, err := readCredentials(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if _, there := has.Tokens[name]; there {
		return false, nil
	}
	// Dotted keys belong to the table above them, so the line is the first one.
	whole := path + ".new"
	if err := os.WriteFile(whole, append([]byte(line+"\n"), text...), 0o600); err != nil {
		return false, err
	}
	return true, os.Rename(whole, path)
}
