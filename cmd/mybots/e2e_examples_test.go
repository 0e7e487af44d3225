package main_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// relay passes webhook requests on to a bot's process.
type relay struct {
	port string
	bot  *running
}

// start starts the bot and waits until it takes requests.
func (r *relay) start(t testing.TB, command []string, settings ...string) {
	t.Helper()
	bot := startProgram(t, command, settings...)
	eventually(t, 20*time.Second, "the bot listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+r.port)
		return err == nil && c.Close() == nil
	})
	r.bot = bot
}

// pass gives the bot's answer to a request, an error if there was none.
func (r *relay) pass(v *visit) (status int, err error) {
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+r.port+"/smeet", bytes.NewReader([]byte(v.body)))
	if err != nil {
		return 0, err
	}
	req.Header = v.request.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// The bots with one store through an owner's switches with KEEP: from the webhook,
// in the middle of a request that the bot has stored, to long polling, where it is
// killed at random, and back in the middle of a batch.
func TestBotsThatSwitch(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run("M-02 M-03 W-13 K-06 U-04 in "+p.name, func(t *testing.T) {
			t.Parallel()
			m := newMessenger(t)
			w, e := newHookWorld(t, "MYBOTS_OUTBOUND_URL="+m.URL)
			s := w.serve(t)
			o := s.signIn(t)
			h := o.hooked(t, e)
			f := newFlaky(t, s.base)
			var underWay atomic.Int32
			proxy := f.Config.Handler
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				underWay.Add(1)
				defer underWay.Add(-1)
				proxy.ServeHTTP(w, r)
			})
			r := &relay{port: freePort(t)}
			store := filepath.Join(t.TempDir(), "store")
			settings := []string{"SMEET_URL=" + f.URL, "SMEET_TOKEN=" + h.token, "SMEET_CONSUMER_ID=me", "SMEET_STORE=" + store}
			hooks := func() []string {
				return append([]string{"SMEET_WEBHOOK_SECRET=" + h.secret, "SMEET_WEBHOOK_PORT=" + r.port, "SMEET_WEBHOOK_STORE=" + store}, settings...)
			}

			r.start(t, p.command(t, true), hooks()...)
			stored, switched := make(chan struct{}), make(chan struct{})
			var n atomic.Int32
			h.does(func(v *visit) {
				status, err := r.pass(v)
				if n.Add(1) == 4 {
					close(stored)
					<-switched
				}
				if err != nil {
					breaks(v)
				}
				says(status)(v)
			})
			texts := s.words(t, h.bot, 1, 8)
			receive(t, 30*time.Second, "the bot stores the fourth update", stored)
			o.save(t, h.bot, "keep") // to long polling
			r.bot.kill()
			close(switched)

			dice := rand.New(rand.NewPCG(1, 2))
			for round := range 4 {
				texts = append(texts, s.words(t, h.bot, 100*(round+1), 4)...)
				calls, fatal, killed, started := 0, 1+dice.IntN(9), make(chan struct{}), make(chan struct{})
				var bot *running
				var mu sync.Mutex // it polls and answers at the same time
				f.set(func(string, bool) fault {
					<-started
					mu.Lock()
					defer mu.Unlock()
					select {
					case <-killed:
						return cutBefore
					default:
					}
					if calls++; calls < fatal {
						return passes
					}
					bot.kill()
					close(killed)
					return cutAfter
				})
				bot = startProgram(t, p.command(t, false), settings...)
				close(started)
				select {
				case <-killed:
				case <-time.After(90 * time.Second): // it waits 30 where a poll of the one before came late after all
					t.Fatalf("round %d: it made %d calls, want %d; the bot's log:\n%s", round, calls, fatal, bot.log)
				}
				eventually(t, 20*time.Second, "its calls are over", func() bool { return underWay.Load() == 0 })
				s.advance(t, 30*time.Second) // the poll that died with it counts as waiting until then (P-09)
			}

			o.rehook(t, h, "keep") // and back, with what is issued and not confirmed
			f.set(lossy())
			h.does(func(v *visit) {
				status, err := r.pass(v)
				if err != nil {
					breaks(v)
				}
				says(status)(v)
			})
			r.start(t, p.command(t, true), hooks()...)
			texts = append(texts, s.words(t, h.bot, 1000, 4)...)
			eventually(t, 60*time.Second, "all is delivered", func() bool {
				i := s.hookInfo(t, h.bot)
				if i.State == "paused" {
					t.Fatalf("delivery is paused: %+v; the bot's log:\n%s", i.LastError, r.bot.log)
				}
				if i.NextAttempt != nil { // no further than that: the bot's clock stands, and it checks the signature's
					s.reach(t, *i.NextAttempt, 0)
				}
				return s.info(t, h.bot).Pending == 0
			})
			answersOnce(t, m, texts, r.bot)
			if i := s.info(t, h.bot); i.Failed != 0 {
				t.Errorf("%d updates failed, want none; the bot's log:\n%s", i.Failed, r.bot.log)
			}
			w.checkSecrets(t, "the bot's log", r.bot.log.String())
		})
	}
}
