package temporal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/config"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/schema/sqlite"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	databaseFile   = "temporal.db"
	visibilityFile = "visibility.db"
	// versionFile holds the release that wrote the database. The server applies
	// its schema to a new file only and migrates none.
	versionFile = "server-version"
	// unfinishedFile exists while a new database is being set up.
	unfinishedFile = "setup-unfinished"
)

// prepareStore makes the database with its schema and the namespace, or checks
// that this release may use the one that is there.
func prepareStore(ctx context.Context, o Options, cfg *config.Config) error {
	p := &cfg.Persistence
	main, visibility := p.DataStores[p.DefaultStore].SQL, p.DataStores[p.VisibilityStore].SQL
	created, err := checkStore(o.Folder, main.DatabaseName, visibility.DatabaseName)
	if err != nil {
		return err
	}
	if created {
		for _, file := range []*config.SQL{main, visibility} {
			if err := sqlite.SetupSchema(file); err != nil {
				return fmt.Errorf("schema of %s: %w", file.DatabaseName, err)
			}
		}
		if err := dropIndexes(ctx, visibility.DatabaseName); err != nil {
			return fmt.Errorf("indexes of %s: %w", visibility.DatabaseName, err)
		}
	} else if _, err := os.Stat(visibility.DatabaseName); errors.Is(err, fs.ErrNotExist) {
		// Of before there were two files: the lists are in the one.
		p.VisibilityStore = p.DefaultStore
		delete(p.DataStores, visibilityStore)
	}
	// A namespace that exists is left alone here; register brings it up to date.
	ns, err := sqlite.NewNamespaceConfig(clusterName, o.Namespace, false, searchAttributes())
	if err != nil {
		return fmt.Errorf("namespace %s: %w", o.Namespace, err)
	}
	ns.Detail.Config.Retention = durationpb.New(retention)
	ns.Detail.Config.CustomSearchAttributeAliases = attributeColumns()
	if err := sqlite.CreateNamespaces(main, ns); err != nil {
		return err
	}
	if created {
		return markReady(o.Folder)
	}
	return nil
}

// checkStore reports whether the files have to be set up, of which the first is
// the one that was always there.
func checkStore(folder string, files ...string) (bool, error) {
	unfinished := filepath.Join(folder, unfinishedFile)
	if _, err := os.Stat(unfinished); err == nil {
		// The process died before the first workflow could exist.
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			for _, file := range files {
				if err := os.Remove(file + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return false, err
				}
			}
		}
		return true, nil
	}
	_, err := os.Stat(files[0])
	if errors.Is(err, fs.ErrNotExist) {
		return true, os.WriteFile(unfinished, nil, 0o600)
	}
	if err != nil {
		return false, err
	}
	return false, checkVersion(folder)
}

func checkVersion(folder string) error {
	written, err := os.ReadFile(filepath.Join(folder, versionFile))
	version := strings.TrimSpace(string(written))
	if errors.Is(err, fs.ErrNotExist) {
		version = "an unknown release"
	} else if err != nil {
		return err
	}
	if version != Version {
		return fmt.Errorf("%s was written by Temporal server %s and this is %s, which cannot take it over: "+
			"use the devstack that wrote it, or move the folder away to begin with an empty Temporal (the other servers keep their data)",
			folder, version, Version)
	}
	return nil
}

func markReady(folder string) error {
	if err := os.WriteFile(filepath.Join(folder, versionFile), []byte(Version+"\n"), 0o600); err != nil {
		return err
	}
	return os.Remove(filepath.Join(folder, unfinishedFile))
}

// attributeNames are the search attributes that jobs and their runs carry, all of
// them keywords.
var attributeNames = []string{"JobId", "JobType", "JobMode", "JobQueue", "JobProvider", "JobOwner", "JobDefinitionHash", notListed}

// notListed is one by which nobody lists.
const notListed = "JobPauseEnd"

func searchAttributes() map[string]enumspb.IndexedValueType {
	attributes := make(map[string]enumspb.IndexedValueType)
	for _, name := range attributeNames {
		attributes[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return attributes
}

// attributeColumns names the search attribute of each column: the server itself
// takes any of its ten, of which only these have an index, but for notListed.
func attributeColumns() map[string]string {
	columns := make(map[string]string)
	for i, name := range attributeNames {
		columns[fmt.Sprintf("Keyword%02d", i+1)] = name
	}
	return columns
}

// indexes are those of the lists that the Web UI, the starter and the server ask
// for, beside the ones of attributeColumns.
var indexes = []string{
	"default_idx", "by_workflow_id", "by_workflow_type", "by_status",
	"by_temporal_scheduled_by_id", "by_temporal_namespace_division",
}

// dropIndexes drops the other indexes of the server's schema, 45 of 58: each of
// them costs every run a write and its pages. Lists by their columns read all runs.
func dropIndexes(ctx context.Context, file string) error {
	keep := slices.Clone(indexes)
	for i := range attributeNames {
		if attributeNames[i] == notListed {
			continue
		}
		keep = append(keep, fmt.Sprintf("by_keyword_%02d", i+1))
	}
	db, err := sql.Open(sqliteplugin.PluginName, file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var drops string
	err = db.QueryRowContext(ctx, `SELECT GROUP_CONCAT('DROP INDEX ' || name, ';') FROM sqlite_master
		WHERE type = 'index' AND tbl_name = 'executions_visibility' AND sql IS NOT NULL
		AND name NOT IN ('`+strings.Join(keep, "', '")+`')`).Scan(&drops)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, drops)
	return err
}
