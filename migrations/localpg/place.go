//go:build unix

package localpg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// fallbackBase holds the clusters of those data directories that the server's user cannot reach.
const fallbackBase = "/var/lib/mybots"

// place is where a cluster lives and who runs it.
type place struct {
	dir    string // the data directory as asked for, absolute
	home   string // dir, or the folder that stands in for it
	why    string // why home is not dir; empty if it is
	as     account
	bin    installation
	exists bool // a cluster is there
}

func (p place) pgdata() string { return filepath.Join(p.home, "pgdata") }

// account is the user that the server runs as.
type account struct {
	uid, gid int
	name     string
	change   bool // another one than ours: we are root
}

func (a account) credential() *syscall.Credential {
	if !a.change {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
}

// give hands path to the account, if that is not ours anyway.
func (a account) give(path string) error {
	if !a.change {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// homes returns the absolute data directory, and what stands in for it if it cannot be reached.
// The directory need not exist.
func (cfg Config) homes() (dir, fallback string, err error) {
	dir, err = filepath.Abs(cfg.Dir)
	if err != nil {
		return "", "", fmt.Errorf("data directory %s: %w", cfg.Dir, err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	base := cfg.fallback
	if base == "" {
		base = fallbackBase
	}
	return dir, filepath.Join(base, shortHash(dir)), nil
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

func hasCluster(home string) (bool, error) {
	_, err := os.Stat(filepath.Join(home, "pgdata", "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// locate decides where the cluster is or will be, who runs it, and with which binaries. It makes the
// folders, but no cluster.
func locate(ctx context.Context, cfg Config) (place, error) {
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711 // the server's user must pass through
	}
	if err := os.MkdirAll(cfg.Dir, mode); err != nil {
		return place{}, fmt.Errorf("make the data directory: %w", err)
	}
	dir, fallback, err := cfg.homes()
	if err != nil {
		return place{}, err
	}
	p := place{dir: dir, home: dir}
	if p.exists, err = hasCluster(dir); err != nil {
		return place{}, fmt.Errorf("look for a cluster (as another user than the one it belongs to?): %w", err)
	}
	root := os.Geteuid() == 0
	if root && !p.exists {
		if p.exists, err = hasCluster(fallback); err != nil {
			return place{}, fmt.Errorf("look for a cluster: %w", err)
		}
		if p.exists {
			p.home, p.why = fallback, "the cluster was made there"
		}
	}
	major := ""
	if p.exists {
		if major, err = clusterMajor(p.pgdata()); err != nil {
			return place{}, err
		}
	} else if err := notEmpty(p.pgdata()); err != nil {
		return place{}, err
	}
	p.bin, err = findBinaries(ctx, cfg.BinDir, major, p.pgdata())
	if ctx.Err() != nil { // the programs were not asked to the end
		return place{}, ctx.Err()
	}
	if err != nil {
		return place{}, err
	}
	if p.as, err = chooseAccount(p); err != nil || !root {
		return p, err
	}
	if err := p.canEnter(ctx, "/"); err != nil {
		return place{}, fmt.Errorf("user %s cannot run %s: %w", p.as.name, p.bin.dir, err)
	}
	return p.settle(ctx, fallback)
}

// settle checks that the server's user can reach home, and goes to the fallback with a new cluster
// if not.
func (p place) settle(ctx context.Context, fallback string) (place, error) {
	if p.home == p.dir {
		err := p.canEnter(ctx, p.dir)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return place{}, fmt.Errorf("try to enter %s as user %s: %w", p.dir, p.as.name, err)
		}
		if err != nil && p.exists {
			return place{}, fmt.Errorf("user %s, who owns the cluster in %s, cannot enter %s: %w", p.as.name, p.pgdata(), p.barrier(), err)
		}
		if err == nil {
			return p, nil
		}
		p.why = fmt.Sprintf("user %s cannot enter %s", p.as.name, p.barrier())
		p.home = fallback
	}
	if err := os.MkdirAll(p.home, 0o711); err != nil {
		return place{}, fmt.Errorf("make a folder for the cluster, since %s: %w", p.why, err)
	}
	if err := p.canEnter(ctx, p.home); err != nil {
		return place{}, fmt.Errorf("user %s can enter neither %s nor %s: %w", p.as.name, p.barrier(), p.home, err)
	}
	return p, nil
}

// canEnter tries, as the server's user, to run postgres inside dir: access lists, mounts and the like
// are looked at by the system itself.
func (p place) canEnter(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin.dir, "postgres"), "--version")
	cmd.Dir, cmd.Env = dir, cleanEnv(p.home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as.credential()}
	if err := cmd.Run(); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}

// barrier names the first folder on the way to dir whose mode keeps the server's user out.
func (p place) barrier() string {
	path := "/"
	for _, part := range strings.Split(p.dir, "/") {
		path = filepath.Join(path, part)
		st, err := os.Stat(path)
		if err != nil {
			break
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok {
			break
		}
		bit := os.FileMode(0o001)
		switch {
		case int(sys.Uid) == p.as.uid:
			bit = 0o100
		case int(sys.Gid) == p.as.gid:
			bit = 0o010
		}
		if st.Mode()&bit == 0 {
			return fmt.Sprintf("%s (mode %04o)", path, st.Mode().Perm())
		}
	}
	return p.dir
}

// chooseAccount: ourselves, or if we are root, the owner of the cluster, else postgres, else nobody.
func chooseAccount(p place) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{uid: uid, gid: os.Getegid(), name: strconv.Itoa(uid)}, nil
	}
	if p.exists {
		st, err := os.Stat(p.pgdata())
		if err != nil {
			return account{}, fmt.Errorf("see who owns the cluster: %w", err)
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Uid != 0 {
			return account{uid: int(sys.Uid), gid: int(sys.Gid), name: userName(int(sys.Uid)), change: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if a, err := lookupAccount(name); err == nil && a.uid != 0 {
			return a, nil
		}
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody to run it as: " +
		"start as another user, or set MYBOTS_DATABASE_URL")
}

// lookupAccount finds a user that we, as root, can become.
func lookupAccount(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return account{uid: uid, gid: gid, name: name, change: true}, errors.Join(err1, err2)
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

func clusterMajor(pgdata string) (string, error) {
	b, err := os.ReadFile(filepath.Join(pgdata, "PG_VERSION"))
	if err != nil {
		return "", fmt.Errorf("read the cluster's version: %w", err)
	}
	major := strings.TrimSpace(string(b))
	if major == "" {
		return "", fmt.Errorf("%s is empty: this is no whole cluster; nothing was changed", filepath.Join(pgdata, "PG_VERSION"))
	}
	return major, nil
}

// notEmpty returns an error if there are files where a new cluster would go.
func notEmpty(pgdata string) error {
	entries, err := os.ReadDir(pgdata)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for a cluster: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s has files in it but no PG_VERSION: this is no whole cluster; nothing was changed", pgdata)
	}
	return nil
}
