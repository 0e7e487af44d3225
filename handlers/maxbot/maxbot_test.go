package maxbot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/notice"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
	"mybots/handlers"
	"mybots/handlers/maxbot"
	"mybots/migrations/dbtest"
	"mybots/web"
)

const (
	secret  = "max-secret-marker"
	account = 9007199254740993 // more than a float64 counts
)

// handClock is moved by hand.
type handClock struct{ *delivery.ShiftedClock }

func (c *handClock) advance(d time.Duration) { c.SetShift(c.Shift() + d) }

// rig is the webhook on a real database with two people, and what it logs.
type rig struct {
	t           *testing.T
	db          *sqlx.DB
	clock       *handClock
	notices     *notice.Store
	site        http.Handler
	mu          sync.Mutex // of log
	log         bytes.Buffer
	anna, boris int64
}

// Write keeps a line of the log.
func (r *rig) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(line)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, db: dbtest.Open(t), clock: &handClock{delivery.NewClock(0)}}
	r.notices = notice.New(notice.Options{DB: r.db, Clock: r.clock, MAX: true})
	r.site = r.serve(r.notices)
	var space int64
	r.must(r.db.Get(&space, `INSERT INTO spaces (name, created_at) VALUES ('Green shop', $1) RETURNING space_id`, r.clock.Now()))
	for email, id := range map[string]*int64{"anna@example.org": &r.anna, "boris@example.org": &r.boris} {
		r.must(r.db.Get(id, `INSERT INTO people (space_id, email, email_key, password_hash, role, created_at) VALUES ($1, $2, $2, '', 'owner', $3) RETURNING user_id`,
			space, email, r.clock.Now()))
	}
	return r
}

// serve is the webhook before that outbox, each call with its line in the log.
func (r *rig) serve(links *notice.Store) http.Handler {
	log := slog.New(slog.NewJSONHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return web.Observe(log, maxbot.New(log, links, secret))
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// code is a new linking code of a person's.
func (r *rig) code(userID int64) string {
	r.t.Helper()
	c, err := r.notices.NewCode(r.t.Context(), userID)
	r.must(err)
	return string(c)
}

// links are the accounts at MAX and whose they are.
func (r *rig) links() string {
	r.t.Helper()
	var list []struct {
		UserID int64 `db:"user_id"`
		MAX    int64 `db:"max_user_id"`
	}
	r.must(r.db.Select(&list, `SELECT user_id, max_user_id FROM max_links ORDER BY user_id`))
	return fmt.Sprint(list)
}

// linked is what links gives for one link.
func linked(userID, account int64) string { return fmt.Sprintf("[{%d %d}]", userID, account) }

// calls sends a body to the webhook, with the secret unless the lines of header
// "Name: value" say something else.
func calls(t *testing.T, site http.Handler, method string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, "/max/webhook", body)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("X-Max-Bot-Api-Secret", secret)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	got := httptest.NewRecorder()
	site.ServeHTTP(got, req)
	return got
}

// posts sends a body and wants a status.
func (r *rig) posts(t *testing.T, body string, status int) {
	t.Helper()
	got := calls(t, r.site, http.MethodPost, strings.NewReader(body))
	if got.Code != status {
		t.Errorf("%.80q: got %d %s, want %d", body, got.Code, got.Body, status)
	}
	if status == http.StatusOK && got.Body.String() != `{"success":true}`+"\n" {
		t.Errorf("%.80q: got %q, want success", body, got.Body)
	}
}

// message is what MAX sends of a message to the bot.
func message(account int64, text string) string {
	return fmt.Sprintf(`{"update_type":"message_created","timestamp":1764567890123,"message":{"sender":{"user_id":%d,"name":"NAME-MARKER"},`+
		`"recipient":{"chat_id":5},"body":{"mid":"mid.1","text":%q}},"user_locale":"ru"}`, account, text)
}

// untouched is a body that nobody may read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read before the secret was checked")
	return 0, errors.New("not to be read")
}

func TestSecret(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, header := range map[string]string{
		"none":             "X-Max-Bot-Api-Secret: ",
		"another":          "X-Max-Bot-Api-Secret: wrong",
		"one letter more":  "X-Max-Bot-Api-Secret: " + secret + "x",
		"one letter less":  "X-Max-Bot-Api-Secret: " + secret[:len(secret)-1],
		"capitals":         "X-Max-Bot-Api-Secret: " + strings.ToUpper(secret),
		"a very long one":  "X-Max-Bot-Api-Secret: " + strings.Repeat("x", 10_000),
		"as Authorization": "X-Max-Bot-Api-Secret: ",
	} {
		t.Run("N-07 before anything is read: "+name, func(t *testing.T) {
			extra := "Authorization: " + secret
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPut} {
				got := calls(t, r.site, method, untouched{t}, header, extra)
				if got.Code != http.StatusUnauthorized || strings.Contains(got.Body.String(), secret) {
					t.Errorf("%s: got %d %s, want 401", method, got.Code, got.Body)
				}
			}
		})
	}
	t.Run("N-07 only POST", func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
			got := calls(t, r.site, method, http.NoBody)
			if got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != http.MethodPost {
				t.Errorf("%s: got %d, Allow %q, want 405 and POST", method, got.Code, got.Header().Get("Allow"))
			}
		}
	})
	t.Run("N-07 what can't be read", func(t *testing.T) {
		for _, body := range []string{"", "{", `{"update_type":"message_created"} {}`, "code=ABCD", "\xff"} {
			r.posts(t, body, http.StatusBadRequest)
		}
		r.posts(t, message(account, strings.Repeat("a", 64<<10)), http.StatusRequestEntityTooLarge)
		if got := calls(t, r.site, http.MethodPost, strings.NewReader("{}"), "Content-Type: text/plain"); got.Code != http.StatusUnsupportedMediaType {
			t.Errorf("text/plain: got %d, want 415", got.Code)
		}
	})
}

func TestWhatIsNoCode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	code := r.code(r.anna)
	for name, body := range map[string]string{
		"no message":               `{"update_type":"message_created"}`,
		"no body":                  `{"update_type":"message_created","message":null}`,
		"nothing":                  `{}`,
		"a list":                   `[]`,
		"null":                     `null`,
		"another type":             `{"update_type":"message_callback","message":{"sender":{"user_id":1},"body":{"text":"` + code + `"}}}`,
		"no type":                  `{"message":{"sender":{"user_id":1},"body":{"text":"` + code + `"}}}`,
		"an account that is words": `{"update_type":"bot_started","user":{"user_id":"x"},"payload":"` + code + `"}`,
		"no account":               message(0, code),
		"an account below 0":       message(-5, code),
		"words":                    message(account, "Hello, who are you?"),
		"an empty text":            message(account, ""),
		"NUL":                      message(account, "\x00"),
		"a long text":              message(account, strings.Repeat(code, 100)),
		"another code":             message(account, "ABCD-EFGH-IJKL"),
		"a message beside a start": `{"update_type":"bot_started","user":{"user_id":1},"message":{"sender":{"user_id":1},"body":{"text":"` + code + `"}}}`,
	} {
		t.Run("N-07 is taken and does nothing: "+name, func(t *testing.T) {
			body = strings.ReplaceAll(body, `\x00`, `\u0000`)
			r.posts(t, body, http.StatusOK)
			if got := r.links(); got != "[]" {
				t.Errorf("got the links %s, want none", got)
			}
		})
	}
}

func TestLinking(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		send func(t *testing.T, r *rig)
		want func(r *rig) string
	}{
		"N-07 a code": {
			func(t *testing.T, r *rig) { r.posts(t, message(account, r.code(r.anna)), http.StatusOK) },
			func(r *rig) string { return linked(r.anna, account) },
		},
		"N-07 a link to the bot that carries the code": {
			func(t *testing.T, r *rig) {
				r.posts(t, fmt.Sprintf(`{"update_type":"bot_started","chat_id":5,"user":{"user_id":%d},"payload":%q}`, account, r.code(r.anna)), http.StatusOK)
			},
			func(r *rig) string { return linked(r.anna, account) },
		},
		"N-07 MAX sends it again": {
			func(t *testing.T, r *rig) {
				body := message(account, r.code(r.anna))
				r.posts(t, body, http.StatusOK)
				r.posts(t, body, http.StatusOK)
			},
			func(r *rig) string { return linked(r.anna, account) },
		},
		"N-07 another account uses a code that is used up": {
			func(t *testing.T, r *rig) {
				code := r.code(r.anna)
				r.posts(t, message(account, code), http.StatusOK)
				r.posts(t, message(666, code), http.StatusOK)
			},
			func(r *rig) string { return linked(r.anna, account) },
		},
		"N-07 a code whose time is over": {
			func(t *testing.T, r *rig) {
				code := r.code(r.anna)
				r.clock.advance(notice.CodeTime)
				r.posts(t, message(account, code), http.StatusOK)
			},
			func(*rig) string { return "[]" },
		},
		"N-07 a code links whoever made it, nobody else": {
			func(t *testing.T, r *rig) {
				r.code(r.anna)
				r.posts(t, message(account, r.code(r.boris)), http.StatusOK)
			},
			func(r *rig) string { return linked(r.boris, account) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			test.send(t, r)
			if got, want := r.links(), test.want(r); got != want {
				t.Errorf("got the links %s, want %s", got, want)
			}
		})
	}
	t.Run("N-07 many calls with one code link once", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		body := message(account, r.code(r.anna))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { r.posts(t, body, http.StatusOK) })
		}
		all.Wait()
		var lines int
		r.must(r.db.Get(&lines, `SELECT count(*) FROM audit WHERE action = 'max_link' AND user_id = $1`, r.anna))
		if got, want := r.links(), linked(r.anna, account); got != want || lines != 1 {
			t.Errorf("got the links %s and %d lines in the audit log, want %s and one", got, lines, want)
		}
	})
	t.Run("N-07 the caller goes away: the account is linked all the same", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		ctx, gone := context.WithCancel(t.Context())
		gone()
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/max/webhook", strings.NewReader(message(account, r.code(r.anna))))
		req.Header.Set("X-Max-Bot-Api-Secret", secret)
		r.site.ServeHTTP(httptest.NewRecorder(), req)
		if got, want := r.links(), linked(r.anna, account); got != want {
			t.Errorf("got the links %s, want %s", got, want)
		}
	})
}

func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	nowhere, err := pg.Open("postgres://nobody@127.0.0.1:1/nothing?sslmode=disable", 2)
	r.must(err)
	t.Cleanup(func() { _ = nowhere.Close() })
	site := r.serve(notice.New(notice.Options{DB: nowhere, Clock: r.clock, MAX: true}))
	t.Run("N-07 MAX is asked to come again", func(t *testing.T) {
		got := calls(t, site, http.MethodPost, strings.NewReader(message(account, r.code(r.anna))))
		if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
			t.Errorf("got %d %s, want 503 with Retry-After", got.Code, got.Body)
		}
	})
	t.Run("N-07 what needs no database is taken", func(t *testing.T) {
		if got := calls(t, site, http.MethodPost, strings.NewReader(`{"update_type":"message_removed"}`)); got.Code != http.StatusOK {
			t.Errorf("got %d, want 200", got.Code)
		}
	})
}

func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	code := r.code(r.anna)
	r.posts(t, message(account, code), http.StatusOK)
	r.posts(t, message(account, "TEXT-MARKER"), http.StatusOK)
	r.posts(t, `{"TEXT-MARKER`, http.StatusBadRequest)
	calls(t, r.site, http.MethodPost, strings.NewReader(message(account, code)), "X-Max-Bot-Api-Secret: GUESS-MARKER")
	r.db.MustExec(`ALTER TABLE max_codes RENAME TO gone`)
	r.posts(t, message(account, code), http.StatusInternalServerError)
	if n := strings.Count(r.log.String(), `"msg":"request"`); n != 5 {
		t.Errorf("got %d lines for requests, want 5", n)
	}
	var audit string
	r.must(r.db.Get(&audit, `SELECT coalesce(string_agg(a::text, ' '), '') FROM audit a`))
	if !strings.Contains(audit, "max_link") {
		t.Errorf("the audit log doesn't say that the account was linked: %s", audit)
	}
	for what, text := range map[string]string{"log": r.log.String(), "audit log": audit} {
		for _, marker := range []string{secret, code, strings.ReplaceAll(code, "-", ""), fmt.Sprint(account), "TEXT-MARKER", "NAME-MARKER", "GUESS-MARKER"} {
			if strings.Contains(text, marker) {
				t.Errorf("N-09 the %s has %q", what, marker)
			}
		}
	}
}

func TestWhereItIsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	queues := queue.New(r.db, r.clock, func(int64) {})
	t.Cleanup(queues.Close)
	sealer, err := bots.NewSealer(make([]byte, 32))
	r.must(err)
	store := bots.New(r.db, r.clock, queues, sealer)
	for name, test := range map[string]struct {
		pages, api bool
		secret     delivery.Secret
		status     int
	}{
		"N-07 by a process that serves pages":        {true, false, secret, http.StatusOK},
		"N-07 by one that serves the API":            {false, true, secret, http.StatusOK},
		"N-07 by none that serves neither":           {false, false, secret, http.StatusNotFound},
		"N-07 nowhere without a secret":              {true, true, "", http.StatusNotFound},
		"N-07 not by pages alone without its secret": {true, false, "", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := handlers.Routes(handlers.Options{
				Log: slog.New(slog.DiscardHandler), Clock: r.clock, Bots: store, Queue: queues, Notices: r.notices, BaseURL: &url.URL{Scheme: "http", Host: "localhost"},
				Metrics: prometheus.NewRegistry(), Pages: test.pages, API: test.api, MAXSecret: test.secret,
			})
			if got := calls(t, site, http.MethodPost, strings.NewReader("{}")); got.Code != test.status {
				t.Errorf("got %d, want %d", got.Code, test.status)
			}
		})
	}
}
