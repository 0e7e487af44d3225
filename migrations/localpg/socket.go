//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// maxSocketDir is how long the path of the socket's folder may be: the kernel takes 107 bytes.
const maxSocketDir = 107 - len("/.s.PGSQL.5432")

// socketDir is where the server of home has its socket: home/run, or a short path if that is too
// long for the kernel or has a comma, which the driver takes for a list.
func (p place) socketDir() (string, error) {
	short := "mybots-" + strconv.Itoa(p.as.uid) + "-" + shortHash(p.home)
	tries := []string{filepath.Join(p.home, "run"), filepath.Join(os.TempDir(), short), filepath.Join("/tmp", short)}
	if p.as.change {
		tries = []string{tries[0], tries[2]} // the TMPDIR of root may be closed to others
	}
	for _, d := range tries {
		if len(d) <= maxSocketDir && !strings.Contains(d, ",") {
			return d, nil
		}
	}
	return "", fmt.Errorf("no path for the socket is short enough (%d bytes): %s", maxSocketDir, strings.Join(tries, ", "))
}

// makeSocketDir makes the folder, open to the server's user alone, and refuses one that somebody
// else put there.
func (p place) makeSocketDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = p.as.give(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the socket's folder: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the socket's folder: %w", err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || !ok || int(sys.Uid) != p.as.uid {
		return fmt.Errorf("%s should be a folder of user %s with mode 0700; remove it", dir, p.as.name)
	}
	return nil
}
