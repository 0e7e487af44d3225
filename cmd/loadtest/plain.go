package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"mybots/delivery"
)

// makePlain makes the table of the plain limit: the columns and the key of the
// table that updates wait in, and nothing else.
func (s *site) makePlain(ctx context.Context) error {
	if _, err := s.plain.ExecContext(ctx, `
CREATE TABLE plain_updates (
    bot_id     bigint      NOT NULL,
    update_id  bigint      NOT NULL,
    event_id   uuid        NOT NULL,
    type       text        NOT NULL,
    date       timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    chat_id    bigint      NOT NULL,
    message_id bigint      NOT NULL,
    replay_of  bigint      NOT NULL DEFAULT 0,
    payload    bytea       NOT NULL,
    PRIMARY KEY (bot_id, update_id)
)`); err != nil {
		return fmt.Errorf("make the plain table: %w", err)
	}
	return nil
}

const plainSQL = `
INSERT INTO plain_updates (bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, payload)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

var plainID atomic.Int64

// plainVariant writes one row a commit by a prepared statement on connections of
// its own: what this PostgreSQL can do at best with a commit an event.
func (s *site) plainVariant(connections int) variant {
	return variant{part: partPlain, name: "INSERT", callers: connections, each: 1,
		start: func(ctx context.Context) (func() error, func() error, error) {
			conn, err := s.plain.Connx(ctx)
			if err != nil {
				return nil, nil, err
			}
			stmt, err := conn.PreparexContext(ctx, plainSQL)
			if err != nil {
				return nil, nil, err
			}
			call := func() error {
				e := newEvent(s.anyBot())
				// A context that can be cancelled would cost it a tenth.
				_, err := stmt.ExecContext(context.Background(), e.BotID, plainID.Add(1), e.EventID, e.Type, e.Date, e.Date.Add(delivery.Retention),
					e.ChatID, e.MessageID, e.Payload)
				return err
			}
			done := func() error {
				if err := stmt.Close(); err != nil {
					return err
				}
				return conn.Close()
			}
			return call, done, nil
		}}
}
