package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/migrations/dbtest"
)

// hookRig is a rig whose bot receives by webhook.
func hookRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.toWebhook(r.bot, false)
	return r
}

// owner returns the bot's owner as an actor.
func (r *rig) owner(bot int64) bots.Actor {
	r.t.Helper()
	var id int64
	if err := r.db.GetContext(r.t.Context(), &id, `SELECT owner_id FROM bots WHERE bot_id = $1`, bot); err != nil {
		r.t.Fatal(err)
	}
	return bots.Actor{UserID: id}
}

func (r *rig) state(bot int64) queue.Status {
	r.t.Helper()
	s, err := r.Status(r.t.Context(), bot)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) toWebhook(bot int64, drop bool) delivery.Secret {
	r.t.Helper()
	secret, _, err := r.bots.SaveWebhook(r.t.Context(), r.owner(bot), bot, r.state(bot).SettingsVersion, "https://hooks.example.com/", drop)
	if err != nil {
		r.t.Fatalf("save the webhook: %v", err)
	}
	return secret
}

func (r *rig) toPolling(bot int64, drop bool) {
	r.t.Helper()
	if _, err := r.bots.SavePolling(r.t.Context(), r.owner(bot), bot, r.state(bot).SettingsVersion, drop); err != nil {
		r.t.Fatalf("save long polling: %v", err)
	}
}

// claim claims the rig's bot; nil when nothing may be sent now.
func (r *rig) claim() *queue.Claim {
	r.t.Helper()
	got, err := r.Claim(r.t.Context(), []int64{r.bot}, 10)
	if err != nil {
		r.t.Fatalf("claim: %v", err)
	}
	if len(got.Claims) == 0 {
		return nil
	}
	return &got.Claims[0]
}

// mustClaim claims the rig's bot for the update with this id.
func (r *rig) mustClaim(id int64) queue.Claim {
	r.t.Helper()
	c := r.claim()
	if c == nil || c.Update.UpdateID != id {
		r.t.Fatalf("claimed %+v, want update %d", c, id)
	}
	return *c
}

func (r *rig) settle(c queue.Claim, a delivery.Answer) (delivery.Hook, delivery.Fate) {
	r.t.Helper()
	h, fate, err := r.Settle(r.t.Context(), c, a, time.Millisecond)
	if err != nil {
		r.t.Fatalf("settle %d: %v", c.Update.UpdateID, err)
	}
	return h, fate
}

func status(code int) delivery.Answer { return delivery.Answer{Kind: delivery.Answered, Status: code} }

func TestClaimAndConfirm(t *testing.T) {
	t.Parallel()
	r := hookRig(t)
	ctx := t.Context()
	if c := r.claim(); c != nil {
		t.Fatalf("an empty queue gave the claim %+v", c)
	}
	ids := r.append(3)
	c := r.mustClaim(ids[0])
	if c.Attempt != 1 || c.Trouble {
		t.Errorf("first claim: attempt %d, trouble %v; want 1, false", c.Attempt, c.Trouble)
	}
	if s := r.state(r.bot); s.MaxIssued != ids[0] || s.Confirmed != ids[0] {
		t.Errorf("W-15: while the attempt is under way: max issued %d, confirmed %d; want %d, %d", s.MaxIssued, s.Confirmed, ids[0], ids[0])
	}
	if again := r.claim(); again != nil {
		t.Fatalf("W-05 a second claim was given while the first holds: %+v", again)
	}
	for i, id := range ids {
		next, err := r.Confirm(ctx, c, 200, time.Millisecond, true)
		if err != nil {
			t.Fatalf("confirm %d: %v", id, err)
		}
		if i == len(ids)-1 {
			if next != nil {
				t.Errorf("after the last update came %+v", next)
			}
			break
		}
		if next == nil || next.Update.UpdateID != ids[i+1] || next.Attempt != 1 || next.Generation != c.Generation {
			t.Fatalf("after %d came %+v, want %d by the same claim", id, next, ids[i+1])
		}
		c = *next
	}
	s := r.state(r.bot)
	if s.Waiting != 0 || s.WaitingBytes != 0 || s.Confirmed != ids[2]+1 || s.MaxIssued != ids[2] || s.Hook.SuccessAt.IsZero() {
		t.Errorf("at the end: waiting %d (%d bytes), confirmed %d, issued %d, success %v", s.Waiting, s.WaitingBytes, s.Confirmed, s.MaxIssued, s.Hook.SuccessAt)
	}
	attempts, err := r.Attempts(ctx, r.bot, 50)
	if err != nil || len(attempts) != 3 {
		t.Fatalf("attempts: %d, %v; want 3", len(attempts), err)
	}
	if a := attempts[0]; a.UpdateID != ids[2] || a.Number != 1 || a.Fate != delivery.FateConfirmed || a.Status != 200 || a.Code != "" || a.Took != time.Millisecond {
		t.Errorf("the last attempt: %+v", a)
	}
	r.append(1)
	if c := r.claim(); c == nil {
		t.Error("the claim wasn't given up when the queue was empty")
	}
}

func TestFencing(t *testing.T) {
	t.Parallel()
	within := anybody
	changes := map[string]func(*rig) error{
		"mode switch": func(r *rig) error { r.toPolling(r.bot, false); return nil },
		"new secret":  func(r *rig) error { r.toWebhook(r.bot, false); return nil },
		"reset":       func(r *rig) error { return r.Reset(t.Context(), r.bot, within) },
		"deletion":    func(r *rig) error { return r.Delete(t.Context(), r.bot, within) },
		"lost claim": func(r *rig) error {
			r.db.MustExec(`UPDATE queues SET claim_until = clock_timestamp() - interval '1 second' WHERE bot_id = $1`, r.bot)
			if r.claim() == nil {
				return errors.New("a claim that ran out can't be taken over")
			}
			return nil
		},
	}
	answers := map[string]delivery.Answer{"200": status(200), "422": status(422), "401": status(401), "503": status(503)}
	for name, change := range changes {
		for answer, a := range answers {
			t.Run("W-13 after a "+name+" a "+answer+" counts for nothing", func(t *testing.T) {
				t.Parallel()
				r := hookRig(t)
				ids := r.append(2)
				c := r.mustClaim(ids[0])
				if err := change(r); err != nil {
					t.Fatal(err)
				}
				before := r.state(r.bot)
				var err error
				if a.Status == 200 {
					_, err = r.Confirm(t.Context(), c, 200, 0, true)
				} else {
					_, _, err = r.Settle(t.Context(), c, a, 0)
				}
				if !errors.Is(err, queue.ErrLost) {
					t.Errorf("got %v, want ErrLost", err)
				}
				after := r.state(r.bot)
				before.At, after.At = time.Time{}, time.Time{}
				if before != after {
					t.Errorf("the late answer changed the queue:\n%+v\n%+v", before, after)
				}
			})
		}
	}
	t.Run("W-13 a fenced claim keeps the next request out until it is given up", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		ids := r.append(1)
		c := r.mustClaim(ids[0])
		r.toWebhook(r.bot, false)
		if c := r.claim(); c != nil {
			t.Fatalf("claimed beside the request that is under way: %+v", c)
		}
		fenced, err := r.Fenced(t.Context(), []int64{r.bot}, []int64{c.Generation})
		if err != nil || !slices.Equal(fenced, []int64{r.bot}) {
			t.Errorf("Fenced: %v, %v", fenced, err)
		}
		if err := r.Release(t.Context(), c, true); err != nil {
			t.Fatal(err)
		}
		if c := r.mustClaim(ids[0]); c.Attempt != 2 {
			t.Errorf("attempt %d, want 2: the first was made", c.Attempt)
		}
	})
	t.Run("W-06 a request that wasn't made is no attempt", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		ids := r.append(1)
		if err := r.Release(t.Context(), r.mustClaim(ids[0]), false); err != nil {
			t.Fatal(err)
		}
		if c := r.mustClaim(ids[0]); c.Attempt != 1 {
			t.Errorf("attempt %d, want 1", c.Attempt)
		}
	})
	t.Run("W-13 a settle that is asked again charges once", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		c := r.mustClaim(r.append(1)[0])
		r.settle(c, status(500))
		if _, _, err := r.Settle(t.Context(), c, status(500), 0); !errors.Is(err, queue.ErrLost) {
			t.Errorf("the second settle: %v, want ErrLost", err)
		}
		if got := r.state(r.bot).Hook.Head.Charged; got != 1 {
			t.Errorf("charged %d, want 1", got)
		}
	})
}

func TestConfirmSeesALateAppend(t *testing.T) {
	t.Parallel()
	r := hookRig(t)
	ids := r.append(1)
	c := r.mustClaim(ids[0])
	// An append, held open: the confirmation must wait for it and see what it wrote.
	tx := r.db.MustBegin()
	tx.MustExec(`UPDATE queues SET next_update_id = next_update_id + 1, waiting = waiting + 1, waiting_bytes = waiting_bytes + 2 WHERE bot_id = $1`, r.bot)
	tx.MustExec(`INSERT INTO updates (bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, payload)
		VALUES ($1, 2, gen_random_uuid(), 'message', $2, $3, 0, 0, '{}')`, r.bot, r.clock.Now(), r.clock.Now().Add(time.Hour))
	done := make(chan *queue.Claim, 1)
	go func() {
		next, err := r.Confirm(t.Context(), c, 204, 0, true)
		if err != nil {
			t.Errorf("confirm: %v", err)
		}
		done <- next
	}()
	dbtest.WaitBlocked(t, r.db, 1)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if next := <-done; next == nil || next.Update.UpdateID != 2 {
		t.Errorf("after the late append came %+v, want update 2", next)
	}
}

func TestHeldRow(t *testing.T) {
	t.Parallel()
	t.Run("W-05 a row that somebody holds delays only its own bot", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		other := r.addBot("other")
		r.toWebhook(other, false)
		if _, err := r.Append(t.Context(), []delivery.Event{event(r.bot, "a"), event(other, "b"), event(other, "c")}); err != nil {
			t.Fatal(err)
		}
		tx := r.db.MustBegin()
		defer tx.Rollback()
		tx.MustExec(`UPDATE queues SET bot_id = bot_id WHERE bot_id = $1`, r.bot)
		got, err := r.Claim(t.Context(), []int64{r.bot, other}, 10)
		if err != nil || len(got.Claims) != 1 || got.Claims[0].BotID != other || !slices.Equal(got.Busy, []int64{r.bot}) {
			t.Fatalf("claimed %+v, %v; want the other bot, and this one busy", got, err)
		}
		next, err := r.Confirm(t.Context(), got.Claims[0], 200, 0, true)
		if err != nil || next == nil {
			t.Errorf("the other bot's confirmation: %+v, %v", next, err)
		}
	})
	t.Run("W-05 a confirmation for a held row can be asked again", func(t *testing.T) {
		t.Parallel()
		r := hookRig(t)
		other := r.addBot("other")
		r.toWebhook(other, false)
		if _, err := r.Append(t.Context(), []delivery.Event{event(r.bot, "a"), event(other, "b")}); err != nil {
			t.Fatal(err)
		}
		got, err := r.Claim(t.Context(), []int64{r.bot, other}, 10)
		if err != nil || len(got.Claims) != 2 {
			t.Fatalf("claimed %+v, %v", got, err)
		}
		tx := r.db.MustBegin()
		tx.MustExec(`UPDATE queues SET bot_id = bot_id WHERE bot_id = $1`, r.bot)
		held := got.Claims[slices.IndexFunc(got.Claims, func(c queue.Claim) bool { return c.BotID == r.bot })]
		if _, err := r.Confirm(t.Context(), held, 200, 0, true); !errors.Is(err, delivery.ErrUnavailable) {
			t.Errorf("confirm a held row: %v, want ErrUnavailable", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Confirm(t.Context(), held, 200, 0, true); err != nil {
			t.Errorf("confirm it again: %v", err)
		}
	})
}

func TestConfirmsInGroups(t *testing.T) {
	t.Parallel()
	r := hookRig(t)
	const n = 40
	list := []int64{r.bot}
	for i := 1; i < n; i++ {
		bot := r.addBot(fmt.Sprintf("robot%d", i))
		r.toWebhook(bot, false)
		list = append(list, bot)
	}
	var events []delivery.Event
	for range 5 {
		for _, bot := range list {
			events = append(events, event(bot, "x"))
		}
	}
	if _, err := r.Append(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	got, err := r.Claim(t.Context(), list, n)
	if err != nil || len(got.Claims) != n {
		t.Fatalf("claimed %d, %v; want %d", len(got.Claims), err, n)
	}
	done := make(chan error, n)
	for _, c := range got.Claims {
		go func() {
			for want := int64(1); ; want++ {
				if c.Update.UpdateID != want {
					done <- fmt.Errorf("bot %d got update %d, want %d", c.BotID, c.Update.UpdateID, want)
					return
				}
				next, err := r.Confirm(t.Context(), c, 200, 0, true)
				if err != nil || next == nil {
					if err == nil && want != 5 {
						err = fmt.Errorf("bot %d ended after update %d", c.BotID, want)
					}
					done <- err
					return
				}
				c = *next
			}
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var waiting int
	if err := r.db.GetContext(t.Context(), &waiting, `SELECT sum(waiting) + (SELECT count(*) FROM updates) FROM queues`); err != nil || waiting != 0 {
		t.Errorf("waiting %d, %v; want none", waiting, err)
	}
}
