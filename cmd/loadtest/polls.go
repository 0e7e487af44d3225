package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mybots/delivery"
)

// event is one event of a wake-up part, with the moments that it went through.
type event struct {
	sent     time.Time    // to intake
	answered atomic.Int64 // by intake: ns since sent
	polled   atomic.Int64 // the poll's answer has it: ns since sent
}

// program is what a bot's program does: it polls, confirms, and polls again.
type program struct {
	poller
	conn *client

	refused *atomic.Int64 // the crowd's

	mu  sync.Mutex
	out []*event // sent and not yet received, in their order
}

// expect notes an event that is about to be sent to the program's bot.
func (p *program) expect(e *event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = append(p.out, e)
}

// received notes that a poll's answer holds the next n of what was sent.
func (p *program) received(n int, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > len(p.out) {
		return fmt.Errorf("bot %d got %d updates, %d were sent", p.bot, n, len(p.out))
	}
	for _, e := range p.out[:n] {
		e.polled.Store(int64(now.Sub(e.sent)))
	}
	p.out = p.out[n:]
	return nil
}

// pollAnswer is what a program reads of getUpdates' answer.
type pollAnswer struct {
	Result struct {
		Updates []struct {
			UpdateID string `json:"update_id"`
		} `json:"updates"`
		NextOffset string `json:"next_offset"`
		Lease      struct {
			Epoch string `json:"epoch"`
		} `json:"lease"`
	} `json:"result"`
}

// run polls until ctx ends, each time for the longest time but the first, whose
// end is drawn so that the programs don't all come back at once.
func (p *program) run(ctx context.Context, address string) error {
	var err error
	if p.conn, err = dial(ctx, address, 512); err != nil {
		return err
	}
	defer p.conn.Close()
	defer context.AfterFunc(ctx, func() { p.conn.Close() })() // ends the read of a poll that waits
	timeout := delivery.MaxPollTimeout - rand.IntN(delivery.MaxPollTimeout/2)
	last := ""
	for {
		body := append([]byte(`{"consumer_id":"load","timeout":`), strconv.Itoa(timeout)...)
		body = append(append(body, last...), '}')
		status, text, err := p.conn.post("/bot-api/v1/getUpdates", p.token, body)
		now := time.Now()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("bot %d polls: %w", p.bot, err)
		}
		if status == http.StatusServiceUnavailable || status == http.StatusConflict {
			// The machine is too busy, or what became of such a call is still in the way.
			p.refused.Add(1)
			select {
			case <-time.After(busyPause):
				continue
			case <-ctx.Done():
				return nil
			}
		}
		var a pollAnswer
		if err := json.Unmarshal(text, &a); err != nil || status != http.StatusOK {
			return fmt.Errorf("bot %d polls and gets %d %.300s", p.bot, status, text)
		}
		if err := p.received(len(a.Result.Updates), now); err != nil {
			return err
		}
		last = `,"epoch":"` + a.Result.Lease.Epoch + `","offset":"` + a.Result.NextOffset + `"`
		timeout = delivery.MaxPollTimeout
	}
}

// crowd is many programs that poll.
type crowd struct {
	programs []*program
	cancel   context.CancelFunc
	running  sync.WaitGroup
	failed   chan error   // the first error
	refused  atomic.Int64 // calls that got 503 or 409
}

// pack is how many programs open their first poll at a time.
const pack = 200

// gather starts a program for each poller, pack after pack, and returns when all
// of them wait; disperse must follow, also after an error.
func gather(ctx context.Context, c *child, pollers []poller) (*crowd, error) {
	polling, cancel := context.WithCancel(ctx)
	crowd := &crowd{cancel: cancel, failed: make(chan error, 1)}
	for _, p := range pollers {
		crowd.programs = append(crowd.programs, &program{poller: p, refused: &crowd.refused})
	}
	for i, p := range crowd.programs {
		crowd.running.Go(func() { // ends with disperse
			if err := p.run(polling, c.address); err != nil {
				select {
				case crowd.failed <- err:
				default: // one error is enough
				}
			}
		})
		if n := i + 1; n%pack == 0 || n == len(crowd.programs) {
			if err := crowd.await(ctx, c, n); err != nil {
				return crowd, err
			}
		}
	}
	return crowd, nil
}

// await waits until n polls wait, but for those few that are just being answered.
func (c *crowd) await(ctx context.Context, of *child, n int) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		m, err := of.metrics(ctx)
		if err != nil {
			return err
		}
		if int(m["mybots_getupdates_waiting"]) >= n-n/100 {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case err := <-c.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%d of %d polls wait: %w", int(m["mybots_getupdates_waiting"]), n, ctx.Err())
		}
	}
}

// disperse ends all polls and returns the first error that a program had.
func (c *crowd) disperse() error {
	c.cancel()
	c.running.Wait()
	select {
	case err := <-c.failed:
		return err
	default:
		return nil
	}
}
