package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"mybots/delivery"
)

// The parts of the throughput table.
const (
	partPlain = "plain limit: one row, one commit"
	partQueue = "intake, queue.Append, one event a call"
	partHTTP  = "intake over HTTP, 64 callers"
)

// throughput measures all variants in turn, round after round, and reports the
// medians.
func (s *site) throughput(ctx context.Context, p plan, r *report) (err error) {
	child, err := s.startChild(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.stop()) }()

	var list []variant
	for _, n := range []int{1, 8, 32, 64} {
		list = append(list, s.plainVariant(n))
	}
	hotBot := s.hotBot()
	for _, n := range []int{1, 64, 256} {
		list = append(list, s.queueVariant("1,000 bots", n, s.anyBot), s.queueVariant("one hot bot", n, hotBot))
	}
	for _, each := range []int{1, 100} {
		list = append(list, s.httpVariant(child, each))
	}

	s.say("warming up")
	for _, v := range list {
		if _, err := s.slice(ctx, v, p.slice/4); err != nil {
			return err
		}
	}
	samples := make([][]sample, len(list))
	for round := range p.rounds {
		s.say("round %d of %d", round+1, p.rounds)
		for i, v := range list {
			one, err := s.slice(ctx, v, p.slice)
			if err != nil {
				return err
			}
			samples[i] = append(samples[i], one)
		}
	}
	for i, v := range list {
		r.add(v, middle(samples[i]))
	}
	return nil
}

// anyBot picks one of the many at random.
func (s *site) anyBot() int64 { return s.many[rand.IntN(len(s.many))] }

// hotEvents is how many events a hot bot gets before the next one is the hot
// one: fewer than a queue holds, by more than there are callers.
const hotEvents = 9_000

// hotBot returns a picker of one bot for everybody, until it has had hotEvents;
// then of the next one. Fewer events than all hot bots take fit in a slice, and
// all queues are emptied after each.
func (s *site) hotBot() func() int64 {
	var n atomic.Int64
	return func() int64 {
		i := (n.Add(1) - 1) / hotEvents
		return s.hot[i%int64(len(s.hot))]
	}
}

// queueVariant appends one event a call, in this process.
func (s *site) queueVariant(name string, callers int, pick func() int64) variant {
	return variant{part: partQueue, name: name, callers: callers, each: 1,
		start: func(ctx context.Context) (func() error, func() error, error) {
			events := make([]delivery.Event, 1)
			call := func() error {
				events[0] = newEvent(pick())
				results, err := s.queue.Append(ctx, events)
				if err != nil {
					return err
				}
				if results[0].Refusal != nil {
					return results[0].Refusal
				}
				if results[0].Duplicate {
					return fmt.Errorf("event %s was taken for a duplicate", events[0].EventID)
				}
				return nil
			}
			return call, nothing, nil
		}}
}

func nothing() error { return nil }
