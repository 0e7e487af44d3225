-- +goose Up

-- What support people may do beside looking (UI-06). Those who are there
-- already may switch; admins may do everything, whatever stands here.
ALTER TABLE people
    ADD COLUMN may_act    boolean NOT NULL DEFAULT false,
    ADD COLUMN may_unmask boolean NOT NULL DEFAULT false; -- look into one update, with a reason
UPDATE people SET may_act = true WHERE role = 'support';

-- A deed may be about a space, a person or the whole platform: then bot_id is 0,
-- and space_id is 0 where it isn't about a space.
ALTER TABLE audit
    ADD COLUMN space_id bigint NOT NULL DEFAULT 0,
    ADD COLUMN role     text   NOT NULL DEFAULT 'owner', -- that the person had then
    ADD COLUMN before   text   NOT NULL DEFAULT '',
    ADD COLUMN after    text   NOT NULL DEFAULT '',
    ADD COLUMN reason   text   NOT NULL DEFAULT '',
    ADD COLUMN address  text   NOT NULL DEFAULT '';
CREATE INDEX audit_latest ON audit (audit_id);
CREATE INDEX audit_space ON audit (space_id, audit_id) WHERE space_id <> 0;

-- The log only grows: neither the program nor a mistake in it can change or
-- remove a line, whatever rights its role has on the table.
-- +goose StatementBegin
CREATE FUNCTION audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log only grows: % is refused', lower(TG_OP) USING ERRCODE = 'insufficient_privilege';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_stays();

-- Since when maintenance goes on, for whom it keeps from working.
ALTER TABLE platform ADD COLUMN maintenance_since timestamptz;
