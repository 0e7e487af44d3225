package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// vectors is the file that the tests of all languages share.
type vectors struct {
	Secret string `json:"secret"`
	Time   int64  `json:"t"`
	Body   string `json:"body"`
	Header string `json:"header"`
	Cases  []struct {
		Name   string `json:"name"`
		Secret string `json:"secret"`
		Header string `json:"header"`
		Body   string `json:"body"`
		Now    int64  `json:"now"`
		Valid  bool   `json:"valid"`
	} `json:"cases"`
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	text, err := os.ReadFile("../../testdata/signature.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func sign(secret, body string, t int64) string {
	at := strconv.FormatInt(t, 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "." + body))
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

func TestVerifySignature(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	if got := sign(v.Secret, v.Body, v.Time); got != v.Header {
		t.Errorf("got the header %s, want %s", got, v.Header)
	}
	for _, c := range v.Cases {
		t.Run("K-07 "+c.Name, func(t *testing.T) {
			t.Parallel()
			if got := VerifySignature([]byte(c.Secret), c.Header, []byte(c.Body), time.Unix(c.Now, 0)); got != c.Valid {
				t.Errorf("got %t, want %t", got, c.Valid)
			}
		})
	}
}

const (
	testSecret = "swh1_test"
	goodUpdate = `{"update_id":"1","event_id":"a","type":"message","message":{"text":"<é>"}}`
)

func TestReceiver(t *testing.T) {
	t.Parallel()
	oversized := `{"update_id":"1","event_id":"a","type":"message","x":"` + strings.Repeat("x", maxBody) + `"}`
	large := `{"update_id":"1","event_id":"a","type":"message","x":"` + strings.Repeat("x", maxBody-200) + `"}`
	tests := map[string]struct {
		method, path, body string
		signature          string // "": the right one
		want               int
		stored             bool
	}{
		"good":                   {"POST", "/hook", goodUpdate, "", 200, true},
		"good, with a query":     {"POST", "/hook?x=1", goodUpdate, "", 200, true},
		"as large as allowed":    {"POST", "/hook", large, "", 200, true},
		"too large":              {"POST", "/hook", oversized, "", 413, false},
		"wrong secret":           {"POST", "/hook", goodUpdate, sign("another", goodUpdate, time.Now().Unix()), 401, false},
		"old":                    {"POST", "/hook", goodUpdate, sign(testSecret, goodUpdate, time.Now().Unix()-400), 401, false},
		"no signature":           {"POST", "/hook", goodUpdate, " ", 401, false},
		"signature before JSON":  {"POST", "/hook", "{", "t=1,v1=0", 401, false},
		"unknown type":           {"POST", "/hook", `{"update_id":"1","event_id":"a","type":"later"}`, "", 200, false},
		"test request":           {"POST", "/hook", `{"update_id":"0","event_id":"a","type":"test"}`, "", 200, false},
		"empty":                  {"POST", "/hook", "", "", 400, false},
		"no JSON":                {"POST", "/hook", "{", "", 400, false},
		"no object":              {"POST", "/hook", "[]", "", 400, false},
		"null":                   {"POST", "/hook", "null", "", 400, false},
		"a field is missing":     {"POST", "/hook", `{"event_id":"a","type":"message"}`, "", 400, false},
		"a field in capitals":    {"POST", "/hook", `{"update_id":"1","EVENT_ID":"a","type":"message"}`, "", 400, false},
		"an id that is a number": {"POST", "/hook", `{"update_id":1,"event_id":"a","type":"message"}`, "", 400, false},
		"an id with a newline":   {"POST", "/hook", `{"update_id":"1","event_id":"a\n","type":"message"}`, "", 400, false},
		"no UTF-8":               {"POST", "/hook", "{\"update_id\":\"1\",\"event_id\":\"a\",\"type\":\"message\",\"x\":\"\xff\"}", "", 400, false},
		"deep":                   {"POST", "/hook", strings.Repeat("[", 100_000), "", 400, false},
		"another path":           {"POST", "/", goodUpdate, "", 404, false},
		"another method":         {"GET", "/hook", "", "", 405, false},
		"health":                 {"GET", "/healthz", "", "", 200, false},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := open(t, filepath.Join(t.TempDir(), "store"))
			rings := 0
			rc := &receiver{[]byte(testSecret), in, func() { rings++ }, testLog(t)}
			if c.signature == "" {
				c.signature = sign(testSecret, c.body, time.Now().Unix())
			}
			for range 2 { // the second one is a duplicate
				r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
				r.Header.Set("X-SMeet-Signature", c.signature)
				w := httptest.NewRecorder()
				routes("/hook", rc).ServeHTTP(w, r)
				if w.Code != c.want {
					t.Errorf("got %d, want %d", w.Code, c.want)
				}
			}
			got, stored := in.first()
			if stored != c.stored || rings != map[bool]int{true: 1}[c.stored] {
				t.Errorf("got stored %t, rung %d times; want stored %t", stored, rings, c.stored)
			}
			if stored && got.Body != c.body {
				t.Errorf("got the body %q, want %q", got.Body, c.body)
			}
		})
	}

	t.Run("the store fails", func(t *testing.T) {
		t.Parallel()
		in := open(t, filepath.Join(t.TempDir(), "store"))
		rc := &receiver{[]byte(testSecret), in, func() {}, testLog(t)}
		if err := in.file.Close(); err != nil {
			t.Fatal(err)
		}
		if got := rc.take(sign(testSecret, goodUpdate, time.Now().Unix()), []byte(goodUpdate)); got != 503 {
			t.Errorf("got %d, want 503", got)
		}
	})
}

func TestInbox(t *testing.T) {
	t.Parallel()
	t.Run("a restart keeps ids, and leaves out what a crash cut", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "store")
		in := open(t, path)
		store(t, in, "a", `"a"`)
		store(t, in, "b", `"b"`)
		if err := in.settle("a", handled); err != nil {
			t.Fatal(err)
		}
		write(t, path, `{"event_id":"c","state":"wai`)
		in = open(t, path)
		if got, ok := in.first(); !ok || got.EventID != "b" || got.Body != `"b"` {
			t.Errorf("got %+v %t, want b", got, ok)
		}
		if store(t, in, "a", "") || store(t, in, "b", "") || !store(t, in, "c", `"c"`) {
			t.Error("got a or b taken as new, or c as known")
		}
		open(t, path)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got the mode %v, %v; want 0600", info.Mode(), err)
		}
	})
	t.Run("a spoiled line stops the start", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "store")
		write(t, path, "{}\nspoiled\n")
		if _, err := openInbox(path, time.Now()); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("got %v, want an error about line 2", err)
		}
	})
	t.Run("what is handled and too old is forgotten", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "store")
		in := open(t, path)
		for _, id := range []string{"old", "waits", "aside"} {
			store(t, in, id, `"`+id+`"`)
		}
		if err := errors.Join(in.settle("old", handled), in.settle("aside", setAside),
			in.tidy(time.Now().Add(keptFor+time.Minute))); err != nil {
			t.Fatal(err)
		}
		in = open(t, path)
		if !store(t, in, "old", "") || store(t, in, "waits", "") || store(t, in, "aside", "") {
			t.Error("got old still known, or waits or aside forgotten")
		}
		if got := in.known["aside"].Body; got != `"aside"` {
			t.Errorf("got %q of what was set aside, want its body", got)
		}
	})
}

func TestWorker(t *testing.T) {
	t.Parallel()
	in := open(t, filepath.Join(t.TempDir(), "store"))
	for _, id := range []string{"a", "b", "c"} {
		store(t, in, id, `"`+id+`"`)
	}
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	var got []string
	w := &worker{in, func(_ context.Context, _ *slog.Logger, update []byte) error {
		got = append(got, string(update))
		switch string(update) {
		case `"a"`:
			return errors.New("text")
		case `"b"`:
			panic("text")
		}
		end()
		return nil
	}, time.Millisecond, make(chan struct{}, 1), testLog(t)}
	w.run(ctx)
	want := slices.Concat(slices.Repeat([]string{`"a"`}, tries), slices.Repeat([]string{`"b"`}, tries), []string{`"c"`})
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for id, state := range map[string]string{"a": setAside, "b": setAside, "c": handled} {
		if got := in.known[id].State; got != state {
			t.Errorf("got %s %s, want %s", id, got, state)
		}
	}
}

func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env     map[string]string
		proxied bool
		want    string
	}{
		"no secret":      {nil, true, "SMEET_WEBHOOK_SECRET"},
		"a blank secret": {map[string]string{"SMEET_WEBHOOK_SECRET": " \n"}, true, "SMEET_WEBHOOK_SECRET"},
		"no certificate": {map[string]string{"SMEET_WEBHOOK_SECRET": testSecret}, false, "SMEET_WEBHOOK_CERT"},
		"a path without a slash": {map[string]string{"SMEET_WEBHOOK_SECRET": testSecret, "SMEET_WEBHOOK_PATH": "x"},
			true, "SMEET_WEBHOOK_PATH"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged bytes.Buffer
			err := run(t.Context(), func(name string) string { return c.env[name] }, c.proxied,
				slog.New(slog.NewTextHandler(&logged, nil)))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error()+logged.String(), testSecret) {
				t.Errorf("got %v, want an error that names %s", err, c.want)
			}
		})
	}
}

func open(t *testing.T, path string) *inbox {
	t.Helper()
	in, err := openInbox(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func store(t *testing.T, in *inbox, eventID, body string) (isNew bool) {
	t.Helper()
	isNew, err := in.store(eventID, []byte(body), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return isNew
}

func write(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(file, text)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

func testLog(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }
