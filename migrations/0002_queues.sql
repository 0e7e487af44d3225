-- +goose Up

-- The row that decides: its lock orders ids and fences writers.
CREATE TABLE queues (
    bot_id            bigint  PRIMARY KEY,
    mode              text    NOT NULL DEFAULT 'polling' CHECK (mode IN ('polling', 'webhook')),
    settings_version  bigint  NOT NULL DEFAULT 1,
    deleted           boolean NOT NULL DEFAULT false,
    paused            boolean NOT NULL DEFAULT false,
    disabled          boolean NOT NULL DEFAULT false, -- its space runs no bots

    next_update_id    bigint  NOT NULL DEFAULT 1,
    confirmed         bigint  NOT NULL DEFAULT 1,
    max_issued        bigint  NOT NULL DEFAULT 0,
    waiting           integer NOT NULL DEFAULT 0,
    waiting_bytes     bigint  NOT NULL DEFAULT 0,
    failed            integer NOT NULL DEFAULT 0,

    epoch             bigint  NOT NULL DEFAULT 0,
    epoch_lost        boolean NOT NULL DEFAULT true,
    consumer_id       text    NOT NULL DEFAULT '',
    lease_since       timestamptz,
    lease_until       timestamptz,
    poll_until        timestamptz,
    ticket            bigint  NOT NULL DEFAULT 0,
    lease_max_issued  bigint  NOT NULL DEFAULT 0,
    lease_next_offset bigint  NOT NULL DEFAULT 0,

    tokens            double precision NOT NULL DEFAULT 0,
    tokens_at         timestamptz,

    conflict_consumer_id text NOT NULL DEFAULT '', -- the last caller that got CONSUMER_CONFLICT
    conflict_address     text NOT NULL DEFAULT '',
    conflict_at          timestamptz
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- What waits. A row leaves when it is confirmed, failed or skipped.
CREATE TABLE updates (
    bot_id     bigint      NOT NULL,
    update_id  bigint      NOT NULL,
    event_id   uuid        NOT NULL,
    type       text        NOT NULL,
    date       timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    chat_id    bigint      NOT NULL, -- 0: the event named none
    message_id bigint      NOT NULL, -- 0: the event named none
    replay_of  bigint      NOT NULL DEFAULT 0,
    payload    bytea       NOT NULL, -- the object's JSON; jsonb would reorder it and refuse \u0000
    PRIMARY KEY (bot_id, update_id)
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_insert_scale_factor = 0.2);

-- A replay keeps its first expiry date, so it may expire before what is ahead of it.
CREATE INDEX updates_replays ON updates (expires_at) WHERE replay_of <> 0;

-- Runs of ids that left the queue ahead of the position (P-13).
CREATE TABLE skips (
    bot_id  bigint NOT NULL,
    from_id bigint NOT NULL,
    to_id   bigint NOT NULL CHECK (to_id >= from_id),
    reason  text   NOT NULL CHECK (reason IN ('cancelled', 'skipped_by_owner', 'expired', 'failed')),
    PRIMARY KEY (bot_id, from_id)
);

CREATE TABLE failed_updates (
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
    reason     text        NOT NULL,
    attempts   integer     NOT NULL,
    failed_at  timestamptz NOT NULL,
    PRIMARY KEY (bot_id, update_id)
) WITH (toast_tuple_target = 8160);
CREATE INDEX failed_updates_expiry ON failed_updates (expires_at);

-- De-duplication for 7 days (I-03), in partitions by week that are dropped when
-- they are past: the present week and the one before hold every 7 days.
CREATE TABLE event_ids (
    week      integer     NOT NULL,
    bot_id    bigint      NOT NULL,
    event_id  uuid        NOT NULL,
    update_id bigint      NOT NULL,
    seen_at   timestamptz NOT NULL,
    PRIMARY KEY (week, bot_id, event_id)
) PARTITION BY LIST (week);

-- The stored successes of calls with an Idempotency-Key (A-06), likewise.
CREATE TABLE idempotency_keys (
    week        integer     NOT NULL,
    bot_id      bigint      NOT NULL,
    key         text        NOT NULL,
    fingerprint bytea       NOT NULL, -- SHA-256 of the method and the field values
    answer      bytea       NOT NULL, -- the result's JSON
    stored_at   timestamptz NOT NULL,
    PRIMARY KEY (week, bot_id, key)
) PARTITION BY LIST (week);

-- Makes the partitions of a week (weeks since 1970), whoever comes first. The
-- lock on the parent waits behind every transaction that uses it, and all later
-- ones wait behind the lock: so it gives up soon, and is tried again later.
-- +goose StatementBegin
CREATE FUNCTION make_week(p_week integer) RETURNS void LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('mybots weeks', 0));
    EXECUTE format('CREATE TABLE IF NOT EXISTS event_ids_%s PARTITION OF event_ids FOR VALUES IN (%s)', p_week, p_week);
    EXECUTE format('CREATE TABLE IF NOT EXISTS idempotency_keys_%s PARTITION OF idempotency_keys FOR VALUES IN (%s)', p_week, p_week);
END $$;
-- +goose StatementEnd

-- Drops the partitions of the weeks below p_week and returns how many there were.
-- +goose StatementBegin
CREATE FUNCTION drop_weeks(p_week integer) RETURNS integer LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
    part record;
    dropped integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('mybots weeks', 0));
    FOR part IN
        SELECT c.relname
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent IN ('event_ids'::regclass, 'idempotency_keys'::regclass)
          AND substring(c.relname FROM '[0-9]+$')::integer < p_week
    LOOP
        EXECUTE format('DROP TABLE %I', part.relname);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;
-- +goose StatementEnd
