// Package support holds support's pages: looking for bots, one bot's whole
// delivery state, its updates without their content, the platform's switches and
// the audit log. Each page takes one struct with everything on it ready in the
// reader's language; nothing in them is a secret or the content of an update,
// but for the one that UpdatePage shows on purpose.
package support

import (
	"time"

	"mybots/static"
	"mybots/views/ui"
)

// sheet is the style sheet of these pages alone.
func sheet() string { return static.URL("css/support.css") }

// Link is a way to another page; an empty URL is none.
type Link struct{ URL, Text string }

// Pages are the ways through a long list. An empty URL is no way.
type Pages struct{ FirstURL, NextURL string }

// BotRow is a bot in a list.
type BotRow struct {
	URL, ID, Name, Username string
	Owner, Space            string
	Deleted                 bool
	Kind                    ui.Kind // of Needs
	Needs, Why              string  // why it needs attention, and the code; "" in other lists
	Waiting, Failed         int64
	Oldest                  time.Time
}

// Home is where support begins.
type Home struct {
	Query       string
	Total       string // how many were found, in words
	Found       []BotRow
	FoundPages  Pages
	Needy       []BotRow
	NeedyTotal  string
	NeedyPages  Pages
	Maintenance Maintenance
	Notices     NoticesHome
	AuditURL    string
}

// Maintenance is how the platform is.
type Maintenance struct {
	On        bool
	Since     time.Time
	Said      []string // what people read, in each language
	SwitchURL string   // "" for who may not switch
}

// State is one thing that holds of a bot.
type State struct {
	Code  string
	Kind  ui.Kind
	Word  string
	Means string
	Cause string // a code; "" for none
	Why   string // the code in words
	Off   Off    // of what the platform switched off
}

// Off is since when and why the platform switched something off.
type Off struct {
	At     time.Time // zero: it didn't, or nobody wrote it down
	Reason string
}

// Bot is everything about one bot.
type Bot struct {
	Facts    []Fact // who it is
	States   []State
	Queue    Queue
	Lease    Lease
	Hook     Hook
	Attempts []Attempt
	Groups   []Group
	Switches Switches
	Notices  NoticesCard
	Audit    []AuditRow
	AuditURL string
}

// Fact is a line: what, and how it is.
type Fact struct {
	Term, Value string
	Code        bool // Value is an id or a code
	URL         string
}

// Queue is how full the queue is and where it stands.
type Queue struct {
	Waiting, Size               string
	WaitingPercent, SizePercent int
	Oldest                      time.Time
	Position, Issued, Next      string
	Failed                      int64
	WaitingURL, FailedURL       string
}

// Lease is who receives, and who was refused last.
type Lease struct {
	Mode, Version      string
	Active, Asking     bool
	ConsumerID, Epoch  string
	Since, Until       time.Time
	Refused, RefusedAt string // who, and from where
	RefusedTime        time.Time
}

// Hook is the state of webhook delivery.
type Hook struct {
	Saved     bool
	Host      string // never more of the address
	SavedAt   time.Time
	Allowed   bool
	Paused    string // a code; "" while it isn't paused
	StoppedAt time.Time
	Budget    string
	Ends      time.Time // of the budget's 10 minutes; zero: they don't run
	Still     bool      // they stand still
	Breaker   string
	Failures  string // failed connections; "" for none
	NextNow   bool
	NextAt    time.Time // zero: none is due
	ErrorCode string
	ErrorWhy  string
	ErrorAt   time.Time
	SuccessAt time.Time
}

// Attempt is one request and what came of it.
type Attempt struct {
	At       time.Time
	UpdateID string
	Number   int64
	Kind     ui.Kind
	Result   string
	Code     string
	Why      string
	Took     string
}

// Group counts failed updates of one type and reason.
type Group struct {
	Type, Reason, Why string
	Code              bool // Reason is a code
	Count             int64
}

// Switches are what support can switch about a bot.
type Switches struct {
	May             bool
	HookOn, SpaceOn bool
	HookURL         string // "" for a bot that is deleted
	SpaceURL        string
}

// Switch asks before something is switched.
type Switch struct {
	Question string
	Effects  []string
	Action   string
	Hidden   []ui.Hidden
	Hint     string // who reads the reason
	Look     ui.Look
	Verb     string
	Back     Link
	More     Link // something to look at first
	Value    string
	Bad      string // what is wrong with the reason
	Off      Off
	Messages *Messages // of maintenance; nil: it isn't that
	End      string    // the verb that ends maintenance; "" while it isn't on
}

// Messages are what the banner says.
type Messages struct{ Text, TextRU, Bad, BadRU string }

// UpdateRow is an update without its content.
type UpdateRow struct {
	URL, ID, Type string
	Date          time.Time
	Size, Chat    string
	Reason, Why   string // of a failed one
	Tries         int64
	FailedAt      time.Time
}

// Updates lists what waits, or what failed.
type Updates struct {
	Failed bool
	Rows   []UpdateRow
	Pages  Pages
	Back   Link
}

// Update is one update.
type Update struct {
	Facts    []Fact
	Date     time.Time
	Expires  time.Time
	FailedAt time.Time
	Failed   bool
	Payload  string
	Shown    bool // Payload is the content itself
	May      bool
	Action   string
	Value    string
	Code     string // of the error
	Bad      string
	Back     Link
}

// AuditRow is a line of the audit log.
type AuditRow struct {
	At                    time.Time
	Who, Role             string
	Action, Code          string
	About, AboutURL       string
	Before, After, Detail string
	Reason                string
}

// Audit is the audit log.
type Audit struct {
	Rows  []AuditRow
	Pages Pages
	All   Link
	Back  Link
}
