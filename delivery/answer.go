package delivery

import (
	"strconv"
	"strings"
	"time"
)

// AnswerKind says how one webhook request ended.
type AnswerKind string

// How a request can end (W-08, W-09).
const (
	Answered       AnswerKind = "answered"        // a final status line came; Status has it
	BadCertificate AnswerKind = "bad_certificate" // the endpoint's certificate doesn't validate
	Forbidden      AnswerKind = "forbidden"       // every address of the name is forbidden (W-02)
	NameNotFound   AnswerKind = "name_not_found"  // the look-up gave no address
	NotConnected   AnswerKind = "not_connected"   // no connection: refused, TLS other than the certificate, 5 s
	TimedOut       AnswerKind = "timed_out"       // no answer in 10 s, once a byte of the request was sent
	Lost           AnswerKind = "lost"            // the connection broke, once a byte of the request was sent
	Cut            AnswerKind = "cut"             // this side gave the request up: it counts for nothing (W-13)
)

// The details of BadCertificate, for the words that the owner reads.
const (
	CertificateExpired = "expired" // or not valid yet
	CertificateName    = "name"    // for another name
	CertificateIssuer  = "issuer"  // unknown issuer, or an intermediate one is missing
)

// Answer is what came of one webhook request. Nothing of what the endpoint said
// is in it but the status.
type Answer struct {
	Kind       AnswerKind
	Status     int           // of Answered: what stood in the final status line
	RetryAfter time.Duration // of a 429: 1 s to 1 h; 0: none, or none that counts (W-09)
	Detail     string        // of BadCertificate: which trouble, "" for another
}

// Verdict is what follows from an answer (W-09); M-08 shows it.
type Verdict string

// The verdicts of W-09.
const (
	VerdictConfirmed Verdict = "confirmed" // the next update follows
	VerdictFailed    Verdict = "failed"    // FAILED at once; the next update follows
	VerdictPause     Verdict = "pause"     // until the owner ends it
	VerdictBudget    Verdict = "budget"    // charges the update's budget
	VerdictWait      Verdict = "wait"      // is tried again, charges nothing
	VerdictNone      Verdict = ""          // of Cut: nothing happened
)

// answerTable is the table of W-09 for the statuses that stand in it; the 5xx
// are VerdictBudget, and every other status is VerdictPause.
var answerTable = map[int]Verdict{
	400: VerdictFailed, 413: VerdictFailed, 422: VerdictFailed,
	408: VerdictBudget, 429: VerdictWait,
}

var kindTable = map[AnswerKind]Verdict{
	BadCertificate: VerdictPause, Forbidden: VerdictPause,
	NameNotFound: VerdictWait, NotConnected: VerdictWait,
	TimedOut: VerdictBudget, Lost: VerdictBudget,
	Cut: VerdictNone,
}

// Verdict reads the table of W-09.
func (a Answer) Verdict() Verdict {
	if a.Kind != Answered {
		return kindTable[a.Kind]
	}
	if v, ok := answerTable[a.Status]; ok {
		return v
	}
	switch a.Status / 100 {
	case 2:
		return VerdictConfirmed
	case 5:
		return VerdictBudget
	}
	return VerdictPause
}

// The codes of last_error (W-14) and of pauses (W-09) that are no HTTP_<status>.
const (
	CodeRedirect         = "REDIRECT_NOT_FOLLOWED"
	CodeCertificate      = "TLS_CERTIFICATE_ERROR"
	CodeForbidden        = "ADDRESS_FORBIDDEN"
	CodeTimeout          = "TIMEOUT"
	CodeConnectionLost   = "CONNECTION_LOST"
	CodeConnectionFailed = "CONNECTION_FAILED"
	CodeDNSFailed        = "DNS_FAILED"
)

// The reasons of a FAILED update whose budget is used up (W-10).
const (
	ReasonServerError    = "HTTP_5XX"
	ReasonOutcomeUnknown = "DELIVERY_OUTCOME_UNKNOWN"
)

var kindCodes = map[AnswerKind]string{
	BadCertificate: CodeCertificate, Forbidden: CodeForbidden, NameNotFound: CodeDNSFailed,
	NotConnected: CodeConnectionFailed, TimedOut: CodeTimeout, Lost: CodeConnectionLost,
}

// Code names the answer as last_error does: HTTP_<status>, or one of the codes
// above; "" for one that was cut.
func (a Answer) Code() string {
	if a.Kind != Answered {
		return kindCodes[a.Kind]
	}
	if a.Status/100 == 3 {
		return CodeRedirect
	}
	return HTTPCode(a.Status)
}

// AnswerOf returns the answer that has this code and status: Code's way back,
// without what Code leaves out.
func AnswerOf(code string, status int) Answer {
	for kind, c := range kindCodes {
		if c == code {
			return Answer{Kind: kind}
		}
	}
	return Answer{Kind: Answered, Status: status}
}

// HTTPCode is the code of a status: HTTP_<status>.
func HTTPCode(status int) string { return "HTTP_" + strconv.Itoa(status) }

var codeMessages = map[string]string{
	CodeRedirect:         "the endpoint answered with a redirect, which isn't followed; enter the final address",
	CodeCertificate:      "the endpoint's TLS certificate doesn't validate",
	CodeForbidden:        "the endpoint's name leads only to addresses that aren't public; correct the DNS",
	CodeTimeout:          "the endpoint gave no answer within 10 seconds; it may have processed the update",
	CodeConnectionLost:   "the connection broke before the endpoint's answer; it may have processed the update",
	CodeConnectionFailed: "no connection to the endpoint could be made",
	CodeDNSFailed:        "the endpoint's name could not be resolved",
}

var certificateMessages = map[string]string{
	CertificateExpired: ": it has expired, or isn't valid yet",
	CertificateName:    ": it is for another name",
	CertificateIssuer:  ": its issuer isn't known, or an intermediate certificate is missing",
}

// Message says what went wrong, in a sentence for the bot's author (W-14).
func (e HookError) Message() string {
	if m, ok := codeMessages[e.Code]; ok {
		return m + certificateMessages[e.Detail]
	}
	return "the endpoint answered with " + strings.Replace(e.Code, "HTTP_", "HTTP status ", 1)
}
