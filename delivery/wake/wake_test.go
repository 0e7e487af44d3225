package wake_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery/wake"
	"mybots/migrations/dbtest"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

func rung(t *testing.T, w *wake.Wait, what string) {
	t.Helper()
	select {
	case <-w.C:
	case <-time.After(patience):
		t.Fatalf("%s: no ring", what)
	}
}

func silent(t *testing.T, w *wake.Wait, what string) {
	t.Helper()
	select {
	case <-w.C:
		t.Errorf("%s: it rang", what)
	default:
	}
}

func TestBell(t *testing.T) {
	t.Parallel()
	b := wake.NewBell()
	one, two, other := b.Wait(7), b.Wait(7), b.Wait(8)
	b.Ring(7)
	b.Ring(7)
	rung(t, one, "the first waiter")
	rung(t, two, "the second waiter")
	silent(t, one, "two rings are kept as one")
	silent(t, other, "another bot's waiter")
	two.Stop()
	two.Stop()
	b.RingAll()
	rung(t, one, "all")
	rung(t, other, "all")
	silent(t, two, "who has stopped")
	got := b.Waiting()
	slices.Sort(got)
	if !slices.Equal(got, []int64{7, 8}) {
		t.Errorf("got %v waiting, want 7 and 8", got)
	}
	one.Stop()
	other.Stop()
	if got := b.Waiting(); len(got) != 0 {
		t.Errorf("got %v waiting, want none", got)
	}
	b.Ring(7)
	b.Close()
	b.Close()
	select {
	case <-b.Closing():
	default:
		t.Error("it isn't closing")
	}
}

// none is a look that never finds anything: rings come by NOTIFY alone.
type none struct{}

func (none) Changed(context.Context, []int64) ([]int64, error) { return nil, nil }

// all is a look that always finds something.
type all struct{}

func (all) Changed(_ context.Context, bots []int64) ([]int64, error) { return bots, nil }

type looker interface {
	Changed(context.Context, []int64) ([]int64, error)
}

// replica starts one process's half; it has heard the others once ready returns.
func replica(t *testing.T, db *sqlx.DB, url string, look looker) (*wake.Bell, *wake.Replicas) {
	t.Helper()
	b := wake.NewBell()
	r := wake.NewReplicas(b, db, url, slog.New(slog.NewTextHandler(t.Output(), nil)))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	w := b.Wait(-1)
	wg.Go(func() { r.Run(ctx, look) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	rung(t, w, "the replica listens and looks once") // RingAll after LISTEN
	w.Stop()
	return b, r
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	t.Run("G-03 a ring reaches the other replicas", func(t *testing.T) {
		t.Parallel()
		url := dbtest.URL(t)
		db := sqlx.MustConnect("postgres", url)
		defer db.Close()
		here, ring := replica(t, db, url, none{})
		there, _ := replica(t, db, url, none{})
		mine, theirs, others := here.Wait(7), there.Wait(7), there.Wait(8)
		ring.Ring(7)
		rung(t, mine, "this process")
		rung(t, theirs, "the other process")
		silent(t, others, "another bot")
	})
	t.Run("G-03 thousands of bots at once go in few notifications, none is lost", func(t *testing.T) {
		t.Parallel()
		url := dbtest.URL(t)
		db := sqlx.MustConnect("postgres", url)
		defer db.Close()
		_, ring := replica(t, db, url, none{})
		there, _ := replica(t, db, url, none{})
		var waits []*wake.Wait
		const first, n = 1_000_000_000_000_000_000, 5000 // long ids: several payloads
		for i := range n {
			waits = append(waits, there.Wait(first+int64(i)))
		}
		for i := range n {
			ring.Ring(first + int64(i))
		}
		for i, w := range waits {
			rung(t, w, fmt.Sprint("bot ", i))
		}
	})
	t.Run("G-03 after a lost connection everybody looks", func(t *testing.T) {
		t.Parallel()
		url := dbtest.URL(t)
		db := sqlx.MustConnect("postgres", url)
		defer db.Close()
		there, _ := replica(t, db, url, none{})
		w := there.Wait(7)
		db.MustExec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()`)
		rung(t, w, "after the connection was cut")
	})
	t.Run("G-03 the sweep finds what no notification told", func(t *testing.T) {
		t.Parallel()
		url := dbtest.URL(t)
		db := sqlx.MustConnect("postgres", url)
		defer db.Close()
		there, _ := replica(t, db, url, all{})
		w := there.Wait(7)
		rung(t, w, "within a second")
	})
	t.Run("A-07 no database: the bell in the process works on, and nothing hangs at the end", func(t *testing.T) {
		t.Parallel()
		url := "host=/nowhere dbname=none sslmode=disable"
		db, err := sqlx.Open("postgres", url)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		b := wake.NewBell()
		r := wake.NewReplicas(b, db, url, slog.New(slog.NewTextHandler(t.Output(), nil)))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx, none{}) })
		w := b.Wait(7)
		r.Ring(7)
		rung(t, w, "this process")
		cancel()
		ended := make(chan struct{})
		go func() { wg.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("Run doesn't end with its context")
		}
	})
}
