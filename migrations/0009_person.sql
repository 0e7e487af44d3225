-- +goose Up

-- In which zone a person reads times: utc, or '' for the browser's own (UI-05).
ALTER TABLE people ADD COLUMN time_zone text NOT NULL DEFAULT '' CHECK (time_zone IN ('', 'utc'));
