package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	store "mybots/delivery/bots"
	"mybots/delivery/webhook"
)

const (
	hookSides   = 2   // plain HTTP and TLS
	hookBots    = 500 // of each side
	hookUpdates = 20  // of each bot, where the rate is measured
)

// side is one way of reaching webhooks: who sends, to which sink, for which bots.
type side struct {
	name    string
	sink    *sink
	poster  webhook.Poster
	bots    []int64
	targets map[int64]store.Target
}

// webhooks measures delivery, all lines in turn, round after round. Both sides
// keep their connections from one round to the next.
func (s *site) webhooks(ctx context.Context, p plan, r *report) (err error) {
	plain := &side{name: "plain HTTP", bots: s.hooked[:hookBots]}
	secure := &side{name: "TLS", bots: s.hooked[hookBots:]}
	sides := []*side{plain, secure}
	for _, d := range sides {
		if d.sink, err = newSink(d == secure); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.sink.close()) }()
	}
	poster := newPlainPoster()
	defer poster.CloseIdleConnections()
	plain.poster = poster
	port, err := strconv.ParseUint(secure.sink.port, 10, 16)
	if err != nil {
		return err
	}
	sender := webhook.NewSender(webhook.NewGuard(webhook.GuardOptions{
		AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowPorts: []uint16{uint16(port)}, Roots: secure.sink.roots,
	}), delivery.NewClock(0))
	defer sender.Close()
	secure.poster = sender
	if err := os.WriteFile(filepath.Join(s.folder, authorityFile), secure.sink.pem, 0o644); err != nil {
		return err
	}
	s.say("giving %d bots webhooks", hookSides*hookBots)
	if err := s.makeHooks(ctx, sides); err != nil {
		return err
	}
	if err := s.hookRates(ctx, p.hooks, sides, r); err != nil {
		return err
	}
	return s.hookTimes(ctx, p.hooks, plain, secure, r)
}

// authorityFile is the child's MYBOTS_WEBHOOK_CA_FILE, in the run's folder.
const authorityFile = "authority.pem"

// makeHooks saves the bots' webhooks as their owner would.
func (s *site) makeHooks(ctx context.Context, sides []*side) (err error) {
	w, err := s.newWorks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	const hands = 8
	for _, d := range sides {
		failed := make([]error, hands)
		var saving sync.WaitGroup
		for hand := range hands {
			saving.Go(func() { // ends with its share of the bots
				for i := hand; i < len(d.bots); i += hands {
					if _, _, err := w.bots.SaveWebhook(ctx, store.Actor{UserID: s.owner}, d.bots[i], 1, d.sink.address(d.bots[i]), false); err != nil {
						failed[hand] = err
						return
					}
				}
			})
		}
		saving.Wait()
		if err := errors.Join(failed...); err != nil {
			return fmt.Errorf("save webhooks: %w", err)
		}
		if d.targets, err = w.bots.Targets(ctx, d.bots); err != nil {
			return err
		}
	}
	if err := w.queue.MakeDays(ctx); err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `VACUUM ANALYZE`)
	return err
}

// ledger counts what the database is asked, from one reading to the next. What
// the counting itself takes is left out.
type ledger struct {
	conn *sqlx.Conn
	own  int
}

func (s *site) newLedger(ctx context.Context) (*ledger, error) {
	conn, err := s.db.Connx(ctx)
	if err != nil {
		return nil, err
	}
	return &ledger{conn: conn}, nil
}

func (l *ledger) get(ctx context.Context, query string) (n int, err error) {
	l.own++
	if err := l.conn.GetContext(ctx, &n, query); err != nil {
		return 0, fmt.Errorf("look at the database: %w", err)
	}
	return n, nil
}

// waiting is how many updates wait for webhooks.
func (l *ledger) waiting(ctx context.Context) (int, error) {
	return l.get(ctx, `SELECT coalesce(sum(waiting), 0) FROM queues WHERE mode = 'webhook' AND waiting > 0`)
}

// transactions is how many there were up to now. Servers count what they have
// done when they end, so all others must have ended; it waits for that.
func (l *ledger) transactions(ctx context.Context) (int, error) {
	for {
		n, err := l.get(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`)
		if err != nil {
			return 0, err
		}
		if n <= 1 {
			break
		}
	}
	l.own++
	if _, err := l.conn.ExecContext(ctx, `SELECT pg_stat_force_next_flush()`); err != nil {
		return 0, err
	}
	n, err := l.get(ctx, `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`)
	if err != nil {
		return 0, err
	}
	n -= l.own - 1 // this reading isn't counted yet
	return n, nil
}

func (l *ledger) close() error { return l.conn.Close() }
