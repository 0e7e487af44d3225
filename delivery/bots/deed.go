package bots

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/jmoiron/sqlx"

	"mybots/delivery/audit"
	"mybots/delivery/queue"
)

// deed is what the audit log gets to know of an owner's action.
type deed struct {
	action string
	detail string
	change func(was was) (before, after string)
}

// was is how a bot is before a deed, under the lock of its queue's row.
type was struct {
	Username   string `db:"username"`
	Mode       string `db:"mode"`
	Version    int64  `db:"settings_version"`
	URL        string `db:"url"`
	Paused     bool   `db:"paused"`
	ConsumerID string `db:"consumer_id"`
	HookPaused string `db:"hook_paused"`
	Breaker    int    `db:"breaker"`
	Waiting    int    `db:"waiting"`
	Failed     int    `db:"failed"`
}

// Zero rows: the bot isn't the actor's, or is deleted.
const wasSQL = `
SELECT b.username, q.mode, q.settings_version, CASE WHEN q.mode = 'webhook' THEN coalesce(w.url, '') ELSE '' END AS url,
       q.paused, q.consumer_id, q.hook_paused, q.breaker, q.waiting, q.failed
  FROM bots b JOIN queues q USING (bot_id) LEFT JOIN webhooks w USING (bot_id)
 WHERE b.bot_id = $1 AND b.owner_id = $2 AND b.deleted_at IS NULL`

// owner is the check and the audit line that every action of an owner carries.
func (s *Store) owner(by Actor, botID int64, d deed) queue.Within {
	return func(ctx context.Context, tx *sqlx.Tx) error {
		var w was
		err := tx.GetContext(ctx, &w, wasSQL, botID, by.UserID)
		if err := found(err, fmt.Sprintf("bot %d of person %d", botID, by.UserID)); err != nil {
			return err
		}
		e := audit.Entry{At: s.clock.Now(), BotID: botID, UserID: by.UserID, Action: d.action, Detail: d.detail, RequestID: by.RequestID, Address: by.Address}
		e.Before, e.After = d.change(w)
		return audit.Write(ctx, tx, e)
	}
}

// onOff writes a switch as forms do.
func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// host is all that an audit log may know of a webhook's address: its path and
// query can hold a token.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "none"
	}
	return strings.ToLower(u.Host)
}

// connection writes how a bot receives.
func connection(mode string, version int64, address string) string {
	text := fmt.Sprintf("mode=%s version=%d", mode, version)
	if address != "" {
		text += " host=" + host(address)
	}
	return text
}

// lease writes who holds a bot's connection.
func lease(consumerID string) string {
	if consumerID == "" {
		return "lease=none"
	}
	return "lease=" + consumerID
}
