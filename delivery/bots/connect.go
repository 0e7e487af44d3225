package bots

import (
	"cmp"
	"context"
	"fmt"

	"mybots/delivery"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
)

// SavePolling saves the connection as long polling and returns how many waiting
// updates were cancelled; see queue.Queue.Save.
func (s *Store) SavePolling(ctx context.Context, by Actor, botID, version int64, drop bool) (cancelled int, err error) {
	return s.queue.Save(ctx, botID, version, queue.Settings{Mode: delivery.Polling, Drop: drop},
		s.owner(by, botID, saved(delivery.Polling, "", drop)))
}

// SaveWebhook saves the connection as a webhook at url, which must have been
// checked, and returns its new secret, this once (M-04); see queue.Queue.Save.
func (s *Store) SaveWebhook(ctx context.Context, by Actor, botID, version int64, url string, drop bool) (secret delivery.Secret, cancelled int, err error) {
	secret = delivery.NewSecret(delivery.WebhookSecretPrefix)
	settings := queue.Settings{Mode: delivery.Webhook, URL: url, Drop: drop, Seal: func(version int64) []byte {
		return s.sealer.Seal([]byte(secret), secretPlace(botID, version))
	}}
	// The address may hold a token in its query: the audit log gets none of it.
	cancelled, err = s.queue.Save(ctx, botID, version, settings, s.owner(by, botID, saved(delivery.Webhook, url, drop)))
	if err != nil {
		return "", 0, err
	}
	return secret, cancelled, nil
}

func saved(mode delivery.Mode, address string, drop bool) deed {
	pending := "keep"
	if drop {
		pending = "drop"
	}
	return deed{action: "save_connection", detail: "pending=" + pending, change: func(w was) (before, after string) {
		return connection(w.Mode, w.Version, w.URL), connection(string(mode), w.Version+1, address)
	}}
}

// ResumeWebhook is Resume delivery (W-11).
func (s *Store) ResumeWebhook(ctx context.Context, by Actor, botID int64) error {
	return s.queue.ResumeWebhook(ctx, botID, s.owner(by, botID, deed{action: "resume_delivery", change: func(w was) (before, after string) {
		return "delivery_paused=" + cmp.Or(w.HookPaused, "no"), "delivery_paused=no"
	}}))
}

// ProbeWebhook is Probe now (W-12).
func (s *Store) ProbeWebhook(ctx context.Context, by Actor, botID int64) error {
	return s.queue.ProbeWebhook(ctx, botID, s.owner(by, botID, deed{action: "probe_now", change: func(w was) (before, after string) {
		return fmt.Sprintf("breaker=%d", w.Breaker), "probe=asked"
	}}))
}

// Target is where a bot's webhook is and what signs its requests.
type Target struct {
	URL     string
	Secret  delivery.Secret
	Version int64 // of the settings that saved it
}

func secretPlace(botID, version int64) string {
	return fmt.Sprintf("webhook-secret|%d|%d", botID, version)
}

// Targets returns the webhooks of bots; those that have none now are left out,
// and so are those whose secret doesn't open: the error names the first.
func (s *Store) Targets(ctx context.Context, ids []int64) (map[int64]Target, error) {
	var rows []struct {
		BotID   int64  `db:"bot_id"`
		URL     string `db:"url"`
		Secret  []byte `db:"secret"`
		Version int64  `db:"version"`
	}
	err := s.db.SelectContext(ctx, &rows, `SELECT bot_id, url, secret, version FROM webhooks WHERE bot_id = ANY ($1) AND secret IS NOT NULL`, pg.Int8s(ids))
	if err != nil {
		return nil, pg.Mark(fmt.Errorf("webhooks of %d bots: %w", len(ids), err))
	}
	targets := make(map[int64]Target, len(rows))
	var failed error
	for _, r := range rows {
		secret, err := s.sealer.Open(r.Secret, secretPlace(r.BotID, r.Version))
		if err != nil {
			if failed == nil {
				failed = fmt.Errorf("webhook secret of bot %d: %w", r.BotID, err)
			}
			continue
		}
		targets[r.BotID] = Target{URL: r.URL, Secret: delivery.Secret(secret), Version: r.Version}
	}
	return targets, failed
}
