//go:build unix

package localpg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// installation is a folder with initdb and postgres in it.
type installation struct {
	dir     string // real path
	version string // as postgres says it: 15.18
	major   string // as PG_VERSION has it: 15, or 9.6
}

const howToInstall = `install it, or set MYBOTS_DATABASE_URL to use a server of your own:
  Debian, Ubuntu  apt-get install postgresql
  Fedora, RHEL    dnf install postgresql-server
  Alpine          apk add postgresql
  Arch            pacman -S postgresql
  macOS           brew install postgresql@17`

// folderGlobs are the places where packages put the server's binaries.
var folderGlobs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// findBinaries returns the installation to use: that of the given major version if there is a
// cluster, else the first in the order of searching, where a folder that was asked for and the
// PATH come before the rest, and new versions before old. The error wraps ErrNoBinaries.
func findBinaries(ctx context.Context, binDir, major, cluster string) (installation, error) {
	found := installations(ctx, candidates(ctx, binDir))
	if len(found) == 0 {
		where := ""
		if binDir != "" {
			where = " in " + binDir
		}
		return installation{}, fmt.Errorf("%w%s: %s", ErrNoBinaries, where, howToInstall)
	}
	if major == "" {
		return found[0], nil
	}
	var have []string
	for _, in := range found {
		if in.major == major {
			return in, nil
		}
		have = append(have, in.major+" ("+in.dir+")")
	}
	return installation{}, fmt.Errorf("%w: the cluster in %s was made by PostgreSQL %s, but only %s is installed; nothing was changed: "+
		"install PostgreSQL %s, or move the data over with its pg_upgrade or pg_dump",
		ErrNoBinaries, cluster, major, strings.Join(have, ", "), major)
}

// candidates lists the folders to look into, best first.
func candidates(ctx context.Context, binDir string) []string {
	if binDir != "" {
		return []string{binDir}
	}
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	var globbed []string
	for _, g := range folderGlobs {
		if m, err := filepath.Glob(g); err == nil {
			globbed = append(globbed, m...)
		}
	}
	slices.SortStableFunc(globbed, func(a, b string) int { return numberIn(b) - numberIn(a) })
	return append(dirs, globbed...)
}

var digits = regexp.MustCompile(`[0-9]+`)

func numberIn(dir string) int {
	n, err := strconv.Atoi(digits.FindString(dir))
	if err != nil {
		return 0
	}
	return n
}

// installations keeps those folders that hold both programs, each once, with their versions.
func installations(ctx context.Context, dirs []string) []installation {
	var out []installation
	seen := map[string]bool{}
	for _, d := range dirs {
		real, err := filepath.EvalSymlinks(d)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		if !executable(filepath.Join(real, "initdb")) || !executable(filepath.Join(real, "postgres")) {
			continue
		}
		version, err := versionOf(ctx, filepath.Join(real, "postgres"))
		if err != nil {
			continue
		}
		out = append(out, installation{dir: real, version: version, major: majorOf(version)})
	}
	return out
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ([0-9][0-9A-Za-z.]*)`)

func versionOf(ctx context.Context, postgres string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, postgres, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", postgres, err)
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s tells no version: %q", postgres, out)
	}
	return string(m[1]), nil
}

// majorOf shortens 15.18 and 16beta1 to what PG_VERSION holds. Before version 10 that was two numbers.
func majorOf(version string) string {
	first := digits.FindString(version)
	if n, err := strconv.Atoi(first); err == nil && n < 10 {
		parts := strings.SplitN(version, ".", 3)
		if len(parts) >= 2 {
			return first + "." + digits.FindString(parts[1])
		}
	}
	return first
}
