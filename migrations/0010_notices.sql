-- +goose Up

-- The owner's chat with SMeet BotFather in a space. Who never opened it gets no
-- notices there (N-01).
CREATE TABLE botfather_chats (
    space_id  bigint      NOT NULL REFERENCES spaces,
    user_id   bigint      NOT NULL REFERENCES people ON DELETE CASCADE,
    language  text        NOT NULL CHECK (language IN ('en', 'ru')),
    opened_at timestamptz NOT NULL,
    PRIMARY KEY (space_id, user_id)
);

-- The owner's account at MAX (N-07), and the code by which it becomes known.
CREATE TABLE max_links (
    user_id     bigint      PRIMARY KEY REFERENCES people ON DELETE CASCADE,
    max_user_id bigint      NOT NULL,
    linked_at   timestamptz NOT NULL
);
CREATE TABLE max_codes (
    user_id    bigint      PRIMARY KEY REFERENCES people ON DELETE CASCADE,
    code_hash  bytea       NOT NULL UNIQUE, -- SHA-256
    expires_at timestamptz NOT NULL
);

-- Since when notices of a kind about a bot are held back, and how many were
-- (N-03). The row's lock makes «is the cause still there?» and «is this one held
-- back?» one decision.
CREATE TABLE notice_windows (
    bot_id    bigint      NOT NULL,
    kind      text        NOT NULL,
    opened_at timestamptz,                  -- null: nothing was sent in it, the next notice opens another
    held      integer     NOT NULL,         -- in this window
    counted   integer     NOT NULL,         -- in the one before: this window's notice tells of them
    PRIMARY KEY (bot_id, kind)
);

-- The outbox. A row is written in the transaction of its cause, with the text as
-- it will be sent (N-02).
CREATE TABLE notices (
    notice_id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key           text        NOT NULL UNIQUE,    -- kind, bot, recipient, start of the window (N-03)
    kind          text        NOT NULL,
    urgent        boolean     NOT NULL,           -- which lane (N-06)
    bot_id        bigint      NOT NULL,
    space_id      bigint      NOT NULL,
    user_id       bigint      NOT NULL,           -- whose bot it is
    route         text        NOT NULL CHECK (route IN ('botfather', 'max')),
    recipient     text        NOT NULL,           -- the person's id here, or the account's at MAX
    readdressed   boolean     NOT NULL DEFAULT false, -- the recipient is support's choice
    language      text        NOT NULL,
    template      text        NOT NULL,           -- version
    text          text        NOT NULL,
    button        text        NOT NULL,           -- its label; it leads to the bot's Connection
    code          text        NOT NULL,           -- the cause's
    window_at     timestamptz NOT NULL,
    counted       integer     NOT NULL,           -- held back before, which the text tells
    event_at      timestamptz NOT NULL,           -- when the cause arose
    queued_at     timestamptz NOT NULL,
    since         timestamptz NOT NULL,           -- its age counts from here: queued, or sent again by a person
    due_at        timestamptz NOT NULL,
    state         text        NOT NULL DEFAULT 'queued'
                  CHECK (state IN ('queued', 'sending', 'retrying', 'sent', 'uncertain', 'blocked', 'dead', 'deduplicated', 'stale')),
    tries         integer     NOT NULL DEFAULT 0,
    tries_left    integer     NOT NULL,
    tried_at      timestamptz,                    -- the last one's start
    claimed_until timestamptz,                    -- real time, while it is sending
    sent_at       timestamptz,
    http_code     integer     NOT NULL DEFAULT 0, -- of the last answer
    message_id    text        NOT NULL DEFAULT '',
    reason        text        NOT NULL DEFAULT ''
);
CREATE INDEX notices_due ON notices (route, urgent, due_at) WHERE state IN ('queued', 'retrying');
CREATE INDEX notices_sending ON notices (claimed_until) WHERE state = 'sending';
CREATE INDEX notices_person ON notices (notice_id) WHERE state IN ('uncertain', 'blocked', 'dead');
CREATE INDEX notices_bot ON notices (bot_id, notice_id);
CREATE INDEX notices_closed ON notices (queued_at) WHERE state IN ('sent', 'deduplicated', 'stale');

-- What stands in the chats: a notice at most once.
CREATE TABLE botfather_messages (
    space_id   bigint      NOT NULL,
    user_id    bigint      NOT NULL,
    message_id bigint      GENERATED ALWAYS AS IDENTITY,
    notice_id  bigint      NOT NULL UNIQUE,
    bot_id     bigint      NOT NULL,
    language   text        NOT NULL,              -- of the text, which the chat's may have changed since
    text       text        NOT NULL,
    button     text        NOT NULL,
    written_at timestamptz NOT NULL,
    PRIMARY KEY (space_id, user_id, message_id),
    FOREIGN KEY (space_id, user_id) REFERENCES botfather_chats ON DELETE CASCADE
);

-- A route that is stopped sends nothing; its notices wait. One that was resumed
-- in portions stops again after as many.
CREATE TABLE notice_routes (
    route      text        PRIMARY KEY,
    stopped    boolean     NOT NULL DEFAULT false,
    stopped_at timestamptz,
    reason     text        NOT NULL DEFAULT '',
    allowance  integer                          -- notices that still go out; null: all
);
INSERT INTO notice_routes (route) VALUES ('botfather'), ('max');
