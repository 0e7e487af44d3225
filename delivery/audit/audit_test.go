package audit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery/audit"
	"mybots/delivery/pg"
	"mybots/migrations/dbtest"
)

// TestRoleOfItsOwn runs the statements that docs/operations.md gives for a log
// that the program's role can only read and add to.
func TestRoleOfItsOwn(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, statements, ok := strings.Cut(string(text), "-- the audit log belongs to a role of its own\n")
	statements, _, closed := strings.Cut(statements, "```")
	if !ok || !closed {
		t.Fatal("docs/operations.md has no statements for the audit log")
	}
	// Roles are the whole server's: these are this test's own.
	name := fmt.Sprintf("app_%d", time.Now().UnixNano())
	statements = strings.NewReplacer("audit_keeper", name+"_audit", "mybots;", name+";").Replace(statements)
	db.MustExec(`CREATE ROLE ` + name)
	t.Cleanup(func() {
		db.MustExec(`DROP OWNED BY ` + name + `, ` + name + `_audit; DROP ROLE ` + name + `, ` + name + `_audit`)
	})
	db.MustExec(`GRANT USAGE ON SCHEMA public TO ` + name)
	db.MustExec(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ` + name)
	db.MustExec(statements)

	as := func(do func(*sqlx.Tx) error) error {
		return pg.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
			tx.MustExec(`SET LOCAL ROLE ` + name)
			return do(tx)
		})
	}
	t.Run("UI-06 lines can be added and read", func(t *testing.T) {
		err := as(func(tx *sqlx.Tx) error {
			return audit.Write(t.Context(), tx, audit.Entry{At: time.Now(), BotID: 1, Action: "pause", Before: "paused=off", After: "paused=on"})
		})
		lines, readErr := audit.Read(t.Context(), db, audit.Filter{}, 0, 10)
		if err != nil || readErr != nil || len(lines) != 1 || lines[0].Role != "operator" {
			t.Errorf("got %+v, %v, %v, want one line of an operator", lines, err, readErr)
		}
	})
	for _, statement := range []string{
		`UPDATE audit SET detail = 'x'`, `DELETE FROM audit`, `TRUNCATE audit`, `DROP TRIGGER audit_stays ON audit`, `ALTER TABLE audit DISABLE TRIGGER audit_stays`,
		`DROP TABLE audit`, `CREATE OR REPLACE FUNCTION audit_stays() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
	} {
		t.Run("UI-06 refused: "+statement, func(t *testing.T) {
			err := as(func(tx *sqlx.Tx) error { _, err := tx.Exec(statement); return err })
			if pg.State(err) != "42501" {
				t.Errorf("got %v, want insufficient_privilege", err)
			}
		})
	}
}
