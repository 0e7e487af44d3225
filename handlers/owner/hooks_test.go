package owner_test

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/delivery/webhook"
)

// hooks stands in for the address guard and the sender, where no network is the
// point.
type hooks struct {
	mu     sync.Mutex
	broken webhook.Rule      // the guard finds this; "": addresses are as they should be
	err    error             // the guard can't tell
	answer delivery.Answer   // to every request
	sent   []webhook.Request // in order
	asked  int               // how often the guard was
}

func (h *hooks) set(change func(*hooks)) { h.mu.Lock(); defer h.mu.Unlock(); change(h) }

func (h *hooks) CheckName(_ context.Context, address string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	switch {
	case h.err != nil:
		return "", h.err
	case h.broken != "":
		return "", &webhook.ForbiddenError{Rule: h.broken}
	case !strings.HasPrefix(address, "https://"):
		return "", &webhook.ForbiddenError{Rule: webhook.RuleScheme}
	}
	return strings.Replace(address, "BOT.example.org", "bot.example.org", 1), nil
}

func (h *hooks) Send(_ context.Context, r webhook.Request) delivery.Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = append(h.sent, r)
	return h.answer
}

const hookURL = "https://bot.example.org/smeet?key=of-the-query"

// saveForm is the form of a save.
func saveForm(mode, address, pending, version string) url.Values {
	return url.Values{"mode": {mode}, "url": {address}, "pending": {pending}, "version": {version}}
}

// webhook gives the person's bot a webhook and returns its secret.
func (p *person) webhook(botID int64) delivery.Secret {
	p.rig.t.Helper()
	s, err := p.rig.queue.Status(p.rig.t.Context(), botID)
	p.rig.must(err)
	secret, _, err := p.rig.bots.SaveWebhook(p.rig.t.Context(), bots.Actor{UserID: p.id}, botID, s.SettingsVersion, hookURL, false)
	p.rig.must(err)
	return secret
}

// answered makes one attempt for the bot's first update, as the worker does.
func (r *rig) answered(botID int64, a delivery.Answer, took time.Duration) {
	r.t.Helper()
	ctx := r.t.Context()
	got, err := r.queue.Claim(ctx, []int64{botID}, 1)
	r.must(err)
	if len(got.Claims) != 1 {
		r.t.Fatalf("claim bot %d: got %+v, want one claim", botID, got)
	}
	if a.Verdict() == delivery.VerdictConfirmed {
		_, err = r.queue.Confirm(ctx, got.Claims[0], a.Status, took, false)
	} else {
		_, _, err = r.queue.Settle(ctx, got.Claims[0], a, took)
	}
	r.must(err)
}

// statusAnswer is an answer with that status.
func statusAnswer(n int) delivery.Answer { return delivery.Answer{Kind: delivery.Answered, Status: n} }

// useUp lets n attempts fail with 503, each when it is due.
func (r *rig) useUp(botID int64, n int) {
	r.t.Helper()
	for range n {
		s, err := r.queue.Status(r.t.Context(), botID)
		r.must(err)
		if wait := s.Hook.Due.Sub(r.clock.Now()); wait > 0 {
			r.clock.advance(wait + time.Second)
		}
		r.answered(botID, statusAnswer(503), 40*time.Millisecond)
	}
}

// everything is all that a refused save must leave alone.
func (r *rig) everything() (all string) {
	r.t.Helper()
	r.must(r.db.Get(&all, `SELECT (SELECT string_agg(q::text, ';') FROM queues q) || ' / ' || coalesce((SELECT string_agg(w::text, ';') FROM webhooks w), '')
	    || ' / ' || (SELECT count(*) FROM updates) || ' / ' || (SELECT count(*) FROM shown_once)`))
	return all
}

func (r *rig) status(botID int64) queue.Status {
	r.t.Helper()
	s, err := r.queue.Status(r.t.Context(), botID)
	r.must(err)
	return s
}
