package owner

import (
	"context"
	"time"

	"mybots/views/ui"
	"mybots/views/words"

	"github.com/a-h/templ"
)

// HookFacts are the numbers and times of webhook delivery (UI-03).
type HookFacts struct {
	Address   string
	SecretAt  time.Time // when the secret was made
	SuccessAt time.Time
	Error     HookError
	Budget    string    // of the first waiting update
	Made      string    // how many requests were made for it; "" for none
	Ends      time.Time // of its 10 minutes; zero: they don't run
	Still     bool      // they stand still
	Breaker   string
	Drain     string // how long what waits takes; "" while nobody can tell
}

// HookError is the last attempt that failed.
type HookError struct {
	Words, Code string
	At          time.Time // zero: there was none
}

// Attempt is one request and what came of it.
type Attempt struct {
	At       time.Time
	UpdateID string
	Number   int64
	Kind     ui.Kind
	Result   string
	Why      string // why it failed; "" for a success
	Code     string // the status, or the code where none came
	Took     string
}

// HookTools are the ways to find out whether the webhook works.
type HookTools struct {
	TestURL  string
	CheckURL string
	Snippets []Snippet
	Check    CheckForm
}

// Snippet is the code that checks a signature, in one language.
type Snippet struct{ Language, Code string }

// CheckForm is the form of the signature checker, and what it found.
type CheckForm struct {
	Header, Body string // as they were pasted
	Found        *Found // nil: nothing was checked
}

// Found is the mistake that the checker found.
type Found struct {
	Code    string // of the mistake
	Details string // their codes, separated by spaces
	Kind    ui.Kind
	Title   string
	Lines   []string
	Pasted  bool // with a secret of the reader's: it isn't filled in again
}

// Trial is what came of a test request (M-08).
type Trial struct {
	Verdict string // as the contract names it
	Code    string
	Kind    ui.Kind
	Title   string
	Answer  string // what the program answered
	Follows string // what would follow from it
	Fix     string // what to change; "" for nothing
}

// webhookHint is what stands beside the choice of a webhook.
func webhookHint(ctx context.Context, s SaveForm) string {
	if s.Off != "" {
		return s.Off
	}
	return words.T(ctx, "hook.mode_hint") + " " + s.Secret
}

// urlAttributes are those of the address: a phone shows the letters that it needs.
func urlAttributes(s SaveForm) templ.Attributes {
	a := templ.Attributes{"inputmode": "url"}
	if s.Off != "" {
		a["disabled"] = true
	}
	return a
}
