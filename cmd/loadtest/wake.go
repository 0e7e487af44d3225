package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	senders   = 32               // connections that events are sent by
	spare     = 200              // files that a process needs beside its connections
	lostAfter = 30 * time.Second // an event that no poll had by then is lost
	busyPause = time.Second      // before a call is repeated that got 503
)

// wakeUp lets n polls wait in a child of its own, each of its own bot, measures
// what they take, sends events at the plan's rate and measures how soon the
// polls are answered.
func (s *site) wakeUp(ctx context.Context, p plan, n int, r *report) (err error) {
	out := wakeUp{Polls: n, Rate: p.rate}
	if room := s.files - spare; n > room {
		out.Polls = room
		r.Notes = append(r.Notes, fmt.Sprintf("only %d files may be open, so %d polls wait instead of %d", s.files, room, n))
	}
	s.say("%d polls wait", out.Polls)
	child, err := s.startChild(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.stop()) }()
	before, err := child.memory(ctx)
	if err != nil {
		return err
	}
	pollers := s.pollers[:out.Polls]
	s.pollers = s.pollers[n:]
	crowd, err := gather(ctx, child, pollers)
	defer func() { err = errors.Join(err, crowd.disperse()) }()
	if err != nil {
		return err
	}
	after, err := child.memory(ctx)
	if err != nil {
		return err
	}
	out.RSSKiB = (after.resident - before.resident) / 1024 / float64(out.Polls)
	out.HeapKiB = (after.heap - before.heap) / 1024 / float64(out.Polls)

	s.say("%d events a second", p.rate)
	events, err := s.sendEvents(ctx, p, child, crowd)
	if err != nil {
		return err
	}
	if out.Lost, err = crowd.settle(ctx, events); err != nil {
		return err
	}
	if out.Refused = crowd.refused.Load(); out.Refused > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("with %d polls %d calls got 503 or 409 and were repeated: the machine can't keep up, at least not now", n, out.Refused))
	}
	out.count(events)
	r.WakeUps = append(r.WakeUps, out)
	return nil
}

// memory is what the child takes, in bytes.
type memory struct{ resident, heap float64 }

// settleTime is how long the child gets to give back to the system what it freed.
const settleTime = 3 * time.Second

// memory measures the child after a garbage collection, when it takes the least.
// heap is heap and stacks in use.
func (c *child) memory(ctx context.Context) (least memory, err error) {
	for deadline := time.Now().Add(settleTime); time.Now().Before(deadline); {
		if _, err := c.get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return memory{}, err
		}
		m, err := c.metrics(ctx)
		if err != nil {
			return memory{}, err
		}
		resident, ok := m["process_resident_memory_bytes"]
		if !ok {
			return memory{}, errors.New("mybots' metrics don't say how much memory it takes")
		}
		if least.resident == 0 || resident < least.resident {
			least = memory{resident, m["go_memstats_heap_inuse_bytes"] + m["go_memstats_stack_inuse_bytes"]}
		}
		select {
		case <-time.After(settleTime / 6):
		case <-ctx.Done():
			return memory{}, ctx.Err()
		}
	}
	return least, nil
}

// sendEvents sends events at the plan's rate, to one program after the other,
// each at its time whether or not those before it are answered.
func (s *site) sendEvents(ctx context.Context, p plan, c *child, crowd *crowd) ([]*event, error) {
	due := make(chan int, senders*4)
	events := make([]*event, int(p.wake.Seconds()*float64(p.rate)))
	failed := make(chan error, senders)
	var running sync.WaitGroup
	for range senders {
		conn, err := dial(ctx, c.address, 4<<10)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		running.Go(func() { // ends when due is closed
			var body []byte
			for i := range due {
				// The prime spreads neighbours over the programs.
				to := crowd.programs[i*7919%len(crowd.programs)]
				body = appendBody(body[:0], 1, func() int64 { return to.bot })
				e := &event{sent: time.Now()}
				events[i] = e
				to.expect(e)
				err := s.send(conn, body)
				for ; errors.Is(err, errBusy) && ctx.Err() == nil; err = s.send(conn, body) { // an event may be sent twice
					crowd.refused.Add(1)
					time.Sleep(busyPause)
				}
				if err != nil {
					failed <- err
					return
				}
				e.answered.Store(int64(time.Since(e.sent)))
			}
		})
	}
	began := time.Now()
	var err error
	for i := range events {
		at := began.Add(time.Duration(i) * time.Second / time.Duration(p.rate))
		select {
		case <-time.After(time.Until(at)):
			select {
			case due <- i:
			case err = <-failed:
			case <-ctx.Done():
			}
		case err = <-crowd.failed:
		case <-ctx.Done():
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			break
		}
	}
	close(due)
	running.Wait()
	select {
	case sendErr := <-failed:
		err = errors.Join(err, sendErr)
	default:
	}
	return events, err
}

// settle waits until the programs have all events and returns how many are lost.
func (c *crowd) settle(ctx context.Context, events []*event) (lost int, err error) {
	deadline := time.Now().Add(lostAfter)
	for {
		lost = 0
		for _, e := range events {
			if e.polled.Load() == 0 {
				lost++
			}
		}
		if lost == 0 || time.Now().After(deadline) {
			return lost, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case err := <-c.failed:
			return lost, err
		case <-ctx.Done():
			return lost, ctx.Err()
		}
	}
}

// count fills in the times. A poll can be answered before intake is: the bell
// rings when the commit is durable.
func (w *wakeUp) count(events []*event) {
	var wake, intake, whole []time.Duration
	for _, e := range events {
		answered, polled := time.Duration(e.answered.Load()), time.Duration(e.polled.Load())
		if polled == 0 {
			continue
		}
		wake = append(wake, max(0, polled-answered))
		intake = append(intake, answered)
		whole = append(whole, polled)
	}
	w.Events = len(events)
	set := func(p50, p99 *float64, list []time.Duration) {
		a, b := percentiles(list)
		*p50, *p99 = milliseconds(a), milliseconds(b)
	}
	set(&w.WakeP50, &w.WakeP99, wake)
	set(&w.IntakeP50, &w.IntakeP99, intake)
	set(&w.WholeP50, &w.WholeP99, whole)
}
