package queue_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/queue"
)

func anybody(context.Context, *sqlx.Tx) error { return nil }

// fail takes n events in, lets consumer a receive them and reject each; nothing is confirmed.
func (r *rig) fail(t *testing.T, n int) (epoch int64) {
	t.Helper()
	ids := r.append(n)
	b := r.poll(t, delivery.Poll{ConsumerID: "a"})
	for _, id := range ids {
		_, _, err := r.Reject(t.Context(), queue.Once{BotID: r.bot, Key: fmt.Sprint("fail ", id), Fingerprint: []byte("f")},
			delivery.Rejection{UpdateID: id, Reason: "no", ConsumerID: "a", Epoch: b.Lease.Epoch})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Lease.Epoch
}

func words(outcomes []delivery.Outcome) (list []string) {
	for _, o := range outcomes {
		list = append(list, fmt.Sprint(o.UpdateID, " ", o.Result, " ", o.Reason, " ", o.NewID))
	}
	return list
}

func (r *rig) status(t *testing.T) queue.Status {
	t.Helper()
	s, err := r.Status(t.Context(), r.bot)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReplay(t *testing.T) {
	t.Parallel()
	t.Run("F-02 U-04 appended at the end with a new id, the same event, replay_of_update_id; doing it twice appends once", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.fail(t, 3)
		r.append(1) // 4
		before, err := r.FailedPage(t.Context(), r.bot, queue.FailedFilter{}, 0, 50)
		if err != nil || len(before) != 3 || before[1].Reason != "no" || before[1].Attempts != 1 {
			t.Fatalf("got %+v %v", before, err)
		}
		got, err := r.Replay(t.Context(), r.bot, []int64{3, 1, 99}, anybody)
		if want := []string{"3 replayed  6", "1 replayed  5", "99 refused NOT_FAILED 0"}; err != nil || !slices.Equal(words(got), want) {
			t.Errorf("got %v %v, want %v", words(got), err, want)
		}
		again, err := r.Replay(t.Context(), r.bot, []int64{3, 1}, anybody)
		if want := []string{"3 refused NOT_FAILED 0", "1 refused NOT_FAILED 0"}; err != nil || !slices.Equal(words(again), want) {
			t.Errorf("got %v %v the second time, want %v", words(again), err, want)
		}
		if s := r.status(t); s.Failed != 1 || s.Waiting != 3 || s.NextUpdateID != 7 {
			t.Errorf("F-05: got %d FAILED, %d waiting, next %d; want 1, 3, 7", s.Failed, s.Waiting, s.NextUpdateID)
		}
		r.clock.advance(time.Minute)
		b := r.poll(t, delivery.Poll{ConsumerID: "b"})
		if len(b.Updates) != 3 || b.Updates[1].UpdateID != 5 || b.Updates[1].EventID != before[0].EventID || b.Updates[1].ReplayOf != 1 || b.Updates[2].ReplayOf != 3 {
			t.Errorf("got %+v", b.Updates)
		}
		if want := []delivery.Range{{From: 1, To: 3, Reason: "failed"}}; !slices.Equal(b.Skipped, want) {
			t.Errorf("P-13: got %v, want %v: what was replayed stays failed at its old place", b.Skipped, want)
		}
	})
	t.Run("F-02 each refusal has its reason", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.fail(t, 1)
		for state, want := range map[string]string{"stopped": "CHAT_STOPPED", "blocked": "CHAT_BLOCKED", "left": "CHAT_LEFT"} {
			r.db.MustExec(`UPDATE chats SET access = $2 WHERE bot_id = $1`, r.bot, state)
			got, err := r.Replay(t.Context(), r.bot, []int64{1}, anybody)
			if err != nil || got[0].Result != delivery.Refused || string(got[0].Reason) != want {
				t.Errorf("%s: got %+v %v, want %s", state, got, err, want)
			}
		}
		r.db.MustExec(`UPDATE chats SET access = 'allowed' WHERE bot_id = $1`, r.bot)
		for change, want := range map[string]string{"paused": "BOT_PAUSED", "disabled": "BOT_DISABLED"} {
			r.db.MustExec(`UPDATE queues SET `+change+` = true WHERE bot_id = $1`, r.bot)
			got, err := r.Replay(t.Context(), r.bot, []int64{1}, anybody)
			if err != nil || string(got[0].Reason) != want {
				t.Errorf("%s: got %+v %v, want %s", change, got, err, want)
			}
			r.db.MustExec(`UPDATE queues SET `+change+` = false WHERE bot_id = $1`, r.bot)
		}
		r.db.MustExec(`UPDATE queues SET waiting = 9999 WHERE bot_id = $1`, r.bot)
		r.db.MustExec(`INSERT INTO failed_updates SELECT bot_id, 2, event_id, type, date, expires_at, chat_id, message_id, replay_of, payload, reason, attempts, failed_at FROM failed_updates WHERE update_id = 1`)
		got, err := r.Replay(t.Context(), r.bot, []int64{1, 2}, anybody)
		if err != nil || got[0].Result != delivery.Replayed || string(got[1].Reason) != "QUEUE_FULL" {
			t.Errorf("got %+v %v, want one replayed and one QUEUE_FULL", got, err)
		}
		r.clock.advance(7 * 24 * time.Hour)
		got, err = r.Replay(t.Context(), r.bot, []int64{2}, anybody)
		if err != nil || got[0].Reason != delivery.Expired {
			t.Errorf("got %+v %v, want EXPIRED", got, err)
		}
	})
	t.Run("F-02 Q-01 a replay keeps its first expiry date, and may expire before what is ahead of it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.fail(t, 1)
		r.clock.advance(6 * 24 * time.Hour)
		r.append(1)
		if _, err := r.Replay(t.Context(), r.bot, []int64{1}, anybody); err != nil {
			t.Fatal(err)
		}
		r.clock.advance(24 * time.Hour)
		if n, err := r.Expire(t.Context()); err != nil || n != 1 {
			t.Errorf("got %d expired %v, want the replay", n, err)
		}
		b := r.poll(t, delivery.Poll{ConsumerID: "b"})
		if len(b.Updates) != 1 || b.Updates[0].UpdateID != 2 {
			t.Errorf("got %+v, want update 2 alone", b.Updates)
		}
	})
	t.Run("F-03 skipped for good; a poller sees skipped_by_owner if it was ahead of the position", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.fail(t, 3)
		r.append(1)
		got, err := r.Skip(t.Context(), r.bot, []int64{2, 7}, anybody)
		if want := []string{"2 skipped  0", "7 refused NOT_FAILED 0"}; err != nil || !slices.Equal(words(got), want) {
			t.Errorf("got %v %v, want %v", words(got), err, want)
		}
		if s := r.status(t); s.Failed != 2 {
			t.Errorf("F-05: got %d FAILED, want 2", s.Failed)
		}
		r.clock.advance(time.Minute)
		_, skipped := r.drain(t)
		want := []delivery.Range{{From: 1, To: 1, Reason: "failed"}, {From: 2, To: 2, Reason: "skipped_by_owner"}, {From: 3, To: 3, Reason: "failed"}}
		if !slices.Equal(skipped, want) {
			t.Errorf("got %v, want %v", skipped, want)
		}
		// Behind the position nothing is reported any more.
		if _, err := r.Skip(t.Context(), r.bot, []int64{1}, anybody); err != nil {
			t.Fatal(err)
		}
		if ids, skipped := r.drainAgain(t); len(ids) != 0 || len(skipped) != 0 {
			t.Errorf("got %v %v, want nothing", ids, skipped)
		}
	})
	t.Run("F-01 F-05 the list, its filters and its numbers agree", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.fail(t, 5)
		r.db.MustExec(`UPDATE failed_updates SET type = 'callback_query', reason = 'HTTP_422' WHERE update_id IN (2, 4)`)
		f := queue.FailedFilter{Type: "callback_query"}
		page, err := r.FailedPage(t.Context(), r.bot, f, 2, 50)
		if err != nil || len(page) != 1 || page[0].UpdateID != 4 {
			t.Errorf("got %+v %v", page, err)
		}
		ids, err := r.FailedIDs(t.Context(), r.bot, queue.FailedFilter{Reason: "no"})
		if err != nil || !slices.Equal(ids, []int64{1, 3, 5}) {
			t.Errorf("got %v %v", ids, err)
		}
		groups, err := r.FailedGroups(t.Context(), r.bot)
		if want := []queue.FailedGroup{{Type: "callback_query", Reason: "HTTP_422", Count: 2}, {Type: "message", Reason: "no", Count: 3}}; err != nil || !slices.Equal(groups, want) {
			t.Errorf("got %v %v, want %v", groups, err, want)
		}
	})
}

// drainAgain is drain once the last lease is over.
func (r *rig) drainAgain(t *testing.T) ([]int64, []delivery.Range) {
	t.Helper()
	r.clock.advance(time.Minute)
	return r.drain(t)
}
