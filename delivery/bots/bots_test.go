package bots_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/migrations/dbtest"
)

type rig struct {
	*bots.Store
	t     *testing.T
	db    *sqlx.DB
	clock *delivery.ShiftedClock
	queue *queue.Queue
	space int64
	owner int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, db: dbtest.Open(t), clock: delivery.NewClock(0)}
	r.queue = queue.New(r.db, r.clock, func(int64) {})
	t.Cleanup(r.queue.Close)
	sealer, err := bots.NewSealer(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	r.Store = bots.New(r.db, r.clock, r.queue, sealer)
	if r.space, err = r.AddSpace(t.Context(), "Space"); err != nil {
		t.Fatal(err)
	}
	r.owner = r.person("anna@example.com", "correct horse")
	return r
}

func (r *rig) person(email string, password delivery.Secret) int64 {
	r.t.Helper()
	id, err := r.AddPerson(r.t.Context(), bots.NewPerson{Email: email, SpaceID: r.space, Role: "owner", Password: password})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) bot(username string) (bots.Bot, delivery.Secret) {
	r.t.Helper()
	b, token, err := r.Create(r.t.Context(), bots.NewBot{SpaceID: r.space, OwnerID: r.owner, Username: username, Name: "A bot"})
	if err != nil {
		r.t.Fatal(err)
	}
	return b, token
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	tests := map[string]struct {
		email, password string
		want            error
	}{
		"the right password":              {"anna@example.com", "correct horse", nil},
		"any case, white space around":    {" ANNA@Example.com ", "correct horse", nil},
		"a wrong password":                {"anna@example.com", "wrong horse", delivery.ErrNotFound},
		"nobody":                          {"nobody@example.com", "correct horse", delivery.ErrNotFound},
		"no address":                      {"", "correct horse", delivery.ErrNotFound},
		"a NUL":                           {"anna@example.com\x00x", "correct horse", delivery.ErrNotFound},
		"bytes that are no text":          {"anna\xff", "correct horse", delivery.ErrNotFound},
		"a password of a megabyte":        {"anna@example.com", strings.Repeat("x", 1<<20), delivery.ErrNotFound},
		"an empty password":               {"anna@example.com", "", delivery.ErrNotFound},
		"the stored hash as the password": {"anna@example.com", "$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA", delivery.ErrNotFound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			id, err := r.SignIn(ctx, tt.email, tt.password)
			if !errors.Is(err, tt.want) || tt.want == nil && id != r.owner {
				t.Errorf("got %d %v, want %v", id, err, tt.want)
			}
		})
	}
	t.Run("passwords are stored as argon2id with a salt of their own", func(t *testing.T) {
		r.person("other@example.com", "correct horse")
		var hashes []string
		if err := r.db.Select(&hashes, `SELECT password_hash FROM people`); err != nil {
			t.Fatal(err)
		}
		if len(hashes) != 2 || hashes[0] == hashes[1] || !strings.HasPrefix(hashes[0], "$argon2id$v=19$m=19456,t=2,p=1$") {
			t.Errorf("got %v", hashes)
		}
	})
	t.Run("another password ends every session", func(t *testing.T) {
		hash := []byte("session")
		if err := r.CreateSession(ctx, hash, r.owner, r.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if err := r.SetPassword(ctx, r.owner, "new password"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Session(ctx, hash); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v, want the session gone", err)
		}
		if _, err := r.SignIn(ctx, "anna@example.com", "new password"); err != nil {
			t.Errorf("got %v for the new password", err)
		}
	})
}

func TestRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bot("taken_bot")
	person := bots.NewPerson{Email: "new@example.com", SpaceID: r.space, Role: "owner", Password: "long enough"}
	bot := bots.NewBot{SpaceID: r.space, OwnerID: r.owner, Username: "new_bot", Name: "New"}
	add := func(change func(*bots.NewPerson)) func() error {
		return func() error {
			n := person
			change(&n)
			_, err := r.AddPerson(t.Context(), n)
			return err
		}
	}
	create := func(change func(*bots.NewBot)) func() error {
		return func() error {
			n := bot
			change(&n)
			_, _, err := r.Create(t.Context(), n)
			return err
		}
	}
	tests := map[string]struct {
		do    func() error
		want  error
		field string
	}{
		"G-01 no address":                                   {add(func(n *bots.NewPerson) { n.Email = "anna" }), delivery.ErrInvalid, "email"},
		"G-01 an address with a NUL":                        {add(func(n *bots.NewPerson) { n.Email = "a\x00@b.c" }), delivery.ErrInvalid, "email"},
		"G-01 an address that is taken":                     {add(func(n *bots.NewPerson) { n.Email = "ANNA@example.com" }), delivery.ErrConflict, ""},
		"G-01 no role":                                      {add(func(n *bots.NewPerson) { n.Role = "boss" }), delivery.ErrInvalid, "role"},
		"G-01 a short password":                             {add(func(n *bots.NewPerson) { n.Password = "short" }), delivery.ErrInvalid, "password"},
		"G-01 no such space":                                {add(func(n *bots.NewPerson) { n.SpaceID = 99 }), delivery.ErrNotFound, ""},
		"UI-02 a username that is taken, whatever its case": {create(func(n *bots.NewBot) { n.Username = "@Taken_Bot" }), delivery.ErrConflict, ""},
		"UI-02 a username with a space":                     {create(func(n *bots.NewBot) { n.Username = "a bot" }), delivery.ErrInvalid, "username"},
		"UI-02 no name":                                     {create(func(n *bots.NewBot) { n.Name = "  " }), delivery.ErrInvalid, "name"},
		"UI-02 a name of 65 characters":                     {create(func(n *bots.NewBot) { n.Name = strings.Repeat("я", 65) }), delivery.ErrInvalid, "name"},
		"UI-02 a name of 64 characters":                     {create(func(n *bots.NewBot) { n.Name = strings.Repeat("я", 64) }), nil, ""},
		"UI-02 an owner of another space":                   {create(func(n *bots.NewBot) { n.SpaceID = 99 }), delivery.ErrNotFound, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.do()
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			var invalid *delivery.Invalid
			if errors.As(err, &invalid); tt.field != "" && (invalid == nil || invalid.Field != tt.field) {
				t.Errorf("got %v, want the field %s named", err, tt.field)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	b, token := r.bot("robot")
	by := bots.Actor{UserID: r.owner, RequestID: "req"}
	t.Run("A-03 the token finds its bot and stands nowhere in the database", func(t *testing.T) {
		got, err := r.ByToken(ctx, token)
		if err != nil || got.ID != b.ID {
			t.Errorf("got %+v %v", got, err)
		}
		if _, err := r.ByToken(ctx, token+"x"); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v for another token", err)
		}
		var n int
		if err := r.db.Get(&n, `SELECT count(*) FROM bot_tokens t WHERE t::text LIKE '%' || $1 || '%'`, string(token)); err != nil || n != 0 {
			t.Errorf("got %d rows with the token %v", n, err)
		}
	})
	t.Run("M-06 an emergency reset kills the old token, takes the lease and keeps the queue", func(t *testing.T) {
		if _, err := r.queue.Append(ctx, []delivery.Event{{BotID: b.ID, EventID: "7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10", Type: "message", Date: r.clock.Now(), Payload: []byte(`{}`)}}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.queue.Receive(ctx, b.ID, delivery.Poll{ConsumerID: "a", Limit: 1}, ""); err != nil {
			t.Fatal(err)
		}
		fresh, err := r.EmergencyReset(ctx, by, b.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.ByToken(ctx, token); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v for the old token, want it dead", err)
		}
		if got, err := r.ByToken(ctx, fresh); err != nil || got.ID != b.ID {
			t.Errorf("got %+v %v for the new token", got, err)
		}
		s, err := r.queue.Status(ctx, b.ID)
		if err != nil || !s.EpochLost || s.Active(s.At) || s.Waiting != 1 {
			t.Errorf("got %+v %v, want no lease and one waiting", s, err)
		}
	})
	t.Run("UI-07 another owner's actions don't find the bot and change nothing", func(t *testing.T) {
		other := bots.Actor{UserID: r.person("eve@example.com", "long enough")}
		before, err := r.queue.Status(ctx, b.ID)
		if err != nil {
			t.Fatal(err)
		}
		for name, do := range map[string]func() error{
			"pause":     func() error { return r.Pause(ctx, other, b.ID, true) },
			"reset":     func() error { return r.Reset(ctx, other, b.ID) },
			"emergency": func() error { _, err := r.EmergencyReset(ctx, other, b.ID); return err },
			"save":      func() error { _, err := r.SavePolling(ctx, other, b.ID, 1, true); return err },
			"delete":    func() error { return r.Delete(ctx, other, b.ID, "robot") },
			"look":      func() error { _, err := r.Owned(ctx, other.UserID, b.ID); return err },
		} {
			if err := do(); !errors.Is(err, delivery.ErrNotFound) {
				t.Errorf("%s: got %v, want not found", name, err)
			}
		}
		after, err := r.queue.Status(ctx, b.ID)
		if after.At = before.At; err != nil || after != before {
			t.Errorf("got %+v %v, want %+v", after, err, before)
		}
	})
	t.Run("M-09 deletion wants the username, kills the token, removes payloads", func(t *testing.T) {
		var invalid *delivery.Invalid
		if err := r.Delete(ctx, by, b.ID, "robo"); !errors.As(err, &invalid) {
			t.Errorf("got %v for a wrong username", err)
		}
		live, err := r.EmergencyReset(ctx, by, b.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Delete(ctx, by, b.ID, "@Robot"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.ByToken(ctx, live); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v for its token", err)
		}
		if _, err := r.Owned(ctx, r.owner, b.ID); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v for its page", err)
		}
		var n int
		if err := r.db.Get(&n, `SELECT (SELECT count(*) FROM updates WHERE bot_id = $1) + (SELECT count(*) FROM failed_updates WHERE bot_id = $1)`, b.ID); err != nil || n != 0 {
			t.Errorf("got %d updates left %v", n, err)
		}
		results, err := r.queue.Append(ctx, []delivery.Event{{BotID: b.ID, EventID: "7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a11", Type: "message", Date: r.clock.Now(), Payload: []byte(`{}`)}})
		if err != nil || results[0].Refusal == nil || results[0].Refusal.Code != delivery.BotNotFound {
			t.Errorf("got %+v %v from intake, want BOT_NOT_FOUND", results, err)
		}
		if again, _ := r.bot("robot"); again.ID == b.ID {
			t.Error("its username isn't free again")
		}
	})
	t.Run("every action is in the audit log, refused ones aren't, no secret is", func(t *testing.T) {
		var actions []string
		if err := r.db.Select(&actions, `SELECT action FROM audit WHERE bot_id = $1 AND user_id = $2 AND request_id = 'req' ORDER BY audit_id`, b.ID, r.owner); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(actions, " "); got != "emergency_reset emergency_reset delete" {
			t.Errorf("got %q", got)
		}
		var n int
		if err := r.db.Get(&n, `SELECT count(*) FROM audit a WHERE a::text LIKE '%sbt1_%'`); err != nil || n != 0 {
			t.Errorf("got %d lines with a token %v", n, err)
		}
	})
}

func TestShownOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	b, token := r.bot("robot")
	mine, theirs := []byte("my session"), []byte("their session")
	for _, hash := range [][]byte{mine, theirs} {
		if err := r.CreateSession(ctx, hash, r.owner, r.clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	keep := func() {
		t.Helper()
		if err := r.KeepToShow(ctx, mine, b.ID, bots.ShownToken, token); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	t.Run("UI-02 it is sealed in the database", func(t *testing.T) {
		var n int
		if err := r.db.Get(&n, `SELECT count(*) FROM shown_once WHERE encode(sealed, 'escape') LIKE '%' || $1 || '%'`, string(token)); err != nil || n != 0 {
			t.Errorf("got %d rows in clear %v", n, err)
		}
	})
	t.Run("UI-02 another session doesn't see it", func(t *testing.T) {
		if got, err := r.ShowOnce(ctx, theirs, b.ID, bots.ShownToken); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %q %v", string(got), err)
		}
	})
	t.Run("UI-02 two looks at once: one sees it", func(t *testing.T) {
		var wg sync.WaitGroup
		seen := make(chan string, 8)
		for range 8 {
			wg.Go(func() {
				got, err := r.ShowOnce(ctx, mine, b.ID, bots.ShownToken)
				if err == nil {
					seen <- string(got)
				} else if !errors.Is(err, delivery.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		close(seen)
		if n := len(seen); n != 1 || <-seen != string(token) {
			t.Errorf("%d looks saw it, want one", n)
		}
	})
	t.Run("M-06 UI-02 a token that was replaced since isn't shown", func(t *testing.T) {
		keep()
		if _, err := r.EmergencyReset(ctx, bots.Actor{UserID: r.owner}, b.ID); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ShowOnce(ctx, mine, b.ID, bots.ShownToken); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %q %v", string(got), err)
		}
	})
	t.Run("UI-02 after ten minutes it is gone", func(t *testing.T) {
		keep()
		r.clock.SetShift(10 * time.Minute)
		if got, err := r.ShowOnce(ctx, mine, b.ID, bots.ShownToken); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %q %v", string(got), err)
		}
	})
	t.Run("a sealed value opens at its own place only", func(t *testing.T) {
		s, err := bots.NewSealer(bytes.Repeat([]byte{7}, 32))
		if err != nil {
			t.Fatal(err)
		}
		sealed := s.Seal([]byte("value"), "here")
		if got, err := s.Open(sealed, "here"); err != nil || string(got) != "value" {
			t.Errorf("got %q %v", got, err)
		}
		if _, err := s.Open(sealed, "there"); err == nil {
			t.Error("it opens elsewhere")
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	key, err := r.AddKey(ctx, "messenger")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("I-01 an intake key opens intake until it is taken back", func(t *testing.T) {
		if err := r.CheckKey(ctx, key); err != nil {
			t.Errorf("got %v for the key", err)
		}
		if err := r.CheckKey(ctx, key+"x"); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v for another key", err)
		}
		if n, err := r.RemoveKeys(ctx, "messenger"); err != nil || n != 1 {
			t.Errorf("got %d removed %v", n, err)
		}
		if err := r.CheckKey(ctx, key); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v for a key that was taken back", err)
		}
		if _, err := r.RemoveKeys(ctx, "messenger"); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v the second time", err)
		}
	})
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"0707070707070707070707070707070707070707070707070707070707070707": true,
		"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=":                     true,
		"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc":                      true,
		"__________________________________________8=":                     true,
		"0707": false, "": false, "correct horse battery staple": false,
	}
	for in, want := range tests {
		t.Run("G-01 "+in, func(t *testing.T) {
			t.Parallel()
			key, err := bots.ParseKey(in)
			if (err == nil) != want || want && len(key) != 32 {
				t.Errorf("got %d bytes %v, want a key: %v", len(key), err, want)
			}
		})
	}
}
