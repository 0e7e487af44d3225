-- +goose Up

-- The state of webhook delivery, beside the state of long polling: the row's
-- lock decides both. Times are the product's, but for claim_until.
ALTER TABLE queues
    ADD COLUMN hook_allowed     boolean  NOT NULL DEFAULT true, -- by the platform (W-03)
    ADD COLUMN generation       bigint   NOT NULL DEFAULT 0,    -- fences: every claim and every change from outside is a new one
    ADD COLUMN claim_generation bigint   NOT NULL DEFAULT 0,    -- of the claim that claim_until belongs to
    ADD COLUMN claim_until      timestamptz,                    -- real time, of the database's clock
    ADD COLUMN hook_paused      text     NOT NULL DEFAULT '',   -- the code that paused delivery
    ADD COLUMN stopped_at       timestamptz,                    -- since when nothing is sent, by any pause
    ADD COLUMN due_at           timestamptz,                    -- nothing is sent before
    ADD COLUMN connect_failures integer  NOT NULL DEFAULT 0,    -- failed connections since the last 2xx
    ADD COLUMN used_up          smallint NOT NULL DEFAULT 0,    -- updates in a row that used up their budget
    ADD COLUMN breaker          integer  NOT NULL DEFAULT 0,    -- 0 closed, n: the n-th pause
    ADD COLUMN probe_asked      boolean  NOT NULL DEFAULT false,
    ADD COLUMN head_id          bigint   NOT NULL DEFAULT 0,    -- whose budget follows
    ADD COLUMN head_attempts    integer  NOT NULL DEFAULT 0,
    ADD COLUMN head_charged     smallint NOT NULL DEFAULT 0,
    ADD COLUMN head_failed_at   timestamptz,
    ADD COLUMN error_code       text     NOT NULL DEFAULT '',
    ADD COLUMN error_detail     text     NOT NULL DEFAULT '',
    ADD COLUMN error_at         timestamptz,
    ADD COLUMN success_at       timestamptz;

-- The bots to look after. The mode hardly ever changes, so the index costs the
-- row's many updates nothing.
CREATE INDEX queues_webhook ON queues (bot_id) WHERE mode = 'webhook';

-- What a request needs beside the update. Long addresses stay out of the hot row.
CREATE TABLE webhooks (
    bot_id   bigint      PRIMARY KEY,
    url      text        NOT NULL,
    secret   bytea,                 -- sealed; NULL while the bot receives by long polling
    version  bigint      NOT NULL,  -- of the settings that it was saved with: the seal is bound to it
    saved_at timestamptz NOT NULL
);

-- Whether it was the bot's program or its webhook that failed: the program's
-- reason is its own words, whatever they look like.
ALTER TABLE failed_updates ADD COLUMN by_webhook boolean NOT NULL DEFAULT false;

-- Every request that was made, for 7 days, in partitions by day that are dropped.
CREATE TABLE attempts (
    day       integer     NOT NULL, -- since 1970
    bot_id    bigint      NOT NULL,
    at        timestamptz NOT NULL, -- when it ended
    update_id bigint      NOT NULL,
    attempt   integer     NOT NULL, -- for this update, from 1
    fate      text        NOT NULL, -- what became of the update: confirmed, failed, stays
    code      text        NOT NULL, -- '' for a 2xx, else as in last_error
    detail    text        NOT NULL,
    status    integer     NOT NULL, -- 0: no answer
    took_us   bigint      NOT NULL,
    charged   smallint    NOT NULL  -- how much of the budget it left used
) PARTITION BY LIST (day);
CREATE INDEX attempts_bot ON attempts (bot_id, at);

-- Makes the partitions of a day, whoever comes first; see make_week.
-- +goose StatementBegin
CREATE FUNCTION make_day(p_day integer) RETURNS void LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('mybots days', 0));
    EXECUTE format('CREATE TABLE IF NOT EXISTS attempts_%s PARTITION OF attempts FOR VALUES IN (%s)', p_day, p_day);
END $$;
-- +goose StatementEnd

-- Drops the partitions of the days below p_day and returns how many there were.
-- +goose StatementBegin
CREATE FUNCTION drop_days(p_day integer) RETURNS integer LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    part record;
    dropped integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('mybots days', 0));
    FOR part IN
        SELECT c.relname
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'attempts'::regclass AND substring(c.relname FROM '[0-9]+$')::integer < p_day
    LOOP
        EXECUTE format('DROP TABLE %I', part.relname);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;
-- +goose StatementEnd

-- Claims those of the bots for which a request may be made now, up to p_limit,
-- for p_claim seconds, and returns the first waiting update of each. What is issued, and the number
-- of the attempt, is written before the request is made (W-06, W-15). A bot whose row
-- somebody holds just now comes back as busy, one whose first update has
-- expired as expired; neither is claimed. The planner's settings are those of
-- append_events; they make the one row of platform look dear, and compiling the
-- statement for that would cost a hundred times what it takes.
-- +goose StatementBegin
CREATE FUNCTION claim_webhooks(p_now timestamptz, p_bot bigint[], p_limit integer, p_claim integer)
RETURNS TABLE (
    bot_id bigint, busy boolean, expired boolean, generation bigint, version bigint, trouble boolean, attempt integer,
    update_id bigint, event_id uuid, type text, date timestamptz, replay_of bigint, payload bytea
) LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    free bigint[];
    positions bigint[];
    taken bigint[];
    old bigint[];
BEGIN
    SELECT array_agg(q.bot_id), array_agg(q.confirmed) INTO free, positions
      FROM (SELECT q.bot_id, q.confirmed FROM queues q CROSS JOIN platform p
             WHERE q.bot_id = ANY (p_bot) AND q.mode = 'webhook' AND q.waiting > 0 AND q.hook_paused = '' AND q.hook_allowed
               AND NOT q.deleted AND NOT q.paused AND NOT q.disabled AND NOT p.maintenance
               AND (q.due_at IS NULL OR q.due_at <= p_now OR q.probe_asked)
               AND (q.claim_until IS NULL OR q.claim_until <= clock_timestamp())
             ORDER BY q.bot_id LIMIT p_limit FOR UPDATE OF q SKIP LOCKED) q;

    RETURN QUERY
    SELECT q.bot_id, true, false, 0::bigint, 0::bigint, false, 0, 0::bigint, NULL::uuid, ''::text, NULL::timestamptz, 0::bigint, NULL::bytea
      FROM queues q CROSS JOIN platform p
     WHERE q.bot_id = ANY (p_bot) AND q.bot_id <> ALL (coalesce(free, '{}')) AND q.mode = 'webhook' AND q.waiting > 0
       AND q.hook_paused = '' AND q.hook_allowed AND NOT q.deleted AND NOT q.paused AND NOT q.disabled AND NOT p.maintenance
       AND (q.due_at IS NULL OR q.due_at <= p_now OR q.probe_asked)
       AND (q.claim_until IS NULL OR q.claim_until <= clock_timestamp());
    IF free IS NULL THEN
        RETURN;
    END IF;

    -- A statement of its own: it sees all that was committed before the locks.
    SELECT array_agg(f.bot) FILTER (WHERE u.expires_at <= p_now), array_agg(f.bot) FILTER (WHERE u.expires_at > p_now)
      INTO old, taken
      FROM unnest(free, positions) AS f (bot, position)
      JOIN LATERAL (SELECT u.expires_at FROM updates u WHERE u.bot_id = f.bot AND u.update_id >= f.position
                     ORDER BY u.update_id LIMIT 1) u ON true;

    IF old IS NOT NULL THEN
        RETURN QUERY
        SELECT o.bot, false, true, 0::bigint, 0::bigint, false, 0, 0::bigint, NULL::uuid, ''::text, NULL::timestamptz, 0::bigint, NULL::bytea FROM unnest(old) AS o (bot);
    END IF;

    RETURN QUERY
    WITH heads AS (
        SELECT t.bot, u.* FROM unnest(free, positions) AS t (bot, position)
          JOIN LATERAL (SELECT u.update_id, u.event_id, u.type, u.date, u.replay_of, u.payload FROM updates u
                         WHERE u.bot_id = t.bot AND u.update_id >= t.position ORDER BY u.update_id LIMIT 1) u ON true
         WHERE t.bot = ANY (taken)
    ), claimed AS (
        UPDATE queues q SET
            generation = q.generation + 1, claim_generation = q.generation + 1, claim_until = clock_timestamp() + make_interval(secs => p_claim),
            max_issued = greatest(q.max_issued, h.update_id),
            head_attempts = CASE WHEN q.head_id = h.update_id THEN q.head_attempts ELSE 0 END + 1,
            head_charged = CASE WHEN q.head_id = h.update_id THEN q.head_charged ELSE 0 END,
            head_failed_at = CASE WHEN q.head_id = h.update_id THEN q.head_failed_at END,
            head_id = h.update_id
          FROM heads h WHERE q.bot_id = h.bot
        RETURNING q.bot_id, q.generation, q.settings_version, q.due_at IS NOT NULL OR q.connect_failures > 0 OR q.breaker > 0 OR q.head_charged > 0 AS trouble, q.head_attempts,
                  h.update_id, h.event_id, h.type, h.date, h.replay_of, h.payload
    )
    SELECT c.bot_id, false, false, c.generation, c.settings_version, c.trouble, c.head_attempts,
           c.update_id, c.event_id, c.type, c.date, c.replay_of, c.payload
      FROM claimed c;
END $$;
-- +goose StatementEnd

-- Confirms updates that their webhooks answered with a 2xx, of one bot each, and
-- returns a row for each, with the bot's next update, claimed already, where one
-- may be sent. A bot whose generation is another one by now has no row, and
-- nothing happens to it (W-13). The arrays are sorted by bot. With p_skip a row that somebody else
-- holds isn't waited for; it comes back as busy. Without p_next nothing is claimed.
-- +goose StatementBegin
CREATE FUNCTION confirm_webhooks(
    p_now timestamptz, p_day integer, p_claim integer, p_next boolean, p_skip boolean,
    p_bot bigint[], p_generation bigint[], p_update bigint[], p_attempt bigint[], p_status bigint[], p_took bigint[]
) RETURNS TABLE (
    bot_id bigint, busy boolean, update_id bigint, event_id uuid, type text, date timestamptz, replay_of bigint, payload bytea
) LANGUAGE plpgsql
SET jit = off SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
SET lock_timeout = '500ms' AS $$
#variable_conflict use_column
DECLARE
    b bigint[]; u bigint[]; a bigint[]; s bigint[]; t bigint[]; -- of those that hold their claim still
    may boolean[];
    held bigint[];
BEGIN
    IF p_skip THEN
        SELECT array_agg(q.bot_id) INTO b
          FROM (SELECT q.bot_id FROM queues q WHERE q.bot_id = ANY (p_bot) ORDER BY q.bot_id FOR UPDATE SKIP LOCKED) q;
        SELECT array_agg(p.bot) INTO held FROM unnest(p_bot) AS p (bot) WHERE p.bot <> ALL (coalesce(b, '{}'));
        RETURN QUERY SELECT h.bot, true, NULL::bigint, NULL::uuid, ''::text, NULL::timestamptz, 0::bigint, NULL::bytea FROM unnest(held) AS h (bot);
    ELSE
        b := p_bot;
    END IF;
    PERFORM FROM queues q WHERE q.bot_id = ANY (b) ORDER BY q.bot_id FOR UPDATE;
    SELECT array_agg(p.bot), array_agg(p.update_id), array_agg(p.attempt), array_agg(p.status), array_agg(p.took),
           array_agg(p_next AND q.mode = 'webhook' AND q.hook_allowed AND NOT q.deleted AND NOT q.paused AND NOT q.disabled AND NOT m.maintenance)
      INTO b, u, a, s, t, may
      FROM unnest(p_bot, p_generation, p_update, p_attempt, p_status, p_took) AS p (bot, generation, update_id, attempt, status, took)
      JOIN queues q ON q.bot_id = p.bot AND q.generation = p.generation AND (NOT p_skip OR p.bot = ANY (b))
     CROSS JOIN platform m;
    IF b IS NULL THEN
        RETURN;
    END IF;

    -- Parts of one statement see the same: what one deletes the others still find.
    -- Each looks rows up by their keys; joins of parts would compare all with all.
    RETURN QUERY
    WITH gone AS (
        DELETE FROM updates w USING unnest(b, u) AS d (bot, update_id) WHERE w.bot_id = d.bot AND w.update_id = d.update_id
    ), settled AS (
        UPDATE queues q SET
            confirmed = coalesce(n.update_id, q.next_update_id),
            waiting = q.waiting - CASE WHEN g.size IS NULL THEN 0 ELSE 1 END, waiting_bytes = q.waiting_bytes - coalesce(g.size, 0),
            claim_until = CASE WHEN d.may AND n.expires_at > p_now THEN clock_timestamp() + make_interval(secs => p_claim) END,
            max_issued = CASE WHEN d.may AND n.expires_at > p_now THEN greatest(q.max_issued, n.update_id) ELSE q.max_issued END,
            head_id = CASE WHEN d.may AND n.expires_at > p_now THEN n.update_id ELSE 0 END,
            head_attempts = CASE WHEN d.may AND n.expires_at > p_now THEN 1 ELSE 0 END, head_charged = 0, head_failed_at = NULL,
            due_at = NULL, connect_failures = 0, used_up = 0, breaker = 0, probe_asked = false, success_at = p_now
          FROM unnest(b, u, may) AS d (bot, update_id, may)
          LEFT JOIN LATERAL (SELECT octet_length(w.payload) AS size FROM updates w WHERE w.bot_id = d.bot AND w.update_id = d.update_id) g ON true
          LEFT JOIN LATERAL (SELECT n.update_id, n.event_id, n.type, n.date, n.replay_of, n.payload, n.expires_at FROM updates n
                              WHERE n.bot_id = d.bot AND n.update_id > d.update_id ORDER BY n.update_id LIMIT 1) n ON true
         WHERE q.bot_id = d.bot
        RETURNING q.bot_id, q.confirmed, d.update_id AS done_id, d.may AND n.expires_at > p_now AS may,
                  n.update_id, n.event_id, n.type, n.date, n.replay_of, n.payload
    ), passed AS (
        DELETE FROM skips k USING settled x
         WHERE x.confirmed > x.done_id + 1 AND k.bot_id = x.bot_id AND k.to_id < x.confirmed
    ), kept AS (
        INSERT INTO attempts (day, bot_id, at, update_id, attempt, fate, code, detail, status, took_us, charged)
        SELECT p_day, k.bot, p_now, k.update_id, k.attempt, 'confirmed', '', '', k.status, k.took, 0
          FROM unnest(b, u, a, s, t) AS k (bot, update_id, attempt, status, took)
    )
    SELECT x.bot_id, false, CASE WHEN x.may THEN x.update_id END, CASE WHEN x.may THEN x.event_id END, coalesce(x.type, ''),
           CASE WHEN x.may THEN x.date END, coalesce(x.replay_of, 0), CASE WHEN x.may THEN x.payload END
      FROM settled x;
END $$;
-- +goose StatementEnd
