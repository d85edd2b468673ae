package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// call runs a command where callers are, and gives what it wrote.
func (c *Cluster) call(ctx context.Context, path string, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	p, err := c.Caller(stack.Command{Path: path, Args: args, Env: c.Env(), Stdout: &out, Stderr: &said}).Start()
	if err != nil {
		return nil, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(path), args[0], ctx.Err(), strings.TrimSpace(said.String()))
	}
	if p.ExitCode() != 0 {
		return nil, fmt.Errorf("%s %s: %s: %s", filepath.Base(path), strings.Join(args, " "), p.State(), strings.TrimSpace(said.String()+out.String()))
	}
	return out.Bytes(), nil
}

// until repeats a call until it succeeds.
func until(ctx context.Context, do func() error) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// initialize makes the data folder of PostgreSQL.
func (c *Cluster) initialize() error {
	folder := c.path(PostgreSQL)
	if _, err := os.Stat(filepath.Join(folder, "PG_VERSION")); err == nil {
		return nil
	}
	if err := command("chown", "postgres:postgres", folder); err != nil {
		return err
	}
	if err := command("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", filepath.Join(postgres(), "initdb"),
		"--pgdata", folder, "--username=temporal", "--auth=trust", "--encoding=UTF8"); err != nil {
		return err
	}
	access, err := os.OpenFile(filepath.Join(folder, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer access.Close() //nolint:errcheck // The write tells.
	_, err = access.WriteString("host all all " + subnet + "0" + netmask + " trust\n")
	return err
}

// schema makes the databases of Temporal.
func (c *Cluster) schema(ctx context.Context) error {
	tool := filepath.Join(c.Servers, "temporal-sql-tool")
	for database, store := range map[string]string{"temporal": "temporal", "temporal_visibility": "visibility"} {
		base := []string{"--plugin", "postgres12", "--ep", subnet + "10", "--port", "5432", "--user", "temporal", "--password", "temporal", "--db", database}
		if err := until(ctx, func() error {
			_, err := c.call(ctx, tool, append(base, "create-database")...)
			return err
		}); err != nil {
			return err
		}
		for _, step := range [][]string{{"setup-schema", "-v", "0.0"}, {"update-schema", "--schema-name", "postgresql/v12/" + store}} {
			if _, err := c.call(ctx, tool, append(base, step...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// setup makes what the product needs, and a token.
func (c *Cluster) setup(ctx context.Context) error {
	if err := until(ctx, func() error {
		_, err := c.call(ctx, c.Starter, "setup", "--timeout", "10s")
		return err
	}); err != nil {
		return err
	}
	out, err := c.call(ctx, c.Starter, "serve", "token", "new", "--name", "soak", "--role", "admin", "-o", "json")
	if err != nil {
		return err
	}
	var made struct{ Token, Line string }
	if err := json.Unmarshal(out, &made); err != nil {
		return err
	}
	c.token = made.Token
	return os.WriteFile(c.path("credentials.toml"), []byte(made.Line+"\n"), 0o600)
}

// served waits until both servers answer.
func (c *Cluster) served(ctx context.Context) error {
	for n := range 2 {
		if err := until(ctx, func() error {
			_, err := c.call(ctx, c.Starter, "health", c.Server(n)+"/readyz")
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
