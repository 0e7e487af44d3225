package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"mybots/delivery"
	"mybots/delivery/webhook"
)

// hookRun is one delivery of all that waits.
type hookRun struct {
	rate    float64 // deliveries a second
	ratio   float64 // to the client's own rate just before
	trips   float64 // to the database a delivery
	commits float64 // that wrote, a delivery; negative: not known
	wal     float64 // bytes of WAL a delivery
}

// hookRates measures, for each side, what its client reaches with no database
// and what the product's worker delivers with it.
func (s *site) hookRates(ctx context.Context, rounds int, sides []*side, r *report) error {
	runs := make([][]hookRun, len(sides))
	alone := make([][]float64, len(sides))
	found := make([]faults, len(sides))
	for round := range rounds + 1 { // the first one warms up
		s.say("delivery to webhooks, round %d of %d", round, rounds)
		for i, d := range sides {
			rate, err := d.alone(ctx)
			if err != nil {
				return err
			}
			run, bad, err := s.deliverAll(ctx, d)
			if err != nil {
				return err
			}
			found[i].add(bad)
			if run.ratio = run.rate / rate; round > 0 {
				alone[i], runs[i] = append(alone[i], rate), append(runs[i], run)
			}
		}
	}
	for i, d := range sides {
		of := func(f func(hookRun) float64) float64 { return median(runs[i], f) }
		line := hookRate{
			Name: d.name, Bots: hookBots, Updates: hookUpdates, Faults: found[i],
			Alone: median(alone[i], func(v float64) float64 { return v }),
			Rate:  of(func(h hookRun) float64 { return h.rate }), Ratio: of(func(h hookRun) float64 { return h.ratio }),
			Trips: of(func(h hookRun) float64 { return h.trips }), WAL: of(func(h hookRun) float64 { return h.wal }),
		}
		if commits := of(func(h hookRun) float64 { return h.commits }); commits >= 0 {
			line.Commits = &commits
		}
		r.HookRates = append(r.HookRates, line)
	}
	return nil
}

// alone lets each bot send its updates, one after the other, with nothing but
// the client and the sink.
func (d *side) alone(ctx context.Context) (rate float64, err error) {
	full := d.sink.expect(hookBots*hookUpdates, nil)
	failed := make(chan error, len(d.bots))
	var sending sync.WaitGroup
	began := time.Now()
	for _, bot := range d.bots {
		sending.Go(func() { // ends with its updates
			t := d.targets[bot]
			for i := range hookUpdates {
				e := newEvent(bot)
				u := delivery.Update{UpdateID: int64(i + 1), EventID: e.EventID, Type: e.Type, Date: e.Date, Payload: e.Payload}
				a := d.poster.Send(ctx, webhook.Request{BotID: bot, Version: t.Version, URL: t.URL, Secret: t.Secret, Update: u, Attempt: 1})
				if a.Verdict() != delivery.VerdictConfirmed {
					failed <- fmt.Errorf("a webhook over %s answers %s %s", d.name, a.Kind, strconv.Itoa(a.Status))
					return
				}
			}
		})
	}
	sending.Wait()
	took := time.Since(began)
	select {
	case err := <-failed:
		return 0, err
	default:
	}
	return hookBots * hookUpdates / took.Seconds(), awaitFull(ctx, full)
}

// fill puts updates into the queues of a side.
func (s *site) fill(ctx context.Context, d *side) (err error) {
	w, err := s.newWorks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	for range hookUpdates {
		events := make([]delivery.Event, 0, len(d.bots))
		for _, bot := range d.bots {
			events = append(events, newEvent(bot))
		}
		results, err := w.queue.Append(ctx, events)
		if err != nil {
			return err
		}
		for _, one := range results {
			if one.Refusal != nil {
				return one.Refusal
			}
		}
	}
	return nil
}

// deliverAll lets a worker deliver what was queued beforehand, until the last
// confirmation is durable.
func (s *site) deliverAll(ctx context.Context, d *side) (run hookRun, bad faults, err error) {
	if err := s.fill(ctx, d); err != nil {
		return run, bad, err
	}
	books, err := s.newLedger(ctx)
	if err != nil {
		return run, bad, err
	}
	defer func() { err = errors.Join(err, books.close()) }()
	const deliveries = hookBots * hookUpdates
	full := d.sink.expect(deliveries, nil)
	trips, err := books.transactions(ctx)
	if err != nil {
		return run, bad, err
	}
	before, err := s.mark(ctx)
	if err != nil {
		return run, bad, err
	}
	w, err := s.newWorks()
	if err != nil {
		return run, bad, err
	}
	began := time.Now()
	w.deliver(d.poster)
	err = awaitFull(ctx, full)
	for left := 1; left > 0 && err == nil; {
		left, err = books.waiting(ctx)
	}
	took := time.Since(began)
	if err = errors.Join(err, w.stop()); err != nil {
		return run, bad, err
	}
	after, err := s.mark(ctx)
	if err != nil {
		return run, bad, err
	}
	run = hookRun{rate: deliveries / took.Seconds(), commits: -1, wal: float64(after.Written-before.Written) / deliveries}
	if n, ok := s.commits(ctx, before, after); ok {
		run.commits = n / deliveries
	}
	ended, err := books.transactions(ctx)
	if err != nil {
		return run, bad, err
	}
	run.trips = float64(ended-trips) / deliveries
	bad = d.sink.faults()
	return run, bad, s.empty(ctx)
}
