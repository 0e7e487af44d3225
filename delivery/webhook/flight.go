package webhook

import (
	"context"
	"errors"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
)

// flight is a bot that is being served: its claim, renewed with each update.
type flight struct {
	claim    queue.Claim // written under the worker's lock, by the flight itself
	target   bots.Target
	deadline time.Time // of the claim, by this process's clock: never later than the database's
	trouble  bool
	rung     bool // the bell rang meanwhile; the worker's lock guards it and what follows
	looked   bool // since then it was looked at whether the claim still holds
	cut      context.CancelFunc
}

// board makes a flight of a claim; nil when its target isn't known.
func (w *Worker) board(c queue.Claim, deadline time.Time) *flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.known[c.BotID]
	if !ok || t.Version != c.Version {
		return nil
	}
	f := &flight{claim: c, target: t, deadline: deadline, trouble: c.Trouble}
	w.flights[c.BotID] = f
	if f.trouble {
		w.troubled++
	}
	return f
}

// land ends a flight. due is when the bot is to be tried again, zero when not by
// time alone.
func (w *Worker) land(f *flight, again bool, due time.Time, trouble bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	botID := f.claim.BotID
	delete(w.flights, botID)
	if f.trouble {
		w.troubled--
	}
	if _, ours := w.hooks[botID]; ours {
		w.hooks[botID] = trouble
	}
	w.dueAt(due)
	if again || f.rung {
		w.wish(botID)
	}
	w.nudge() // a slot is free, and the next wait may end earlier
}

// fly sends one update after the other until none may follow. claiming ends
// when the process stops: no next update is claimed then; sending ends when it
// can't wait any longer.
func (w *Worker) fly(claiming, sending context.Context, f *flight) {
	again, trouble, due := false, f.trouble, time.Time{}
	defer func() { w.land(f, again, due, trouble) }()
	for {
		answer, sent, took := w.send(sending, f)
		switch {
		case !sent || answer.Kind == delivery.Cut:
			w.release(sending, f.claim, sent)
			again = true
			return
		case answer.Verdict() == delivery.VerdictConfirmed:
			next, at, err := w.confirm(sending, f.claim, answer, took, func() bool { return claiming.Err() == nil })
			w.report(sending, f.claim, answer, delivery.FateConfirmed, took, err)
			trouble = false
			if next == nil {
				w.giveUpLost(sending, f.claim, err)
				again = err != nil
				return
			}
			w.renew(f, *next, at)
		default:
			hook, fate, err := w.settle(sending, f.claim, answer, took)
			w.report(sending, f.claim, answer, fate, took, err)
			w.giveUpLost(sending, f.claim, err)
			again = err != nil || hook.Ready(w.clock.Now())
			due, trouble = hook.Due, fate != delivery.FateFailed
			return
		}
	}
}

// renew goes on with the bot's next update, after an attempt that succeeded.
func (w *Worker) renew(f *flight, next queue.Claim, deadline time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f.claim, f.deadline = next, deadline
	if f.trouble {
		f.trouble = false
		w.troubled--
	}
}

// send makes the request, unless the claim would run out under it.
func (w *Worker) send(ctx context.Context, f *flight) (a delivery.Answer, sent bool, took time.Duration) {
	began := time.Now()
	if f.deadline.Sub(began) < delivery.RequestTime || ctx.Err() != nil {
		return delivery.Answer{Kind: delivery.Cut}, false, 0
	}
	ctx, cancel := context.WithDeadline(ctx, f.deadline)
	defer cancel()
	w.mu.Lock()
	f.cut = cancel
	w.mu.Unlock()
	c := f.claim
	a = w.sender.Send(ctx, Request{BotID: c.BotID, Version: c.Version, URL: f.target.URL, Secret: f.target.Secret, Update: c.Update, Attempt: c.Attempt})
	return a, true, time.Since(began)
}

// confirm writes a 2xx, as often as the database can't be reached: the endpoint
// has the update, so nothing else may become of it while the claim is ours.
func (w *Worker) confirm(ctx context.Context, c queue.Claim, a delivery.Answer, took time.Duration, more func() bool) (next *queue.Claim, deadline time.Time, err error) {
	err = w.insist(ctx, func(ctx context.Context) error {
		deadline = time.Now().Add(queue.ClaimTime)
		next, err = w.queue.Confirm(ctx, c, a.Status, took, more())
		return err
	})
	return next, deadline, err
}

// settle writes any other answer, likewise.
func (w *Worker) settle(ctx context.Context, c queue.Claim, a delivery.Answer, took time.Duration) (hook delivery.Hook, fate delivery.Fate, err error) {
	err = w.insist(ctx, func(ctx context.Context) error {
		hook, fate, err = w.queue.Settle(ctx, c, a, took)
		return err
	})
	return hook, fate, err
}

// insist runs write until the database could be reached, or ctx ends.
func (w *Worker) insist(ctx context.Context, write func(context.Context) error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		work, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTime)
		err := write(work)
		cancel()
		if !errors.Is(err, delivery.ErrUnavailable) {
			return err
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return err
		}
	}
}

// release gives a claim up, whatever becomes of ctx: another replica waits for it.
func (w *Worker) release(ctx context.Context, c queue.Claim, sent bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := w.queue.Release(ctx, c, sent); err != nil {
		w.log.WarnContext(ctx, "a claim can't be given up; it runs out by itself", "bot_id", c.BotID, "err", err)
	}
}

// giveUpLost gives a claim up that was fenced off before its answer was written:
// the next request waits for that (W-13). A claim that somebody else took over
// isn't touched.
func (w *Worker) giveUpLost(ctx context.Context, c queue.Claim, err error) {
	if errors.Is(err, queue.ErrLost) {
		w.release(ctx, c, true)
	}
}

// report writes one line for an attempt. Of the endpoint it names nothing but
// the status.
func (w *Worker) report(ctx context.Context, c queue.Claim, a delivery.Answer, fate delivery.Fate, took time.Duration, err error) {
	w.metrics.attempted(a, took)
	attributes := []any{"bot_id", c.BotID, "update_id", c.Update.UpdateID, "attempt", c.Attempt, "status", a.Status, "code", a.Code(), "took", took}
	switch {
	case errors.Is(err, queue.ErrLost):
		w.metrics.lost()
		w.log.InfoContext(ctx, "webhook attempt counts for nothing: the claim was lost", attributes...)
	case err != nil:
		w.log.ErrorContext(ctx, "webhook attempt can't be settled", append(attributes, "err", err)...)
	case fate == delivery.FateConfirmed:
		w.log.DebugContext(ctx, "webhook attempt", append(attributes, "fate", string(fate))...)
	default:
		w.log.InfoContext(ctx, "webhook attempt", append(attributes, "fate", string(fate))...)
	}
}

// watchFences cuts off requests that were fenced off (W-13), until ctx ends. The
// bell rings for every change, also for each append, so the bots that it rang
// for are looked at together, now and then.
func (w *Worker) watchFences(ctx context.Context) {
	tick := time.NewTicker(fenceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		rung, generations := w.rung()
		if len(rung) == 0 {
			continue
		}
		work, cancel := context.WithTimeout(ctx, workTime)
		fenced, err := w.queue.Fenced(work, rung, generations)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				w.log.WarnContext(ctx, "claims can't be looked at", "err", err)
			}
			continue
		}
		for i, botID := range rung {
			for _, lost := range fenced {
				if lost == botID {
					w.cut(botID, generations[i])
				}
			}
		}
	}
}

// rung returns the flights that the bell rang for since the last look.
func (w *Worker) rung() (list, generations []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for botID, f := range w.flights {
		if f.rung && !f.looked {
			f.looked = true
			list, generations = append(list, botID), append(generations, f.claim.Generation)
		}
	}
	return list, generations
}

// cut ends the bot's request, if it is still one of that generation.
func (w *Worker) cut(botID, generation int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.flights[botID]; f != nil && f.claim.Generation == generation && f.cut != nil {
		f.cut()
	}
	w.sender.Forget(botID)
}
