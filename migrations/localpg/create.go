//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// superuser owns the cluster and the database.
const superuser = "mybots"

// cleanEnv is all that the server's programs see of the environment. A locale in it that is not
// installed would stop initdb, and PG variables would change what the server does.
func cleanEnv(home string) []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "LC_ALL=C.UTF-8", "TZ=UTC"}
}

// create makes the cluster beside its place and moves it there when it is whole, so that dying
// halfway leaves nothing that looks like one. The lock must be held.
func (p place) create(ctx context.Context, cfg Config) error {
	making := filepath.Join(p.home, "pgdata.init")
	if err := os.RemoveAll(making); err != nil { // never used by anyone: it has another name then
		return fmt.Errorf("remove the rest of a former attempt: %w", err)
	}
	if err := os.Mkdir(making, 0o700); err != nil {
		return fmt.Errorf("make the cluster's folder: %w", err)
	}
	if err := p.as.give(making); err != nil {
		return fmt.Errorf("hand the cluster's folder to user %s: %w", p.as.name, err)
	}
	// The locale is C.UTF-8 whatever the machine's is: with C, lower() and ILIKE know ASCII only.
	args := []string{
		"--pgdata=" + making, "--username=" + superuser, "--auth-local=trust", "--auth-host=reject",
		"--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums",
	}
	if cfg.Params["fsync"] == "off" {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin.dir, "initdb"), args...)
	cmd.Dir, cmd.Env = making, cleanEnv(p.home)
	cmd.SysProcAttr = childAttr(p.as, syscall.SIGKILL)
	out := &output{log: cfg.Log, program: "initdb"}
	cmd.Stdout, cmd.Stderr = out, out
	if err := runLocked(cmd); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", making, err, out.tail())
	}
	if err := os.Rename(making, p.pgdata()); err != nil {
		return fmt.Errorf("put the new cluster in its place: %w", err)
	}
	return syncDir(p.home)
}

// runLocked runs cmd on a thread of its own: the signal that is to follow our death follows the
// thread's.
func runLocked(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { // ends with cmd
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- cmd.Run()
	}()
	return <-done
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// own hands a cluster that belongs to root (restored by root, say) to the server's user, and sets the
// mode that PostgreSQL insists on.
func (p place) own() error {
	st, err := os.Stat(p.pgdata())
	if err != nil {
		return fmt.Errorf("look at the cluster: %w", err)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && p.as.change && sys.Uid == 0 {
		err := filepath.WalkDir(p.pgdata(), func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return p.as.give(path)
		})
		if err != nil {
			return fmt.Errorf("hand the cluster to user %s: %w", p.as.name, err)
		}
	}
	if st.Mode().Perm()&0o027 != 0 {
		if err := os.Chmod(p.pgdata(), 0o700); err != nil {
			return fmt.Errorf("close the cluster to other users: %w", err)
		}
	}
	return nil
}

// arguments are the server's settings. What an operator may want to change (memory, connections) is
// left to postgresql.conf, where initdb writes its defaults: 128 MB, 100 connections, fsync on.
func (p place) arguments(cfg Config, socketDir string) []string {
	set := []string{
		"listen_addresses=", "port=5432", "unix_socket_directories=" + quoteDir(socketDir),
		"logging_collector=off", "log_destination=stderr", "log_line_prefix=", "log_timezone=UTC", "timezone=UTC",
		"lc_messages=C",
		// Errors of statements go to the program that sent them, not into a log with their values.
		"log_min_messages=log", "log_min_error_statement=panic", "log_statement=none",
	}
	for k, v := range cfg.Params {
		set = append(set, k+"="+v)
	}
	args := []string{"-D", p.pgdata()}
	for _, s := range set {
		args = append(args, "-c", s)
	}
	return args
}

// quoteDir writes a path for a setting that is a list.
func quoteDir(dir string) string { return `"` + strings.ReplaceAll(dir, `"`, `""`) + `"` }
