package sqlitestore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

func open(t *testing.T, path string) *Inbox {
	t.Helper()
	in, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() }) // it may be closed already
	return in
}

func TestInbox(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a folder?", "bot #1.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	bottest.CheckInbox(t, func(t *testing.T) (botkit.Inbox, func()) {
		in := open(t, path)
		return in, func() {
			if err := in.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want a file that only its owner may read", info, err)
	}
}

func TestDurable(t *testing.T) {
	t.Parallel()
	in := open(t, filepath.Join(t.TempDir(), "bot.db"))
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000"} {
		var got string
		if err := in.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("K-06 %s: got %s, %v; want %s", pragma, got, err, want)
		}
	}
}

func TestPutIsAllOrNothing(t *testing.T) {
	t.Parallel()
	in := open(t, filepath.Join(t.TempDir(), "bot.db"))
	ctx := t.Context()
	// A trigger stands for whatever can go wrong in the middle.
	if _, err := in.db.ExecContext(ctx, `CREATE TRIGGER bad BEFORE INSERT ON inbox WHEN new.event_id = 'e3' BEGIN SELECT RAISE(ABORT, 'no'); END`); err != nil {
		t.Fatal(err)
	}
	var items []botkit.Item
	for n := range 5 {
		items = append(items, botkit.Item{EventID: fmt.Sprint("e", n), UpdateID: "1", Raw: []byte("{}"), Received: time.Now()})
	}
	if added, err := in.Put(ctx, items, &botkit.Position{Epoch: "1", Offset: "6"}); err == nil || added != 0 {
		t.Errorf("K-06 got %d, %v; want an error", added, err)
	}
	if p, err := in.Load(ctx); err != nil || p != (botkit.Position{}) {
		t.Errorf("K-06 position %+v, %v; want none", p, err)
	}
	if c, err := in.Counts(ctx); err != nil || c.Waiting != 0 {
		t.Errorf("K-06 counts %+v, %v; want none", c, err)
	}
	if added, err := in.Put(ctx, items[:3], &botkit.Position{Epoch: "1", Offset: "4"}); err != nil || added != 3 {
		t.Errorf("K-06 after it: got %d, %v; want 3", added, err)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	in := open(t, filepath.Join(t.TempDir(), "bot.db"))
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	calls := map[string]func() error{
		"Load":   func() error { _, err := in.Load(ctx); return err },
		"Put":    func() error { _, err := in.Put(ctx, nil, nil); return err },
		"Heads":  func() error { _, err := in.Heads(ctx, time.Now(), 1); return err },
		"Settle": func() error { return in.Settle(ctx, "e", botkit.Settlement{}) },
		"Counts": func() error { _, err := in.Counts(ctx); return err },
		"Purge":  func() error { return in.Purge(ctx, time.Now()) },
		"Retry":  func() error { _, err := in.Retry(ctx, "e"); return err },
		"Parked": func() error { _, err := in.Parked(ctx, 1); return err },
	}
	for name, call := range calls {
		if call() == nil {
			t.Errorf("%s of a closed file: got no error", name)
		}
	}
	if _, err := Open(ctx, filepath.Join(t.TempDir(), "none", "bot.db")); err == nil {
		t.Error("Open in a folder that isn't there: got no error")
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, text); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("Open of a text: got %v, want an error that names the file", err)
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	in := open(t, filepath.Join(t.TempDir(), "bot.db"))
	ctx := t.Context()
	for n := range 4 {
		id := fmt.Sprint("e", n)
		if _, err := in.Put(ctx, []botkit.Item{{EventID: id, UpdateID: "1", Key: "a", Raw: []byte("{}"), Received: time.Now()}}, nil); err != nil {
			t.Fatal(err)
		}
		if n < 3 {
			if err := in.Settle(ctx, id, botkit.Settlement{State: botkit.ItemParked, Note: "why"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	parked, err := in.Parked(ctx, 2)
	if err != nil || len(parked) != 2 || parked[0].EventID != "e0" || parked[0].Note != "why" {
		t.Errorf("parked %+v, %v; want e0 and e1", parked, err)
	}
	if n, err := in.Retry(ctx, "e1", "e3", "none"); err != nil || n != 1 {
		t.Errorf("retried %d, %v; want 1: only e1 is parked", n, err)
	}
	heads, err := in.Heads(ctx, time.Now(), 10)
	if err != nil || len(heads) != 1 || heads[0].EventID != "e1" {
		t.Errorf("heads %+v, %v; want e1 before e3", heads, err)
	}
	if n, err := in.Retry(ctx); err != nil || n != 2 {
		t.Errorf("retried %d, %v; want the other 2", n, err)
	}
}

// A whole bot on the file, killed in the middle: the file is all that is left.
func TestBot(t *testing.T) {
	t.Parallel()
	server := bottest.New(t)
	path := filepath.Join(t.TempDir(), "bot.db")
	var want []string
	for n := range 40 {
		want = append(want, fmt.Sprint("order ", n))
		server.Message("550", want[n])
	}
	live := func(until int) {
		in := open(t, path)
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		client := server.Client()
		dead := make(chan struct{})
		var once sync.Once
		handler := botkit.HandlerFunc(func(ctx context.Context, u *botkit.Update) error {
			if len(server.Sent()) >= until {
				once.Do(func() { close(dead) })
				<-ctx.Done()
				return ctx.Err()
			}
			_, err := client.SendMessage(ctx, u.Key("reply"), botkit.Outgoing{ChatID: u.ChatID(), Text: u.Message.Text})
			return err
		})
		bot, err := botkit.New(client, handler, botkit.Options{ConsumerID: "test", Inbox: in, HandlerTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- bot.Poll(ctx) }() // ends with kill
		if until <= len(want) {
			<-dead
			if err := in.Close(); err != nil { // nothing more reaches the file
				t.Error(err)
			}
			kill()
			<-ended
			return
		}
		server.WaitSent(len(want))
		server.WaitConfirmed("41")
		kill()
		if err := <-ended; err != nil {
			t.Errorf("Poll returned %v", err)
		}
		if s := bot.Status(); s.InboxWaiting != 0 || s.InboxParked != 0 {
			t.Errorf("status %+v, want an empty inbox", s)
		}
	}
	live(17)
	server.Reset()
	live(len(want) + 1)
	var got []string
	for _, m := range server.Sent() {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("K-01 sent %v, want each once in order", got)
	}
}
