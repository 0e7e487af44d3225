package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// passOn queues what a bot wrote for the messenger, in the transaction that
// wrote it.
func (s *Store) passOn(ctx context.Context, tx *sqlx.Tx, botID int64, method string, result []byte) error {
	if !s.outbound {
		return nil
	}
	body, err := encode(struct {
		BotID  string          `json:"bot_id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
	}{strconv.FormatInt(botID, 10), method, result})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO outbound (bot_id, body, written_at, due_at) VALUES ($1, $2, $3, $3)`, botID, string(body), s.clock.Now())
	if err != nil {
		return fmt.Errorf("queue a message of bot %d for the messenger: %w", botID, err)
	}
	return nil
}

// The pauses of Outbound.
const (
	outboundLook  = time.Second      // between two looks for what is due
	outboundClaim = 30 * time.Second // real time that a claim holds
	outboundTime  = 10 * time.Second // one request
	outboundMax   = 5 * time.Minute  // the longest pause after a failure
)

// Outbound passes on to the messenger what bots wrote (I-06): one POST a
// message to the address, JSON {bot_id, method, result}, with an Idempotency-Key
// by which the messenger knows a repeat. A bot's messages go in order. What gets
// no answer, 408, 429 or 5xx is sent again with growing pauses for 7 days; any
// other answer but a 2xx ends it.
type Outbound struct {
	db     *sqlx.DB
	clock  delivery.Clock
	log    *slog.Logger
	url    string
	client *http.Client
}

// NewOutbound returns the way to the messenger at url.
func NewOutbound(db *sqlx.DB, clock delivery.Clock, log *slog.Logger, url string) *Outbound {
	return &Outbound{db: db, clock: clock, log: log, url: url, client: &http.Client{
		Timeout:   outboundTime,
		Transport: &http.Transport{IdleConnTimeout: time.Minute}, // no proxy of the environment
		// A redirect would turn the POST into a GET elsewhere, and lose the message.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Run passes messages on until ctx ends.
func (o *Outbound) Run(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := o.round(ctx)
		if err != nil && ctx.Err() == nil {
			o.log.ErrorContext(ctx, "outbound round failed", "err", err)
		}
		if n > 0 && err == nil {
			continue // there may be more behind what went out
		}
		due, stop := o.clock.At(o.clock.Now().Add(outboundLook))
		select {
		case <-due:
		case <-ctx.Done():
		}
		stop()
	}
}

// claimSQL claims each bot's first message that is due and nobody's.
const claimSQL = `
UPDATE outbound o SET claimed_until = $2, attempts = attempts + 1
  FROM (SELECT f.bot_id, f.outbound_id FROM outbound f
         WHERE f.due_at <= $1 AND (f.claimed_until IS NULL OR f.claimed_until <= $3)
           AND NOT EXISTS (SELECT FROM outbound e WHERE e.bot_id = f.bot_id AND e.outbound_id < f.outbound_id)
         ORDER BY f.due_at LIMIT 16 FOR UPDATE SKIP LOCKED) first
 WHERE o.bot_id = first.bot_id AND o.outbound_id = first.outbound_id
RETURNING o.bot_id, o.outbound_id, o.body, o.attempts, o.written_at`

type outgoing struct {
	BotID      int64     `db:"bot_id"`
	OutboundID int64     `db:"outbound_id"`
	Body       string    `db:"body"`
	Attempts   int       `db:"attempts"`
	WrittenAt  time.Time `db:"written_at"`
}

// round sends what is due and returns how much of it is done with.
func (o *Outbound) round(ctx context.Context) (int, error) {
	var list []outgoing
	real := time.Now()
	if err := o.db.SelectContext(ctx, &list, claimSQL, o.clock.Now(), real.Add(outboundClaim), real); err != nil {
		return 0, pg.Mark(fmt.Errorf("claim outbound messages: %w", err))
	}
	done := 0
	for _, m := range list {
		status, err := o.post(ctx, m)
		again := err != nil || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
		now := o.clock.Now()
		level := slog.LevelInfo
		if status < 200 || status > 299 {
			level = slog.LevelWarn
		}
		o.log.Log(ctx, level, "outbound message", "bot_id", m.BotID, "outbound_id", m.OutboundID, "attempt", m.Attempts, "status", status, "err", err)
		if again && now.Sub(m.WrittenAt) < delivery.Retention {
			pause := min(time.Second<<min(m.Attempts-1, 10), outboundMax)
			_, err = o.db.ExecContext(ctx, `UPDATE outbound SET due_at = $3, claimed_until = NULL WHERE bot_id = $1 AND outbound_id = $2`, m.BotID, m.OutboundID, now.Add(pause))
		} else {
			done++
			_, err = o.db.ExecContext(ctx, `DELETE FROM outbound WHERE bot_id = $1 AND outbound_id = $2`, m.BotID, m.OutboundID)
		}
		if err != nil {
			return done, pg.Mark(fmt.Errorf("settle outbound message %d/%d: %w", m.BotID, m.OutboundID, err))
		}
	}
	return done, nil
}

// post sends one message and returns the answer's status, 0 when there was none.
func (o *Outbound) post(ctx context.Context, m outgoing) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader([]byte(m.Body)))
	if err != nil {
		return 0, errors.New("MYBOTS_OUTBOUND_URL can't be used")
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Idempotency-Key", fmt.Sprintf("%d-%d", m.BotID, m.OutboundID))
	resp, err := o.client.Do(req)
	if err != nil {
		return 0, errors.New("no answer from the messenger") // the client's error holds the whole address
	}
	defer resp.Body.Close()
	// Read a little, so that the connection can be used again; what it says doesn't matter.
	if _, err := io.CopyN(io.Discard, resp.Body, 64<<10); err != nil && !errors.Is(err, io.EOF) {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, nil
}
