package main_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var became = regexp.MustCompile(`<[^>]*data-update-id="(\d+)"[^>]*>`)
var becameField = map[string]*regexp.Regexp{"result": regexp.MustCompile(`data-result="([^"]*)"`), "reason": regexp.MustCompile(`data-reason="([^"]*)"`)}

// deed retries or skips FAILED updates and returns what became of each, as the
// page tells it: "7 replayed", "8 refused STOPPED".
func (o *owner) deed(t testing.TB, b *bot, what string, ids ...string) []string {
	t.Helper()
	form := url.Values{"update_id": ids}
	if len(ids) == 0 {
		form = url.Values{"all": {"1"}}
	}
	status, _, body := o.post(t, "/bots/"+b.id+"/failed/"+what, form)
	if status != http.StatusOK {
		t.Fatalf("%s %v: got %d: %.300s", what, ids, status, body)
	}
	var rows []string
	for _, m := range became.FindAllStringSubmatch(body, -1) {
		row := m[1]
		for _, field := range []string{"result", "reason"} {
			if f := becameField[field].FindStringSubmatch(m[0]); f != nil && f[1] != "" {
				row += " " + f[1]
			}
		}
		rows = append(rows, row)
	}
	slices.Sort(rows)
	return rows
}

func TestFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testClock)
	s, other := w.serve(t), w.serve(t)
	o := s.signIn(t)
	// failed adds a bot with n updates of chat 5, all handed to a and all rejected.
	failed := func(t *testing.T, n int) (*bot, string, []event) {
		t.Helper()
		b := w.bot(t)
		var events []event
		for i := range n {
			events = append(events, said(b, "5", strconv.Itoa(i+1)))
		}
		events = s.write(t, events...)
		epoch := s.poll(t, b, at("a", "", "", now)).Lease.Epoch
		for i := range n {
			s.reject(t, b, strconv.Itoa(i+1), "a", epoch)
		}
		return b, epoch, events
	}
	results := func(t *testing.T, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	counts := func(t *testing.T, b *bot, pending, failed int) {
		t.Helper()
		if i := s.info(t, b); i.Pending != pending || i.Failed != failed {
			t.Errorf("F-05 got %d pending and %d failed, want %d and %d", i.Pending, i.Failed, pending, failed)
		}
	}

	t.Run("F-02 U-04 a replay is a new update at the end, with the old event", func(t *testing.T) {
		b, epoch, events := failed(t, 3)
		late := s.write(t, event{bot: b})[0]
		results(t, o.deed(t, b, "retry", "3", "1"), "1 replayed", "3 replayed")
		counts(t, b, 3, 1)
		got := s.poll(t, b, at("a", epoch, "", now))
		if got.outline() != "4 5 6 | 1-3 failed | 1..7" || got.Updates[0].EventID != late.id {
			t.Fatalf("got %s", got.outline())
		}
		for _, u := range got.Updates[1:] {
			old, err := strconv.Atoi(u.ReplayOf)
			if err != nil || old != 1 && old != 3 || u.EventID != events[old-1].id || u.payload != events[old-1].payload {
				t.Errorf("got %s, want a replay of 1 or 3", u.raw)
			}
		}
		results(t, o.deed(t, b, "retry", "1"), "1 refused NOT_FAILED")
		counts(t, b, 3, 1)
	})
	t.Run("F-02 I-03 of Retries that race one appends", func(t *testing.T) {
		b, epoch, _ := failed(t, 2)
		o2 := other.signIn(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		count := map[string]int{}
		for i := range 6 {
			wg.Go(func() {
				for _, row := range []*owner{o, o2}[i%2].deed(t, b, "retry", "1", "2") {
					mu.Lock()
					count[strings.Fields(row)[1]]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if count["replayed"] != 2 || count["refused"] != 10 {
			t.Errorf("got %v, want 2 replayed and 10 refused", count)
		}
		counts(t, b, 2, 0)
		if got := s.poll(t, b, at("a", epoch, "", now)); got.outline() != "3 4 | 1-2 failed | 1..5" {
			t.Errorf("got %s", got.outline())
		}
	})
	t.Run("F-02 Q-01 a replay keeps its first expiry date", func(t *testing.T) {
		b, epoch, _ := failed(t, 1)
		s.advance(t, week-time.Hour)
		o = s.signIn(t) // a session doesn't last that long
		results(t, o.deed(t, b, "retry", "1"), "1 replayed")
		s.write(t, event{bot: b})
		got := s.poll(t, b, at("a", epoch, "", now))
		if got.outline() != "2 3 | 1-1 failed | 1..4" {
			t.Fatalf("got %s", got.outline())
		}
		s.advance(t, 2*time.Hour)
		o = s.signIn(t)
		if got = s.poll(t, b, at("a", epoch, "", now)); got.outline() != "3 | 1-1 failed 2-2 expired | 1..4" {
			t.Errorf("got %s, want the replay expired and the younger update not", got.outline())
		}
	})
	t.Run("F-02 I-05 no replay to a chat that no longer allows it", func(t *testing.T) {
		for _, access := range []string{"stopped", "blocked", "left"} {
			b, _, _ := failed(t, 1)
			change := func(to string) {
				s.write(t, event{bot: b, kind: "chat_access_changed", chat: "5", payload: `{"chat":{"id":"5"},"access":"` + to + `"}`})
			}
			change(access)
			got := o.deed(t, b, "retry", "1")
			if len(got) != 1 || !strings.HasPrefix(got[0], "1 refused ") || len(strings.Fields(got[0])) != 3 {
				t.Errorf("%s: got %q, want it refused with a reason", access, got)
			}
			counts(t, b, 1, 1)
			change("allowed")
			results(t, o.deed(t, b, "retry", "1"), "1 replayed")
		}
	})
	t.Run("F-02 no replay while the bot is paused, and the others' reasons", func(t *testing.T) {
		b, _, _ := failed(t, 2)
		o.act(t, b, "pause", "paused", "on")
		for _, row := range o.deed(t, b, "retry") {
			if !strings.Contains(row, " refused ") {
				t.Errorf("while paused: got %q", row)
			}
		}
		o.act(t, b, "pause", "paused", "off")
		results(t, o.deed(t, b, "retry", "1", "77"), "1 replayed", "77 refused NOT_FAILED")
		counts(t, b, 1, 1)
	})
	t.Run("F-02 Q-02 no replay into a full queue", func(t *testing.T) {
		b, _, _ := failed(t, 2)
		for range 19 {
			s.write(t, some(b, 500)...)
		}
		s.write(t, some(b, 499)...)
		got := o.deed(t, b, "retry", "1", "2")
		replayed := 0
		for _, row := range got {
			if strings.HasSuffix(row, " replayed") {
				replayed++
			}
		}
		if len(got) != 2 || replayed != 1 {
			t.Errorf("got %q, want one of them replayed: there was room for one", got)
		}
		counts(t, b, 10_000, 1)
	})
	t.Run("F-03 Skip is for good, and a poller sees skipped_by_owner if it was ahead of the position", func(t *testing.T) {
		b, epoch, _ := failed(t, 4)
		results(t, o.deed(t, b, "skip", "2", "3"), "2 skipped", "3 skipped")
		counts(t, b, 0, 2)
		if got := s.poll(t, b, at("a", epoch, "", now)); got.outline() != "| 1-1 failed 2-3 skipped_by_owner 4-4 failed | 1..5" {
			t.Errorf("P-13 got %s", got.outline())
		}
		s.poll(t, b, at("a", epoch, "5", now))
		results(t, o.deed(t, b, "skip"), "1 skipped", "4 skipped")
		counts(t, b, 0, 0)
		if got := s.poll(t, b, at("a", epoch, "5", now)); got.outline() != "| | 5..5" {
			t.Errorf("got %s: what was passed isn't reported", got.outline())
		}
		for _, row := range o.deed(t, b, "retry", "1") {
			if !strings.HasPrefix(row, "1 refused") {
				t.Errorf("after Skip: got %q", row)
			}
		}
	})
	t.Run("F-04 P-13 what was replayed stays reported as failed", func(t *testing.T) {
		b, epoch, _ := failed(t, 3)
		results(t, o.deed(t, b, "retry", "2"), "2 replayed")
		s.write(t, deletes(b, "5", "3"))
		counts(t, b, 2, 1)
		if got := s.poll(t, b, at("a", epoch, "", now)); got.outline() != "4 5 | 1-3 failed | 1..6" {
			t.Errorf("got %s", got.outline())
		}
	})
}
