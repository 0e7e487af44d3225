package webhook

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
)

const (
	// slots is how many bots are served at a time, each by one request. The last
	// calmSlots are kept for bots whose last attempt didn't fail, so that
	// endpoints which never answer can't hold up the others (W-05).
	slots     = 1000
	calmSlots = 250

	claimBatch   = 200                    // bots of one claim
	sweepEvery   = 500 * time.Millisecond // real time: the net under the bell and the timers
	fenceEvery   = 100 * time.Millisecond // real time: requests that may have been fenced off are looked at
	busyPause    = 5 * time.Millisecond   // before bots whose rows were held are asked for again
	workTime     = 20 * time.Second       // of one look at the database at the most
	graceTime    = 10500 * time.Millisecond
	unsealedTime = time.Minute // before a bot whose secret doesn't open is looked at again
)

// queues is what the worker asks of package queue.
type queues interface {
	Claim(ctx context.Context, bots []int64, limit int) (queue.Claimed, error)
	Confirm(ctx context.Context, c queue.Claim, status int, took time.Duration, next bool) (*queue.Claim, error)
	Settle(ctx context.Context, c queue.Claim, a delivery.Answer, took time.Duration) (delivery.Hook, delivery.Fate, error)
	Release(ctx context.Context, c queue.Claim, sent bool) error
	ExpireOf(ctx context.Context, botID int64) (int, error)
	DueWebhooks(ctx context.Context) ([]queue.Due, error)
	Fenced(ctx context.Context, bots, generations []int64) ([]int64, error)
}

// targets knows where the bots' webhooks are.
type targets interface {
	Targets(ctx context.Context, ids []int64) (map[int64]bots.Target, error)
}

// Poster makes one request to a bot's endpoint and tells what came of it, as
// Sender does; Forget lets go of what it keeps for a bot.
type Poster interface {
	Send(ctx context.Context, r Request) delivery.Answer
	Forget(botID int64)
}

// Worker delivers updates to webhooks: it claims the bots that are due, sends
// each its first waiting update, and settles the answer, one request a bot at a
// time. Any number of workers may run on one database.
type Worker struct {
	queue   queues
	targets targets
	sender  Poster
	clock   delivery.Clock
	log     *slog.Logger
	metrics *metrics
	slots   int
	calm    int // of them kept for bots without trouble

	poke chan struct{} // something may be claimed

	mu       sync.Mutex
	hooks    map[int64]bool // the bots that receive by webhook, as of the last sweep; true: in trouble
	want     map[int64]struct{}
	flights  map[int64]*flight
	troubled int       // flights of bots in trouble
	due      time.Time // when the next wait ends, on the product's clock; zero: none
	known    map[int64]bots.Target
	shy      map[int64]time.Time // bots whose secret doesn't open, until when they are left alone
	looked   time.Time           // when the last sweep succeeded
}

// Options is what a worker works with.
type Options struct {
	Queue   *queue.Queue
	Bots    *bots.Store
	Sender  Poster
	Clock   delivery.Clock
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// NewWorker returns a worker; Run starts it.
func NewWorker(o Options) *Worker {
	w := newWorker(o.Queue, o.Bots, o.Sender, o.Clock, o.Log)
	w.metrics = newMetrics(o.Metrics, w)
	return w
}

func newWorker(q queues, t targets, s Poster, clock delivery.Clock, log *slog.Logger) *Worker {
	return &Worker{
		queue: q, targets: t, sender: s, clock: clock, log: log, slots: slots, calm: calmSlots, poke: make(chan struct{}, 1),
		hooks: map[int64]bool{}, want: map[int64]struct{}{}, flights: map[int64]*flight{}, known: map[int64]bots.Target{}, shy: map[int64]time.Time{},
	}
}

// Ring says that a bot may have something to send, or was changed. It only
// takes a note, so it may be called from anywhere.
func (w *Worker) Ring(botID int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wish(botID)
}

// RingAll says that any bot may have.
func (w *Worker) RingAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for botID := range w.hooks {
		w.wish(botID)
	}
}

// wish puts the bot among those to be claimed. The lock is held.
func (w *Worker) wish(botID int64) {
	if f := w.flights[botID]; f != nil {
		f.rung, f.looked = true, false
		return
	}
	if _, ours := w.hooks[botID]; !ours {
		return // long polling, or new: the sweep knows it soon
	}
	w.want[botID] = struct{}{}
	w.nudge()
}

func (w *Worker) nudge() {
	select {
	case w.poke <- struct{}{}:
	default: // it is poked already
	}
}

// Run delivers until ctx ends, then lets the requests that are under way finish
// for ten seconds and returns when all have settled.
func (w *Worker) Run(ctx context.Context) {
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stopGrace := context.AfterFunc(ctx, func() { time.AfterFunc(graceTime, cut) })
	defer stopGrace()
	var flying sync.WaitGroup
	defer flying.Wait()
	var fences sync.WaitGroup
	fences.Go(func() { w.watchFences(ctx) }) // ends with ctx
	defer fences.Wait()

	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	w.sweep(ctx)
	for ctx.Err() == nil {
		again := w.claim(ctx, func(f *flight) {
			flying.Go(func() { w.fly(ctx, sending, f) }) // ends with its last request, at the latest when sending does
		})
		due, stopTimer := w.timer()
		select {
		case <-w.poke:
		case <-again:
		case <-tick.C:
			w.sweep(ctx)
		case <-due:
			w.sweep(ctx)
		case <-ctx.Done():
		}
		stopTimer()
	}
}

// timer is closed when the next wait ends; never when there is none.
func (w *Worker) timer() (<-chan struct{}, func()) {
	w.mu.Lock()
	at := w.due
	w.mu.Unlock()
	if at.IsZero() {
		return nil, func() {}
	}
	return w.clock.At(at)
}

// sweep looks at every bot that receives by webhook.
func (w *Worker) sweep(ctx context.Context) {
	look, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	list, err := w.queue.DueWebhooks(look)
	if err != nil {
		if ctx.Err() == nil {
			w.log.WarnContext(ctx, "the webhooks can't be looked at", "err", err)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked, w.due = time.Now(), time.Time{}
	before := w.hooks
	w.hooks = make(map[int64]bool, len(list))
	for _, d := range list {
		w.hooks[d.BotID] = d.Trouble
		delete(before, d.BotID)
		w.dueAt(d.At.Time)
		if d.Ready && w.flights[d.BotID] == nil {
			w.want[d.BotID] = struct{}{}
		}
	}
	for botID := range before { // they receive otherwise now
		delete(w.known, botID)
		delete(w.shy, botID)
		delete(w.want, botID)
		w.sender.Forget(botID)
	}
}

// dueAt notes when a bot's wait ends. The lock is held.
func (w *Worker) dueAt(at time.Time) {
	if !at.IsZero() && (w.due.IsZero() || at.Before(w.due)) {
		w.due = at
	}
}

// Progress returns how long ago the worker last saw the database; it fails the
// process's readiness when that is long (G-07).
func (w *Worker) Progress() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looked.IsZero() {
		return 0
	}
	return time.Since(w.looked)
}

// candidates are bots that are wanted and have a slot: up to a batch.
func (w *Worker) candidates() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	free := min(w.slots-len(w.flights), claimBatch)
	rough := w.slots - w.calm - w.troubled
	var calm, troubled []int64
	for botID := range w.want {
		switch until, shy := w.shy[botID]; {
		case shy && now.Before(until):
			delete(w.want, botID)
		case w.hooks[botID]:
			if len(troubled) < rough {
				troubled = append(troubled, botID)
			}
		default:
			calm = append(calm, botID)
		}
	}
	list := append(calm, troubled...)
	list = list[:min(len(list), max(free, 0))]
	for _, botID := range list {
		delete(w.want, botID)
	}
	slices.Sort(list)
	return list
}

// claim claims what is wanted while there are slots, and starts the flights.
// When it should be called again soon, the channel says when.
func (w *Worker) claim(ctx context.Context, start func(*flight)) (again <-chan time.Time) {
	for ctx.Err() == nil {
		list := w.candidates()
		if len(list) == 0 {
			return again
		}
		began := time.Now() // the claims end ClaimTime after this, or later
		work, cancel := context.WithTimeout(ctx, workTime)
		got, err := w.queue.Claim(work, list, len(list))
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				w.log.WarnContext(ctx, "webhooks can't be claimed", "bots", len(list), "err", err)
			}
			return again // the sweep finds them
		}
		w.expire(ctx, got.Expired)
		if len(got.Busy) > 0 {
			w.wishAgain(got.Busy)
			again = time.After(busyPause)
		}
		w.aim(ctx, got.Claims)
		for _, c := range got.Claims {
			if f := w.board(c, began.Add(queue.ClaimTime)); f != nil {
				start(f)
				continue
			}
			w.release(ctx, c, false)
		}
		if len(got.Busy) > 0 {
			return again
		}
	}
	return again
}

// wishAgain keeps bots for the next claim, without asking for it now.
func (w *Worker) wishAgain(list []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, botID := range list {
		w.want[botID] = struct{}{}
	}
}

func (w *Worker) expire(ctx context.Context, list []int64) {
	for _, botID := range list {
		if _, err := w.queue.ExpireOf(ctx, botID); err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "expired updates can't be removed", "bot_id", botID, "err", err)
		}
	}
}

// aim learns the addresses and secrets that the claims need.
func (w *Worker) aim(ctx context.Context, claims []queue.Claim) {
	var missing []int64
	w.mu.Lock()
	for _, c := range claims {
		if t, ok := w.known[c.BotID]; !ok || t.Version != c.Version {
			missing = append(missing, c.BotID)
		}
	}
	w.mu.Unlock()
	if len(missing) == 0 {
		return
	}
	work, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	found, err := w.targets.Targets(work, missing)
	if err != nil && ctx.Err() == nil { // the database, or a secret that was sealed with another key
		w.log.ErrorContext(ctx, "webhook addresses can't be read", "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.Copy(w.known, found)
	for _, botID := range missing {
		if _, ok := found[botID]; !ok && found != nil {
			w.shy[botID] = time.Now().Add(unsealedTime)
		}
	}
}
