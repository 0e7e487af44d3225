// These tests look at the product from outside: real processes of the built
// binary, a real PostgreSQL, real HTTP. They know the contract and the addresses,
// and of the inside only what a race must hold open.
package main_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mybots/browsertest"
	"mybots/handlers/reference/referencetest"
)

// envBinary names a binary to test instead of one that is built from here.
const envBinary = "MYBOTS_TEST_BINARY"

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// runTests builds the binary once, without cgo as it is shipped, and removes it
// at the end.
func runTests(m *testing.M) (int, error) {
	// Most of these tests wait for processes; more of them than cores may run.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := flag.Set("test.parallel", "6"); err != nil {
			return 1, err
		}
	}
	dir, err := os.MkdirTemp("", "mybots-e2e-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	defer removeSpare()
	defer browsertest.Close()
	binary = os.Getenv(envBinary)
	if binary == "" {
		binary = filepath.Join(dir, "mybots")
		build := exec.Command("go", "build", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("build the binary: %w\n%s", err, out)
		}
	}
	if contract, err = referencetest.New(); err != nil {
		return 1, err
	}
	code := m.Run()
	if code == 0 {
		err = covered()
	}
	return code, err
}

// eventually waits until so returns true, and fails the test when it doesn't
// within the time.
func eventually(t testing.TB, within time.Duration, what string, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// receive takes a value that another goroutine owes, and fails the test when it
// doesn't come within the time.
func receive[T any](t testing.TB, within time.Duration, what string, from <-chan T) T {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	select {
	case v := <-from:
		return v
	case <-deadline.C:
		t.Fatalf("not within %v: %s", within, what)
		panic("unreachable")
	}
}

// still fails the test when the other goroutine has answered already.
func still[T any](t testing.TB, what string, from <-chan T) {
	t.Helper()
	select {
	case v := <-from:
		t.Fatalf("%s should still be waiting, but ended: %+v", what, v)
	default:
	}
}
