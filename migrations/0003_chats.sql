-- +goose Up

-- The chats that a bot may write to: those that an event named (I-06), and
-- whether they still allow it (F-02).
CREATE TABLE chats (
    bot_id          bigint  NOT NULL,
    chat_id         bigint  NOT NULL,
    access          text    NOT NULL DEFAULT 'allowed' CHECK (access IN ('allowed', 'stopped', 'blocked', 'left')),
    next_message_id bigint  NOT NULL DEFAULT 1,
    PRIMARY KEY (bot_id, chat_id)
);

-- The messages of the test chat, and what bots wrote anywhere.
CREATE TABLE messages (
    bot_id      bigint      NOT NULL,
    chat_id     bigint      NOT NULL,
    message_id  bigint      NOT NULL,
    from_bot    boolean     NOT NULL,
    text        text        NOT NULL,
    reply_to    bigint      NOT NULL DEFAULT 0,
    buttons     text        NOT NULL DEFAULT '', -- JSON: rows of {"text","data"}
    sent_at     timestamptz NOT NULL,
    event_id    uuid,                            -- of a person's message: what intake was given
    state       text        NOT NULL DEFAULT 'sent' CHECK (state IN ('sending', 'sent', 'refused')),
    refused     text        NOT NULL DEFAULT '', -- the code that intake gave
    PRIMARY KEY (bot_id, chat_id, message_id)
);

-- Button presses that a bot may answer.
CREATE TABLE callbacks (
    bot_id      bigint NOT NULL,
    callback_id text   NOT NULL,
    chat_id     bigint NOT NULL,
    message_id  bigint NOT NULL,
    answered_at timestamptz,
    answer      text   NOT NULL DEFAULT '',
    PRIMARY KEY (bot_id, callback_id)
);

-- What bots wrote, on its way to the messenger (I-06).
CREATE TABLE outbound (
    bot_id      bigint      NOT NULL,
    outbound_id bigint      GENERATED ALWAYS AS IDENTITY,
    body        text        NOT NULL,
    written_at  timestamptz NOT NULL,
    due_at      timestamptz NOT NULL,             -- the product's time
    claimed_until timestamptz,                    -- real time: no jump of the test clock ends a claim
    attempts    integer     NOT NULL DEFAULT 0,
    PRIMARY KEY (bot_id, outbound_id)
);
CREATE INDEX outbound_due ON outbound (due_at);
