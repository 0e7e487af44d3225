package wake

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

const (
	channel    = "mybots_wake"
	payloadMax = 7900                 // bytes; PostgreSQL takes fewer than 8000
	sendTime   = 5 * time.Second      // one NOTIFY
	sendPause  = 5 * time.Millisecond // between two, in which the next one grows
	sweepEvery = time.Second          // the net under the notifications
	pingEvery  = 20 * time.Second     // a connection that says nothing may be dead
)

// looker is the net's look at the queues: which of these bots has a reason to wake?
type looker interface {
	Changed(ctx context.Context, bots []int64) ([]int64, error)
}

// Replicas carries rings between the processes on one database. One sender a
// process names many bots in one NOTIFY after their commits (inside a commit it
// would take a lock for the whole database); one connection listens. What a lost
// connection misses is made good: after it is back everybody looks, and a sweep
// looks every second.
type Replicas struct {
	bell *Bell
	db   *sqlx.DB
	url  string
	log  *slog.Logger
	self string // names this process in its own notifications

	mu   sync.Mutex
	grew map[int64]struct{}
	more chan struct{}
}

// NewReplicas returns the carrier for bell. url is the database's address, for
// the connection that listens.
func NewReplicas(bell *Bell, db *sqlx.DB, url string, log *slog.Logger) *Replicas {
	return &Replicas{bell: bell, db: db, url: url, log: log, self: rand.Text()[:8], grew: map[int64]struct{}{}, more: make(chan struct{}, 1)}
}

// Ring rings for a bot in this process and, soon after, in all others.
func (r *Replicas) Ring(botID int64) {
	r.bell.Ring(botID)
	r.mu.Lock()
	r.grew[botID] = struct{}{}
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// Run sends, listens and sweeps until ctx ends.
func (r *Replicas) Run(ctx context.Context, queues looker) {
	var wg sync.WaitGroup
	wg.Go(func() { r.send(ctx) })          // ends with ctx
	wg.Go(func() { r.listen(ctx) })        // ends with ctx
	wg.Go(func() { r.sweep(ctx, queues) }) // ends with ctx
	wg.Wait()
}

func (r *Replicas) send(ctx context.Context) {
	for {
		select {
		case <-r.more:
		case <-ctx.Done():
			return
		}
		for _, payload := range r.payloads() {
			if err := r.notify(ctx, payload); err != nil && ctx.Err() == nil {
				// The others find out by their sweep.
				r.log.WarnContext(ctx, "notify failed", "err", err)
			}
		}
		select {
		case <-time.After(sendPause):
		case <-ctx.Done():
			return
		}
	}
}

// notifySQL commits without waiting for the disk: a ring needs no durability.
const notifySQL = `SELECT pg_notify($1, $2) FROM set_config('synchronous_commit', 'off', true)`

func (r *Replicas) notify(ctx context.Context, payload string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	_, err := r.db.ExecContext(ctx, notifySQL, channel, payload)
	return err
}

// payloads takes the bots that grew and names them in as few texts as fit.
func (r *Replicas) payloads() []string {
	r.mu.Lock()
	grew := r.grew
	r.grew = map[int64]struct{}{}
	r.mu.Unlock()
	var list []string
	var b strings.Builder
	for botID := range grew {
		if b.Len() > payloadMax-20 {
			list = append(list, b.String())
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString(r.self)
		}
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(botID, 10))
	}
	if b.Len() > 0 {
		list = append(list, b.String())
	}
	return list
}

func (r *Replicas) listen(ctx context.Context) {
	listener := pq.NewListener(r.url, 100*time.Millisecond, 5*time.Second, func(event pq.ListenerEventType, err error) {
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "listening connection", "event", int(event), "err", err)
		}
	})
	// Listen waits for the first connection, however long that takes; closing the
	// listener ends it.
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	if err := listener.Listen(channel); err != nil {
		if ctx.Err() == nil {
			r.log.ErrorContext(ctx, "listen failed; replicas are heard by the sweep alone", "err", err)
		}
		listener.Close()
		return
	}
	r.bell.RingAll() // what came before this moment wasn't heard
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var pings sync.WaitGroup
	defer pings.Wait()
	defer listener.Close()
	for {
		select {
		case n := <-listener.Notify:
			if n == nil { // connected again: notifications in between are lost
				r.bell.RingAll()
				continue
			}
			r.heard(n.Extra)
		case <-ping.C:
			pings.Go(func() { _ = listener.Ping() }) // finds a dead connection, which is then made anew; ends with the connection
		case <-ctx.Done():
			return
		}
	}
}

// heard rings for the bots that another process named.
func (r *Replicas) heard(payload string) {
	from, bots, _ := strings.Cut(payload, " ")
	if from == r.self {
		return
	}
	for text := range strings.FieldsSeq(bots) {
		botID, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			r.bell.RingAll()
			return
		}
		r.bell.Ring(botID)
	}
}

func (r *Replicas) sweep(ctx context.Context, queues looker) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := r.look(ctx, queues); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "sweep failed", "err", err)
		}
	}
}

func (r *Replicas) look(ctx context.Context, queues looker) error {
	waiting := r.bell.Waiting()
	if len(waiting) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	changed, err := queues.Changed(ctx, waiting)
	if err != nil {
		return fmt.Errorf("look at the waiting bots: %w", err)
	}
	for _, botID := range changed {
		r.bell.Ring(botID)
	}
	return nil
}
