package dbtest_test

import (
	"context"
	"strings"
	"testing"

	"mybots/migrations"
	"mybots/migrations/dbtest"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()

	t.Run("a database for each test, with the schema in it", func(t *testing.T) {
		t.Parallel()
		a, b := dbtest.Open(t), dbtest.Open(t)
		var nameA, nameB string
		if err := a.Get(&nameA, `SELECT current_database()`); err != nil {
			t.Fatal(err)
		}
		if err := b.Get(&nameB, `SELECT current_database()`); err != nil {
			t.Fatal(err)
		}
		if nameA == nameB {
			t.Errorf("both calls gave database %s, want two", nameA)
		}
		if want := "testopen_a_database_for_each"; !strings.Contains(nameA, want) {
			t.Errorf("database name %q does not tell its test, want %q in it", nameA, want)
		}
		pending, err := migrations.Pending(ctx, a.DB)
		if err != nil || pending {
			t.Errorf("Pending = %v, %v, want false, nil: the template is migrated", pending, err)
		}
	})

	t.Run("the connection string asks for binary parameters", func(t *testing.T) {
		t.Parallel()
		if got, want := dbtest.URL(t), "binary_parameters=yes"; !strings.Contains(got, want) {
			t.Errorf("URL = %q, want %q in it", got, want)
		}
	})

	t.Run("lower and ILIKE know Cyrillic", func(t *testing.T) {
		t.Parallel()
		db := dbtest.Open(t)
		var lower string
		var like bool
		if err := db.QueryRow(`SELECT lower('ЁЖ'), 'Ёжик' ILIKE 'ёЖ%'`).Scan(&lower, &like); err != nil {
			t.Fatal(err)
		}
		if lower != "ёж" || !like {
			t.Errorf("lower = %q, ILIKE = %v, want ёж, true", lower, like)
		}
	})
}

func TestWaitBlocked(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	db.MustExec(`CREATE TABLE held (n int)`)
	db.MustExec(`INSERT INTO held VALUES (1)`)
	tx := db.MustBegin()
	tx.MustExec(`UPDATE held SET n = n + 1`)
	done := make(chan error, 2)
	for range 2 {
		go func() { // ends when tx does
			_, err := db.Exec(`UPDATE held SET n = n + 1`)
			done <- err
		}()
	}
	dbtest.WaitBlocked(t, db, 2)
	select {
	case err := <-done:
		t.Fatalf("an update ended (%v) while the row was held", err)
	default:
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var n int
	if err := db.Get(&n, `SELECT n FROM held`); err != nil {
		t.Fatal(err)
	}
	if n != 4 {
		t.Errorf("n = %d, want 4", n)
	}
}
