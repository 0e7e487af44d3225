-- +goose Up

-- Writes a group of events into their bots' queues: the only way in. The arrays
-- run in parallel, sorted by bot; events of one bot stand in their order. Returns
-- one row an event, in order: its update_id and a verdict, 0 accepted,
-- 1 duplicate (the first update_id comes back), 2 no such bot, 3 its space runs
-- no bots, 4 paused, 5 the queue is full, 6 busy.
--
-- The bots' rows are locked first and in order of bot_id; all that follows is
-- decided from them. A row that somebody else holds is waited for, for half a
-- second; with p_skip it isn't, and its bot's events are busy: so one queue that
-- is held for long doesn't hold up the others.
--
-- Duplicates are rare, so the first round takes every event for a new one and
-- leaves it to the unique index to object; the second looks each one up.
--
-- The planner's settings keep a plan that was made while the tables were small
-- from scanning them when they are large.
-- +goose StatementBegin
CREATE FUNCTION append_events(
    p_now timestamptz, p_week integer, p_bot bigint[], p_event uuid[], p_type text[], p_date timestamptz[],
    p_chat bigint[], p_message bigint[], p_payload bytea[],
    p_size bigint[],      -- of the payload, in bytes
    p_new_chat boolean[], -- the chat may be unknown yet
    p_access text[],      -- what chat_access_changed says, '' for other events
    p_callback text[],    -- the callback query's id, '' for other events
    p_skip boolean
) RETURNS TABLE (id bigint, verdict smallint) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
SET lock_timeout = '500ms' AS $$
DECLARE
    n        integer := cardinality(p_bot);
    ids      bigint[];
    verdicts smallint[];
    known    bigint[] := array_fill(NULL::bigint, ARRAY[n]); -- the update_id that the event already has
    prior    bigint[] := known;  -- the place in the group of the same event before this one
    q_bot bigint[]; q_next bigint[]; q_waiting integer[]; q_bytes bigint[]; q_shut smallint[]; q_grown boolean[];
    b_next bigint[]; b_waiting integer[]; b_bytes bigint[]; b_grown boolean[]; -- as they were before the round
    busy bigint[];
    refused boolean;
    -- Replicas' clocks differ by a little: about the turn of a week one may be ahead.
    other_week integer := CASE WHEN to_timestamp((p_week + 1) * 604800::bigint) - p_now < interval '1 minute' THEN p_week + 1 ELSE p_week - 1 END;
    first_round integer := 1;
    j integer;
    deletion record;
    -- In a chat of the messenger its messages have its ids; a bot's have ids from here on.
    own_messages CONSTANT bigint := 1000000000000000000;
BEGIN
    IF p_skip THEN
        SELECT array_agg(bot_id) INTO q_bot
          FROM (SELECT bot_id FROM queues WHERE bot_id = ANY (p_bot) ORDER BY bot_id FOR UPDATE SKIP LOCKED) q;
        SELECT array_agg(bot_id) INTO busy FROM queues WHERE bot_id = ANY (p_bot) AND bot_id <> ALL (coalesce(q_bot, '{}'));
    ELSE
        q_bot := p_bot;
    END IF;
    SELECT array_agg(q.bot_id), array_agg(q.next_update_id), array_agg(q.waiting), array_agg(q.waiting_bytes),
           array_agg((CASE WHEN q.deleted THEN 2 WHEN q.disabled THEN 3 WHEN q.paused THEN 4 ELSE 0 END)::smallint),
           array_agg(false)
      INTO q_bot, b_next, b_waiting, b_bytes, q_shut, b_grown
      FROM (SELECT * FROM queues WHERE bot_id = ANY (q_bot) ORDER BY bot_id FOR UPDATE) q;

    IF EXISTS (
        SELECT FROM unnest(p_bot, p_event) AS e (bot, event)
          JOIN LATERAL (SELECT FROM event_ids i WHERE i.week IN (p_week - 1, other_week) AND i.bot_id = e.bot AND i.event_id = e.event LIMIT 1) s ON true)
    THEN
        first_round := 2;
    END IF;

    FOR round IN first_round..2 LOOP
        IF round = 2 THEN
            SELECT array_agg(u.known ORDER BY u.place), array_agg(u.prior ORDER BY u.place)
              INTO known, prior
              FROM (SELECT e.place, s.update_id AS known, lag(e.place) OVER (PARTITION BY e.bot, e.event ORDER BY e.place) AS prior
                      FROM unnest(p_bot, p_event) WITH ORDINALITY AS e (bot, event, place)
                      LEFT JOIN LATERAL (
                          SELECT i.update_id FROM event_ids i
                           WHERE i.week IN (p_week - 1, p_week, p_week + 1) AND i.bot_id = e.bot AND i.event_id = e.event
                             AND i.seen_at > p_now - interval '7 days'
                           LIMIT 1) s ON true) u;
        END IF;

        ids := array_fill(0::bigint, ARRAY[n]);
        verdicts := array_fill(0::smallint, ARRAY[n]);
        q_next := b_next; q_waiting := b_waiting; q_bytes := b_bytes; q_grown := b_grown;
        refused := false;
        j := 0;
        FOR i IN 1..n LOOP
            -- Both lists are sorted by bot: walk on to this event's row.
            WHILE j = 0 OR (j <= cardinality(q_bot) AND q_bot[j] < p_bot[i]) LOOP
                j := j + 1;
            END LOOP;
            IF q_bot IS NULL OR j > cardinality(q_bot) OR q_bot[j] <> p_bot[i] OR q_shut[j] = 2 THEN
                verdicts[i] := CASE WHEN p_bot[i] = ANY (busy) THEN 6 ELSE 2 END;
            ELSIF round = 2 AND known[i] IS NOT NULL THEN
                verdicts[i] := 1;
                ids[i] := known[i];
            ELSIF round = 2 AND prior[i] IS NOT NULL AND verdicts[prior[i]] < 2 THEN
                verdicts[i] := 1;
                ids[i] := ids[prior[i]];
            ELSIF q_shut[j] > 0 THEN
                verdicts[i] := q_shut[j];
                refused := true;
            ELSIF q_waiting[j] >= 10000 OR q_bytes[j] + p_size[i] > 52428800 THEN
                verdicts[i] := 5;
                refused := true;
            ELSE
                ids[i] := q_next[j];
                q_next[j] := q_next[j] + 1;
                q_waiting[j] := q_waiting[j] + 1;
                q_bytes[j] := q_bytes[j] + p_size[i];
                q_grown[j] := true;
            END IF;
        END LOOP;
        CONTINUE WHEN round = 1 AND refused; -- what is refused may be a duplicate

        BEGIN
            INSERT INTO event_ids (week, bot_id, event_id, update_id, seen_at)
            SELECT p_week, e.bot, e.event, e.id, p_now
              FROM unnest(p_bot, ids, verdicts, p_event) AS e (bot, id, verdict, event)
             WHERE e.verdict = 0;
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            IF round = 2 THEN
                RAISE;
            END IF;
        END;
    END LOOP;

    UPDATE queues q SET next_update_id = c.next, waiting = c.waiting, waiting_bytes = c.bytes
      FROM unnest(q_bot, q_next, q_waiting, q_bytes, q_grown) AS c (bot, next, waiting, bytes, grown)
     WHERE q.bot_id = c.bot AND c.grown;

    INSERT INTO updates (bot_id, update_id, event_id, type, date, expires_at, chat_id, message_id, payload)
    SELECT e.bot, e.id, e.event, e.type, e.date, p_now + interval '7 days', e.chat, e.message, e.payload
      FROM unnest(p_bot, ids, verdicts, p_event, p_type, p_date, p_chat, p_message, p_payload)
           AS e (bot, id, verdict, event, type, date, chat, message, payload)
     WHERE e.verdict = 0;

    IF true = ANY (p_new_chat) THEN
        INSERT INTO chats (bot_id, chat_id, next_message_id)
        SELECT DISTINCT e.bot, e.chat, own_messages
          FROM unnest(p_bot, verdicts, p_chat, p_new_chat) AS e (bot, verdict, chat, fresh)
         WHERE e.fresh AND e.chat > 0 AND e.verdict = 0
        ON CONFLICT DO NOTHING;
    END IF;

    IF EXISTS (SELECT FROM unnest(p_access) a WHERE a <> '') THEN
        INSERT INTO chats (bot_id, chat_id, next_message_id, access)
        SELECT DISTINCT ON (e.bot, e.chat) e.bot, e.chat, own_messages, e.access
          FROM unnest(p_bot, ids, verdicts, p_chat, p_access) AS e (bot, id, verdict, chat, access)
         WHERE e.access <> '' AND e.chat > 0 AND e.verdict = 0
         ORDER BY e.bot, e.chat, e.id DESC -- of two changes the later one holds
        ON CONFLICT (bot_id, chat_id) DO UPDATE SET access = excluded.access;
    END IF;

    IF EXISTS (SELECT FROM unnest(p_callback) c WHERE c <> '') THEN
        INSERT INTO callbacks (bot_id, callback_id, chat_id, message_id)
        SELECT e.bot, e.callback, e.chat, e.message
          FROM unnest(p_bot, verdicts, p_chat, p_message, p_callback) AS e (bot, verdict, chat, message, callback)
         WHERE e.callback <> '' AND e.verdict = 0
        ON CONFLICT DO NOTHING;
    END IF;

    FOR deletion IN
        SELECT e.bot, e.id, e.chat, e.message
          FROM unnest(p_bot, ids, verdicts, p_type, p_chat, p_message) AS e (bot, id, verdict, type, chat, message)
         WHERE e.verdict = 0 AND e.type = 'message_deleted' AND e.chat > 0 AND e.message > 0
         ORDER BY e.bot, e.id
    LOOP
        PERFORM cancel_message(deletion.bot, deletion.chat, deletion.message, deletion.id);
    END LOOP;

    RETURN QUERY SELECT * FROM unnest(ids, verdicts);
END $$;
-- +goose StatementEnd

-- A deleted message cancels every FAILED update about it, and every waiting one
-- below p_before that was never issued (F-04). The queue's row is locked.
-- +goose StatementBegin
CREATE FUNCTION cancel_message(p_bot bigint, p_chat bigint, p_message bigint, p_before bigint) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
    position_of bigint;
    issued bigint;
    failures integer;
BEGIN
    SELECT confirmed, max_issued INTO position_of, issued FROM queues WHERE bot_id = p_bot;

    WITH gone AS (
        DELETE FROM updates
         WHERE bot_id = p_bot AND update_id >= greatest(position_of, issued + 1) AND update_id < p_before
           AND chat_id = p_chat AND message_id = p_message
        RETURNING update_id, octet_length(payload) AS size
    ), marked AS (
        INSERT INTO skips (bot_id, from_id, to_id, reason) SELECT p_bot, update_id, update_id, 'cancelled' FROM gone
    )
    UPDATE queues SET waiting = waiting - g.n, waiting_bytes = waiting_bytes - g.bytes
      FROM (SELECT count(*) AS n, coalesce(sum(size), 0) AS bytes FROM gone) g
     WHERE bot_id = p_bot AND g.n > 0;

    DELETE FROM failed_updates WHERE bot_id = p_bot AND chat_id = p_chat AND message_id = p_message;
    GET DIAGNOSTICS failures = ROW_COUNT;
    IF failures > 0 THEN
        UPDATE queues SET failed = failed - failures WHERE bot_id = p_bot;
    END IF;
END $$;
-- +goose StatementEnd
