package examples

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"mybots/delivery/webhook"
)

// receivers are the commands that start the examples.
var receivers = map[string]func(t *testing.T) []string{
	"python": func(t *testing.T) []string { return []string{tool(t, "python3"), "python/webhook_bot.py"} },
	"node":   func(t *testing.T) []string { return []string{tool(t, "node"), "node/webhook_bot.mjs"} },
	"go": func(t *testing.T) []string {
		program := filepath.Join(t.TempDir(), "webhookbot")
		build := exec.Command(tool(t, "go"), "build", "-o", program, "./go/webhookbot")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		return []string{program}
	},
}

// TestReceivers starts each example and sends it what the product would send, and
// what others might.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for language, command := range receivers {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			certificate, key, pool := selfSigned(t)
			start := command(t)
			env := []string{
				"SMEET_WEBHOOK_SECRET=" + string(vectorSecret), "SMEET_WEBHOOK_HOST=127.0.0.1", "SMEET_WEBHOOK_PORT=0",
				"SMEET_WEBHOOK_PATH=/hook", "SMEET_WEBHOOK_STORE=" + filepath.Join(t.TempDir(), "store"),
				"SMEET_WEBHOOK_CERT=" + certificate, "SMEET_WEBHOOK_KEY=" + key,
			}
			client := &http.Client{
				Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
				Timeout:   20 * time.Second,
			}
			t.Cleanup(client.CloseIdleConnections)

			p := startProgram(t, env, start...)
			silent, err := net.Dial("tcp", p.address) // somebody who never begins TLS holds up nobody
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			// The edges of five minutes are a minute away, since the clock goes on.
			for _, c := range vectorCases(time.Now().Unix(), vectorBody, 60) {
				want := map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized}[c.Valid]
				if got := post(t, client, "https://"+p.address, c.Header, c.Body); got != want {
					t.Errorf("K-07 %s: got %d, want %d", c.Name, got, want)
				}
			}
			oversized := `{"text":"` + strings.Repeat("x", 512<<10) + `"}`
			if got := post(t, client, "https://"+p.address, signNow(oversized), oversized); got != http.StatusRequestEntityTooLarge {
				t.Errorf("an oversized body: got %d, want 413", got)
			}
			if got := post(t, client, "https://"+p.address, signNow("{}"), "{}"); got != http.StatusBadRequest {
				t.Errorf("a signed body that is no update: got %d, want 400", got)
			}
			p.waitFor(t, "handled")

			if err := p.cmd.Process.Kill(); err != nil { // no chance to tidy up
				t.Fatal(err)
			}
			<-p.ended
			client.CloseIdleConnections()
			p = startProgram(t, env, append(start, "--behind-proxy")...)
			if got := post(t, client, "http://"+p.address, signNow(vectorBody), vectorBody); got != http.StatusOK {
				t.Errorf("the same update after kill -9: got %d, want 200", got)
			}
			p.waitFor(t, "came again|new=false")

			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			client.CloseIdleConnections()
			if err := <-p.ended; err != nil {
				t.Errorf("after SIGTERM: got %v, want exit code 0", err)
			}
		})
	}
}

func signNow(body string) string { return webhook.Sign(vectorSecret, time.Now().Unix(), []byte(body)) }

// post sends a webhook request and returns the status of the answer.
func post(t *testing.T, client *http.Client, origin, signature, body string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, origin+"/hook", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set(webhook.SignatureHeader, signature)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("a request that must be answered: %v", err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// program is an example that runs.
type program struct {
	cmd     *exec.Cmd
	address string        // 127.0.0.1:port
	lines   <-chan string // what it logs
	ended   <-chan error
}

// startProgram starts a command, waits until it receives, and ends it with the
// test.
func startProgram(t *testing.T, env []string, command ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"))
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, ended, gone := make(chan string, 1000), make(chan error, 1), make(chan struct{})
	go func() { // ends with the process
		defer close(gone)
		scanner := bufio.NewScanner(log)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		close(lines)
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() { cancel(); <-gone })
	p := &program{cmd: cmd, lines: lines, ended: ended}
	p.address = p.waitFor(t, `127\.0\.0\.1:[0-9]+`)
	return p
}

// waitFor returns what matches the pattern in the next line of the log that does.
func (p *program) waitFor(t *testing.T, pattern string) string {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("the program ended before it logged %q", pattern)
			}
			t.Log(line)
			if strings.Contains(line, string(vectorSecret)) {
				t.Error("the log shows the secret")
			}
			if match := regexp.MustCompile(pattern).FindString(line); match != "" {
				return match
			}
		case <-deadline:
			t.Fatalf("the program didn't log %q in 30 s", pattern)
		}
	}
}

// selfSigned writes a certificate for 127.0.0.1 and its key to files.
func selfSigned(t *testing.T) (certificateFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "receiver"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var certificate, secret bytes.Buffer
	if err := pem.Encode(&certificate, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	if err := pem.Encode(&secret, &pem.Block{Type: "PRIVATE KEY", Bytes: private}); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certificateFile, keyFile = filepath.Join(folder, "certificate.pem"), filepath.Join(folder, "key.pem")
	writeFile(t, certificateFile, certificate.String())
	writeFile(t, keyFile, secret.String())
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate.Bytes())
	return certificateFile, keyFile, pool
}
