package main

import (
	"context"
	"fmt"
	"time"

	"mybots/delivery"
	store "mybots/delivery/bots"
	"mybots/delivery/pg"
)

// How many bots there are for each use.
const (
	manyBots = 1_000
	hotBots  = 60 // taken one after another, since a queue holds 10,000 updates
)

// bots are the bots of a site, an empty queue each.
type bots struct {
	key     delivery.Secret // for intake
	many    []int64
	hot     []int64
	pollers []poller // each polls in one part: its lease outlives the part
	hooked  []int64  // they get webhooks in the last part
	owner   int64    // of all of them
}

// poller is a bot that waits for updates.
type poller struct {
	bot   int64
	token delivery.Secret
}

// makeBots makes all bots of the run in a few statements.
func (s *site) makeBots(ctx context.Context, pollers, hooked int) error {
	clock := delivery.NewClock(0)
	st := store.New(s.db, clock, s.queue, nil) // nothing is sealed here
	space, err := st.AddSpace(ctx, "Load")
	if err != nil {
		return err
	}
	owner, err := st.AddPerson(ctx, store.NewPerson{Email: "load@example.com", SpaceID: space, Role: "owner", Password: delivery.NewSecret("")})
	if err != nil {
		return err
	}
	s.owner = owner
	if s.key, err = st.AddKey(ctx, "load"); err != nil {
		return err
	}
	n := manyBots + hotBots + pollers + hooked
	hashes := make(pg.Byteas, n)
	tokens := make([]delivery.Secret, n)
	for i := range tokens {
		tokens[i] = delivery.NewSecret(delivery.BotTokenPrefix)
		hashes[i] = tokens[i].Hash()
	}
	var ids []int64
	err = s.db.SelectContext(ctx, &ids, `
WITH b AS (
    INSERT INTO bots (space_id, owner_id, username, name, created_at)
    SELECT $1, $2, 'load_bot_' || n, 'Bot ' || n, $3 FROM generate_series(1, $4::integer) n RETURNING bot_id
), q AS (
    INSERT INTO queues (bot_id) SELECT bot_id FROM b
)
SELECT bot_id FROM b ORDER BY bot_id`, space, owner, clock.Now(), n)
	if err != nil {
		return fmt.Errorf("make %d bots: %w", n, err)
	}
	_, err = s.db.ExecContext(ctx, `
INSERT INTO bot_tokens (token_hash, bot_id, created_at) SELECT hash, bot, $3 FROM unnest($1::bytea[], $2::bigint[]) t (hash, bot)`,
		hashes, pg.Int8s(ids), clock.Now())
	if err != nil {
		return fmt.Errorf("give %d bots tokens: %w", n, err)
	}
	s.many, s.hot = ids[:manyBots], ids[manyBots:manyBots+hotBots]
	for i := manyBots + hotBots; i < n-hooked; i++ {
		s.pollers = append(s.pollers, poller{ids[i], tokens[i]})
	}
	s.hooked = ids[n-hooked:]
	began := time.Now()
	if _, err := s.db.ExecContext(ctx, `VACUUM ANALYZE`); err != nil { // as it is in a database of some age
		return fmt.Errorf("vacuum: %w", err)
	}
	s.say("made %d bots (vacuum %.1f s)", n, time.Since(began).Seconds())
	return nil
}
