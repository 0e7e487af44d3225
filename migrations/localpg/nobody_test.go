//go:build unix

package localpg

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestAsNobody runs the tests of what depends on the user again as an ordinary one, if this is root.
func TestAsNobody(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("already an ordinary user")
		return
	}
	as, err := chooseNobody()
	if err != nil {
		t.Fatal(err)
	}
	dir := workDir(t)
	bin, tmp := filepath.Join(dir, "test"), filepath.Join(dir, "t")
	// The binary lies in a folder that is closed to others. Another process copies it: while this one
	// had it open for writing, a child started by another test could have it open too ("text file busy").
	if out, err := exec.Command("cp", os.Args[0], bin).CombinedOutput(); err != nil {
		t.Fatalf("copy the test: %v: %s", err, out)
	}
	if err := errors.Join(os.Chmod(bin, 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, as.uid, as.gid)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-test.v", "-test.parallel=2", "-test.run=^Test(Start|Stale|Paths|Crash|Use)$/(makes|stale|program|too_long|without)")
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as user %s: %v\n%s", as.name, err, out)
	}
	if got, want := bytes.Count(out, []byte("--- PASS: ")), 11; got != want { // five tests with six stories
		t.Errorf("as user %s %d tests passed, want %d:\n%s", as.name, got, want, out)
	}
}

func chooseNobody() (account, error) {
	a, err := lookupAccount("nobody")
	if err != nil {
		return account{}, fmt.Errorf("these tests need the user nobody: %w", err)
	}
	return a, nil
}
