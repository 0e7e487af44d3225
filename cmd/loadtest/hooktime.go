package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mybots/delivery"
)

const (
	liveBots      = 16
	liveProducers = 8
	liveEvents    = 5_000
	livePace      = 3_000 // events a second
	liveBatch     = 20
	liveSmall     = 5 // of a paced call: 8 producers with single events don't reach the pace
)

// hookEvent is an event on its way to a webhook.
type hookEvent struct {
	sent     atomic.Int64 // when its intake call began, since epoch
	arrived  atomic.Int64 // when the webhook had the request, likewise; 0: not yet
	arrivals atomic.Int64
}

// epoch is what times are counted from.
var epoch = time.Now()

func sinceEpoch() int64 { return int64(time.Since(epoch)) }

func (e *hookEvent) arrive() {
	if e.arrivals.Add(1) == 1 {
		e.arrived.Store(sinceEpoch())
	}
}

// pattern is a way of calling intake.
type pattern struct {
	name string
	each int // events a call
	pace int // events a second; 0: as fast as it goes
}

func patterns() []pattern {
	return []pattern{
		{"as fast as it goes, single events", 1, 0},
		{fmt.Sprintf("as fast as it goes, batches of %d", liveBatch), liveBatch, 0},
		{fmt.Sprintf("paced at %d a second, batches of %d", livePace, liveSmall), liveSmall, livePace},
	}
}

// live is what one pattern came to.
type live struct {
	accepted, delivered float64 // events a second
	p50, p95, p99       time.Duration
}

// hookTimes measures events from intake to the webhook: over plain HTTP in this
// process, over TLS in a child `mybots serve`.
func (s *site) hookTimes(ctx context.Context, rounds int, plain, secure *side, r *report) error {
	lines := patterns()
	runs := map[*side][][]live{plain: make([][]live, len(lines)), secure: make([][]live, len(lines))}
	found := map[*side][]faults{plain: make([]faults, len(lines)), secure: make([]faults, len(lines))}
	for round := range rounds {
		s.say("from intake to the webhook, round %d of %d", round+1, rounds)
		for _, d := range []*side{plain, secure} {
			err := s.withServer(ctx, d, d == secure, func(address string) error {
				if _, _, err := s.live(ctx, d, address, pattern{each: 1, pace: 500}, 250); err != nil { // connects
					return err
				}
				for i, p := range lines {
					one, bad, err := s.live(ctx, d, address, p, liveEvents)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", d.name, p.name, err)
					}
					runs[d][i] = append(runs[d][i], one)
					found[d][i].add(bad)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if err := s.empty(ctx); err != nil {
				return err
			}
		}
	}
	for _, d := range []*side{plain, secure} {
		for i, p := range lines {
			of := func(f func(live) float64) float64 { return median(runs[d][i], f) }
			ms := func(f func(live) time.Duration) float64 {
				return of(func(l live) float64 { return milliseconds(f(l)) })
			}
			r.HookTimes = append(r.HookTimes, hookTime{
				Side: d.name, Name: p.name, Pace: p.pace, Bots: liveBots, Producers: liveProducers, Events: liveEvents * rounds, Faults: found[d][i],
				Accepted: of(func(l live) float64 { return l.accepted }), Delivered: of(func(l live) float64 { return l.delivered }),
				P50: ms(func(l live) time.Duration { return l.p50 }), P95: ms(func(l live) time.Duration { return l.p95 }), P99: ms(func(l live) time.Duration { return l.p99 }),
			})
		}
	}
	return nil
}

// withServer runs use with the address of an intake whose updates a side's
// sender delivers.
func (s *site) withServer(ctx context.Context, d *side, child bool, use func(address string) error) (err error) {
	if child {
		c, err := s.startChild(ctx, "MYBOTS_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", "MYBOTS_WEBHOOK_ALLOW_PORTS="+d.sink.port,
			"MYBOTS_WEBHOOK_CA_FILE="+filepath.Join(s.folder, authorityFile))
		if err != nil {
			return err
		}
		if err := use(c.address); err != nil {
			return errors.Join(fmt.Errorf("%w; mybots said at last:\n%s", err, tail(c.log)), c.stop())
		}
		return c.stop()
	}
	w, err := s.newWorks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	w.deliver(d.poster)
	address, err := w.serve()
	if err != nil {
		return err
	}
	return use(address)
}

// live sends n events in a pattern, each bot's in turn, and waits for them.
func (s *site) live(ctx context.Context, d *side, address string, p pattern, n int) (out live, bad faults, err error) {
	events, byID := make([]delivery.Event, n), make(map[string]*hookEvent, n)
	for i := range events {
		e := newEvent(d.bots[i%liveBots])
		e.Payload = hookPayloads[e.ChatID-1]
		events[i], byID[e.EventID] = e, &hookEvent{}
	}
	full := d.sink.expect(n, byID)
	began := time.Now()
	refused, err := s.produce(ctx, address, p, events, byID, began)
	if err != nil {
		return out, bad, err
	}
	out.accepted = float64(n) / time.Since(began).Seconds()
	if err := awaitFull(ctx, full); err != nil && ctx.Err() != nil {
		return out, bad, err
	} // else what is lost shows in the report
	out.delivered = float64(n) / time.Since(began).Seconds()

	bad = d.sink.faults()
	bad.Refused, bad.Repeated = refused, 0 // here each event says it of itself
	var times []time.Duration
	for _, e := range byID {
		switch n := e.arrivals.Load(); {
		case n == 0:
			bad.Lost++
			continue
		case n > 1:
			bad.Repeated += int(n - 1)
		}
		times = append(times, time.Duration(e.arrived.Load()-e.sent.Load()))
	}
	slices.Sort(times)
	if k := len(times); k > 0 {
		out.p50, out.p95, out.p99 = times[k/2], times[k*95/100], times[k*99/100]
	}
	return out, bad, nil
}

// produce gives the events to intake by the producers, each a call at a time.
// With a pace no call begins before its time, and late when the producers are
// behind. It returns how many calls got 503 and were repeated.
func (s *site) produce(ctx context.Context, address string, p pattern, events []delivery.Event, byID map[string]*hookEvent, began time.Time) (int, error) {
	var next, refused atomic.Int64
	failures := make([]error, liveProducers)
	var running sync.WaitGroup
	for i := range failures {
		conn, err := dial(ctx, address, 4<<10)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		running.Go(func() { // ends with the events
			var body []byte
			for ctx.Err() == nil {
				from := int(next.Add(1)-1) * p.each
				if from >= len(events) {
					return
				}
				if p.pace > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(from) * time.Second / time.Duration(p.pace))))
				}
				part := events[from:min(from+p.each, len(events))]
				body = appendEvents(body[:0], len(part), func() delivery.Event { e := part[0]; part = part[1:]; return e })
				now := sinceEpoch()
				for _, e := range events[from:min(from+p.each, len(events))] {
					byID[e.EventID].sent.Store(now)
				}
				err := s.send(conn, body)
				for ; errors.Is(err, errBusy) && ctx.Err() == nil; err = s.send(conn, body) { // an event may be sent twice
					refused.Add(1)
					time.Sleep(busyPause)
				}
				if err != nil {
					failures[i] = err
					return
				}
			}
		})
	}
	running.Wait()
	return int(refused.Load()), errors.Join(append(failures, ctx.Err())...)
}
