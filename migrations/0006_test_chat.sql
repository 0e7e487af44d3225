-- +goose Up

-- What became of a message of the test chat after it was written (UI-09).
ALTER TABLE messages
    ADD COLUMN edited_at   timestamptz,
    ADD COLUMN edited_by   bigint NOT NULL DEFAULT 0, -- the update_id of the edit that the text is from
    ADD COLUMN deleted_at  timestamptz,               -- then its text and its file's name are gone
    ADD COLUMN file_id     text   NOT NULL DEFAULT '',
    ADD COLUMN file_name   text   NOT NULL DEFAULT '',
    ADD COLUMN file_status text   NOT NULL DEFAULT ''; -- checking, clean, infected

-- What a person did in the test chat beside writing and pressing. An edit and a
-- deletion stand here until they have taken effect on their message; the rest
-- stays as lines of the conversation. They go with their chat, whichever release
-- removes it.
CREATE TABLE chat_deeds (
    bot_id     bigint      NOT NULL,
    chat_id    bigint      NOT NULL,
    deed_id    bigint      GENERATED ALWAYS AS IDENTITY,
    after_id   bigint      NOT NULL,           -- the message behind which it stands
    message_id bigint      NOT NULL DEFAULT 0, -- the message that it is about; 0: none
    event_id   uuid        NOT NULL,           -- what intake is given
    type       text        NOT NULL CHECK (type IN ('message_edited', 'message_deleted', 'chat_access_changed', 'file_status_changed')),
    value      text        NOT NULL DEFAULT '', -- the new text, access or status
    done_at    timestamptz NOT NULL,
    state      text        NOT NULL DEFAULT 'sending' CHECK (state IN ('sending', 'sent')),
    PRIMARY KEY (bot_id, chat_id, deed_id),
    FOREIGN KEY (bot_id, chat_id) REFERENCES chats ON DELETE CASCADE
);
