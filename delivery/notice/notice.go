// Package notice tells owners of trouble with their bots (contract, part 10):
// an outbox whose rows are written in the transaction of their cause, and a
// worker that sends them by the routes: the owner's BotFather chat, and MAX.
//
// A notice is never sent twice by itself. The database sends to BotFather's chat
// in the transaction that closes the notice. What goes to MAX is marked as
// sending before the request is made; if its answer is lost, whatever the cause,
// the notice is uncertain and a person decides (N-04).
package notice

import (
	"net/url"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
)

// Window is how long no other notice of a kind about a bot is sent (N-01, N-03).
const Window = time.Hour

// The routes.
const (
	BotFather = "botfather" // the owner's chat in the bot's space
	MAX       = "max"
)

// Routes are all routes.
var Routes = []string{BotFather, MAX}

// State is where a notice stands (N-04).
type State string

// The states. Queued and Retrying wait to be sent; Uncertain, Blocked and Dead
// wait for a person; Sent, Deduplicated and Stale are closed.
const (
	Queued       State = "queued"
	Sending      State = "sending"      // the request may be under way
	Retrying     State = "retrying"     // failed for now, is tried again
	Sent         State = "sent"         // the route said so
	Uncertain    State = "uncertain"    // the answer was lost: it may have arrived
	Blocked      State = "blocked"      // the route refused our authorisation, and stopped
	Dead         State = "dead"         // the route refused it for good, or too often
	Deduplicated State = "deduplicated" // its new recipient has got this notice already
	Stale        State = "stale"        // not sent: its cause had passed, it was too old, or a person closed it
)

// States are all states.
var States = []State{Queued, Sending, Retrying, Sent, Uncertain, Blocked, Dead, Deduplicated, Stale}

// urgent are the kinds with a lane of their own (N-06).
func urgent(k delivery.TroubleKind) bool { return k == delivery.TroublePaused }

// Options is what a Store needs.
type Options struct {
	DB      *sqlx.DB
	Clock   delivery.Clock
	BaseURL func() *url.URL // where browsers reach the product; asked when a link is sent
	MAX     bool            // there is a way to MAX
}

// Store is the outbox with the chats and links that notices go to.
type Store struct {
	db    *sqlx.DB
	clock delivery.Clock
	base  func() *url.URL
	max   bool
}

// New returns the outbox in o.DB.
func New(o Options) *Store { return &Store{db: o.DB, clock: o.Clock, base: o.BaseURL, max: o.MAX} }

// MAX tells whether there is a way to MAX.
func (s *Store) MAX() bool { return s.max }

// ConnectionPath is where a notice's button leads: to the bot's connection
// settings.
func ConnectionPath(botID int64) string {
	return "/bots/" + strconv.FormatInt(botID, 10) + "/connection"
}
