package botkit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mybots/botkit"
)

func TestStores(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "position.json")
	for name, open := range map[string]func() botkit.Store{
		"memory": func() botkit.Store { return &botkit.MemoryStore{} },
		"file":   func() botkit.Store { return botkit.NewFileStore(file) },
	} {
		t.Run("K-06 "+name, func(t *testing.T) {
			t.Parallel()
			s, ctx := open(), t.Context()
			if p, err := s.Load(ctx); err != nil || p != (botkit.Position{}) {
				t.Errorf("before the first: got %+v, %v; want the zero Position", p, err)
			}
			for _, want := range []botkit.Position{{Bot: "b", Epoch: "7", Offset: "9223372036854775807"}, {Bot: "b", Epoch: "8"}} {
				if err := s.Save(ctx, want); err != nil {
					t.Fatal(err)
				}
				if name == "file" {
					s = open()
				}
				if p, err := s.Load(ctx); err != nil || p != want {
					t.Errorf("got %+v, %v; want %+v", p, err, want)
				}
			}
		})
	}
}

func TestFileStore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "position.json")
	s, ctx := botkit.NewFileStore(file), t.Context()
	if err := s.Save(ctx, botkit.Position{Bot: "b", Epoch: "7", Offset: "3"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want a file that only its owner may read", info.Mode(), err)
	}
	for _, text := range []string{"", "{", "[]", `{"epoch":7}`, `{"epoch":"x","offset":"3"}`, `{"epoch":"7","offset":"-3"}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Load(ctx); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("K-06 %q: got %+v, %v; want an error that names the file", text, p, err)
		}
	}
	if err := botkit.NewFileStore(filepath.Join(folder, "none", "x")).Save(ctx, botkit.Position{}); err == nil {
		t.Error("in a folder that isn't there: got no error")
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v; want 1", len(left), err)
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "deep", "quarantine")
	q, err := botkit.OpenQuarantine(folder, "../my bot")
	if err != nil {
		t.Fatal(err)
	}
	raw := "{\"update_id\":\"42\",\"event_id\":\"e\",\"type\":\"message\",\"message\":{\"text\":\"\\ud800 caf\\u00e9 1.50\"}}"
	_, err = botkit.ParseUpdate([]byte(raw))
	bad, ok := err.(*botkit.DecodeError)
	if !ok {
		t.Fatalf("got %v", err)
	}
	for range 3 { // the policy is asked again until the offset is confirmed
		if v, err := q.Policy(t.Context(), bad); v != botkit.Skip || err != nil {
			t.Errorf("K-03: got %v, %v; want Skip", v, err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 || strings.Contains(files[0].Name(), "..") {
		t.Fatalf("K-03: got %v, %v; want one file", files, err)
	}
	path := filepath.Join(folder, files[0].Name())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Put(bad); err != nil {
		t.Error(err)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(text) {
		t.Errorf("K-03: the same update again changed the file: %v", err)
	}
	var kept botkit.Quarantined
	if err := json.Unmarshal(text, &kept); err != nil || string(kept.Raw) != raw || kept.UpdateID != "42" || kept.EventID != "e" || kept.Path != "message.message_id" || len(kept.SHA256) != 64 {
		t.Errorf("K-03: kept %+v, %v; want every byte", kept, err)
	}
	for path, want := range map[string]os.FileMode{path: 0o600, folder: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("K-03 %s: got %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if n, err := q.Purge(time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("purged %d, %v; want none", n, err)
	}
	if n, err := q.Purge(time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("purged %d, %v; want 1", n, err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if v, err := q.Policy(t.Context(), bad); v != botkit.Stop || err == nil {
		t.Errorf("K-03 it can't be stored: got %v, %v; want an error", v, err)
	}
	if _, err := botkit.OpenQuarantine(folder, ""); err == nil {
		t.Error("no bot: got no error")
	}
}
