package botapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
)

// scripted is a queue whose looks end as they are written down; the last one
// stands for all that follow.
type scripted struct {
	queues
	looks []look
	times []time.Duration // when each look came, and whether it was the last
	began time.Time
}

type look struct {
	waiting bool
	err     error
}

func (s *scripted) Resume(_ context.Context, _ int64, ticket delivery.Ticket, _ int, last bool) (queue.Received, error) {
	s.times = append(s.times, time.Since(s.began))
	l := s.looks[min(len(s.times), len(s.looks))-1]
	return queue.Received{Waiting: l.waiting && !last, Ticket: ticket}, l.err
}

func TestWait(t *testing.T) {
	t.Parallel()
	down := fmt.Errorf("look: %w", delivery.ErrUnavailable)
	refusal := delivery.Refuse(delivery.BotPaused, "paused")
	tests := map[string]struct {
		looks  []look
		during func(*wake.Bell, context.CancelFunc)
		want   error
		at     []time.Duration
	}{
		"P-02 nothing comes: an empty answer after the timeout": {[]look{{waiting: true}}, func(*wake.Bell, context.CancelFunc) {}, nil, []time.Duration{25 * time.Second}},
		"P-02 a ring and something there: answered at once": {[]look{{}}, func(b *wake.Bell, _ context.CancelFunc) {
			time.Sleep(3 * time.Second)
			b.Ring(7)
		}, nil, []time.Duration{3 * time.Second}},
		"P-02 a ring for nothing: it waits on": {[]look{{waiting: true}}, func(b *wake.Bell, _ context.CancelFunc) {
			time.Sleep(3 * time.Second)
			b.Ring(7)
		}, nil, []time.Duration{3 * time.Second, 25 * time.Second}},
		"P-16 a refusal ends it": {[]look{{err: refusal}}, func(b *wake.Bell, _ context.CancelFunc) { b.Ring(7) }, refusal, []time.Duration{0}},
		"G-04 the server stops: one last look": {[]look{{waiting: true}}, func(b *wake.Bell, _ context.CancelFunc) {
			time.Sleep(2 * time.Second)
			b.Close()
		}, nil, []time.Duration{2 * time.Second}},
		"P-09 the caller hangs up: nobody looks": {[]look{{}}, func(_ *wake.Bell, hangUp context.CancelFunc) {
			time.Sleep(2 * time.Second)
			hangUp()
		}, errGone, nil},
		"A-07 it outlasts a database that can't be reached for a while": {[]look{{err: down}, {err: down}, {}}, func(b *wake.Bell, _ context.CancelFunc) {
			b.Ring(7)
		}, nil, []time.Duration{0, time.Second, 2 * time.Second}},
		"A-07 at the end of its time it says that the database can't be reached": {[]look{{err: down}}, func(b *wake.Bell, _ context.CancelFunc) {
			time.Sleep(24*time.Second + 500*time.Millisecond)
			b.Ring(7)
		}, delivery.ErrUnavailable, []time.Duration{24*time.Second + 500*time.Millisecond, 25 * time.Second}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				bell := wake.NewBell()
				q := &scripted{looks: tt.looks, began: time.Now()}
				clock := delivery.NewClock(0)
				h := New(Options{Clock: clock, Queues: q, Bell: bell, Metrics: prometheus.NewRegistry()})
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
				if err != nil {
					t.Fatal(err)
				}
				c := call{Request: r}
				c.bot.ID = 7
				w := bell.Wait(7)
				defer w.Stop()
				go tt.during(bell, hangUp)
				_, err = h.wait(c, w, queue.Received{Waiting: true, Ticket: delivery.Ticket{Until: clock.Now().Add(25 * time.Second)}}, 100)
				if !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if fmt.Sprint(q.times) != fmt.Sprint(tt.at) {
					t.Errorf("looked at %v, want %v", q.times, tt.at)
				}
			})
		})
	}
}
