package owner

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/delivery/webhook"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

var hookNow = time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC)

// hooked is the status of a bot with a webhook and n waiting updates.
func hooked(n int, h delivery.Hook) queue.Status {
	return queue.Status{Connection: delivery.Connection{Mode: delivery.Webhook}, HookAllowed: true, Waiting: n, Hook: h, At: hookNow}
}

func failedWith(code string) delivery.HookError { return delivery.HookError{Code: code, At: hookNow} }

func TestHookStateOf(t *testing.T) {
	t.Parallel()
	soon, off := hookNow.Add(time.Minute), hooked(1, delivery.Hook{Paused: "HTTP_401"})
	off.HookAllowed, off.Paused = false, true
	stopped := hooked(1, delivery.Hook{Paused: "HTTP_401"})
	stopped.Paused = true
	serviced := off
	serviced.Maintenance = true
	tests := map[string]struct {
		s    queue.Status
		want state
		code string
		kind ui.Kind
	}{
		"maintenance before all":            {serviced, maintenance, "maintenance", ui.Waiting},
		"the platform before every pause":   {off, hookOff, "disabled", ui.Off},
		"the bot's pause before delivery's": {stopped, paused, "paused", ui.Off},
		"paused by an answer":               {hooked(9, delivery.Hook{Paused: "HTTP_404", Breaker: 2}), hookPaused, "paused", ui.Trouble},
		"paused and full":                   {hooked(delivery.MaxWaiting, delivery.Hook{Paused: "HTTP_404"}), hookPaused, "paused", ui.Trouble},
		"the breaker is open":               {hooked(1, delivery.Hook{Breaker: 1, Due: soon}), hookOpen, "circuit_open", ui.Trouble},
		"no connection":                     {hooked(1, delivery.Hook{Due: soon, Failures: 2, LastError: failedWith("CONNECTION_FAILED")}), hookConnecting, "retrying", ui.Trouble},
		"no name":                           {hooked(1, delivery.Hook{Due: soon, Failures: 1, LastError: failedWith("DNS_FAILED")}), hookConnecting, "retrying", ui.Trouble},
		"429":                               {hooked(1, delivery.Hook{Due: soon, LastError: failedWith("HTTP_429")}), hookAsked, "retrying", ui.Waiting},
		"503":                               {hooked(1, delivery.Hook{Due: soon, LastError: failedWith("HTTP_503")}), hookRetrying, "retrying", ui.Waiting},
		"full":                              {hooked(delivery.MaxWaiting, delivery.Hook{}), hookFull, "queue_full", ui.Trouble},
		"something waits":                   {hooked(1, delivery.Hook{}), hookDelivering, "active", ui.Fine},
		"nothing waits":                     {hooked(0, delivery.Hook{SuccessAt: hookNow}), hookReady, "active", ui.Fine},
		"nothing was sent yet":              {hooked(0, delivery.Hook{}), hookNew, "active", ui.Waiting},
	}
	for name, c := range tests {
		t.Run("UI-03 W-14 "+name, func(t *testing.T) {
			t.Parallel()
			got := stateOf(c.s)
			if got != c.want || got.code() != c.code || got.kind() != c.kind {
				t.Errorf("got %s, code %s, kind %s, want %s, %s, %s", got, got.code(), got.kind(), c.want, c.code, c.kind)
			}
			// The page says what getWebhookInfo says, where that has a word for it.
			if info := c.s.Hook.State(c.s.Connection, c.s.HookAllowed, c.s.Waiting > 0); !c.s.Maintenance && c.want != hookFull && got.code() != info {
				t.Errorf("got code %s, want %s as the Bot API says", got.code(), info)
			}
		})
	}
}

// codesOfErrors are all kinds of last_error (W-09, W-14).
var codesOfErrors = []string{
	"HTTP_400", "HTTP_401", "HTTP_403", "HTTP_404", "HTTP_408", "HTTP_410", "HTTP_413", "HTTP_418", "HTTP_422", "HTTP_429", "HTTP_500", "HTTP_503",
	delivery.CodeRedirect, delivery.CodeCertificate, delivery.CodeForbidden, delivery.CodeTimeout, delivery.CodeConnectionLost,
	delivery.CodeConnectionFailed, delivery.CodeDNSFailed,
}

var key = regexp.MustCompile(`(hook|state)\.[a-z_]+|\{\{|<no value>`)

// spoken checks that texts are words, and not a key or half of a template.
func spoken(t *testing.T, what, lang string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if text == "" || key.MatchString(text) {
			t.Errorf("UI-01 %s in %s: got %q, want words", what, lang, text)
		}
	}
}

func TestHookStatesHaveWords(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{words.English, words.Russian} {
		ctx := words.With(t.Context(), lang)
		for _, s := range []state{hookOff, hookPaused, hookOpen, hookConnecting, hookAsked, hookRetrying, hookFull, hookDelivering, hookReady, hookNew} {
			for _, n := range []int{0, 1, 5, delivery.MaxWaiting} {
				v := s.say(ctx, hooked(n, delivery.Hook{Paused: "HTTP_401", LastError: failedWith("DNS_FAILED"), Breaker: 1}))
				spoken(t, string(s), lang, v.Word, v.Means)
				calm := s == hookDelivering || s == hookReady
				if (v.Act == "") != calm || !calm && s != hookNew && v.Safe == "" {
					t.Errorf("UI-05 %s in %s: got %+v, want what to do, and what is safe", s, lang, v)
				}
			}
		}
		for _, code := range codesOfErrors {
			for _, detail := range []string{"", delivery.CertificateExpired, delivery.CertificateName, delivery.CertificateIssuer, "something_new"} {
				e := delivery.HookError{Code: code, Detail: detail, At: hookNow}
				w := troubleOf(code, detail)
				spoken(t, code, lang, w.why(ctx), w.fix(ctx))
				if delivery.AnswerOf(code, w.status).Verdict() == delivery.VerdictPause || w.status > 0 || code == delivery.CodeRedirect {
					v := hookPaused.say(ctx, hooked(3, delivery.Hook{Paused: code, LastError: e}))
					spoken(t, code, lang, v.Means, v.Act, v.Safe)
					if v.Cause != code {
						t.Errorf("W-09 %s in %s: got cause %q, want the code", code, lang, v.Cause)
					}
				}
			}
		}
		for charged := range delivery.MaxCharged {
			v := hookRetrying.say(ctx, hooked(3, delivery.Hook{Head: delivery.Budget{UpdateID: 12, Charged: charged}, LastError: failedWith("HTTP_503")}))
			spoken(t, "retrying", lang, v.Means)
		}
		spoken(t, "off here", lang, words.T(ctx, "state.hooks_off_means"), words.T(ctx, "state.hooks_off_act"))
	}
}

func TestPausesDiffer(t *testing.T) {
	t.Parallel()
	ctx := words.With(t.Context(), words.English)
	seen := map[string]string{}
	for _, c := range []struct{ code, detail, want string }{
		{"HTTP_401", "", "Most often the secret differs"}, {"HTTP_404", "", "nothing at this path (404)"}, {"HTTP_410", "", "any more"},
		{"HTTP_418", "", "status 418"}, {delivery.CodeRedirect, "", "redirects"}, {delivery.CodeForbidden, "", "private network"},
		{delivery.CodeCertificate, "", "doesn't validate"}, {delivery.CodeCertificate, delivery.CertificateExpired, "expired"},
		{delivery.CodeCertificate, delivery.CertificateName, "another name"}, {delivery.CodeCertificate, delivery.CertificateIssuer, "issuer"},
	} {
		v := hookPaused.say(ctx, hooked(3, delivery.Hook{Paused: c.code, LastError: delivery.HookError{Code: c.code, Detail: c.detail, At: hookNow}}))
		if !strings.Contains(v.Means, c.want) || !strings.Contains(v.Act, "Resume delivery") {
			t.Errorf("W-11 %s %s: got %q, %q, want %q in it and Resume delivery", c.code, c.detail, v.Means, v.Act, c.want)
		}
		if other, ok := seen[v.Means]; ok {
			t.Errorf("W-11 %s %s: got the words of %s, want its own", c.code, c.detail, other)
		}
		seen[v.Means] = c.code + c.detail
	}
	open := hookPaused.say(ctx, hooked(delivery.MaxWaiting, delivery.Hook{Paused: "HTTP_401", Breaker: 1}))
	if !strings.Contains(open.Act, "sends one probe first") || !strings.Contains(open.Safe, "queue is full as well") {
		t.Errorf("paused, open and full: got %q, %q, want a word of each", open.Act, open.Safe)
	}
}

func TestAddressRulesHaveWords(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{words.English, words.Russian} {
		ctx := words.With(t.Context(), lang)
		other, seen := ruleBroken(ctx, "something_new"), map[string]webhook.Rule{}
		spoken(t, "a new rule", lang, other)
		for _, rule := range webhook.Rules() {
			text := ruleBroken(ctx, rule)
			spoken(t, string(rule), lang, text)
			if before, ok := seen[text]; ok || text == other {
				t.Errorf("W-01 %s in %s: got the words of %q, want its own", rule, lang, before)
			}
			seen[text] = rule
		}
	}
}

// declared finds the constants of a type in the checker's own sources.
func declared(t *testing.T, kind string) (list []string) {
	t.Helper()
	files, err := filepath.Glob("../../delivery/webhook/mistake*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the checker's sources: %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s+\w+\s+`+kind+`\s+= "(\w+)"`).FindAllStringSubmatch(string(content), -1) {
			list = append(list, m[1])
		}
	}
	return list
}

func TestMistakesHaveWords(t *testing.T) {
	t.Parallel()
	mistakes, details := declared(t, "Mistake"), declared(t, "Detail")
	if len(mistakes) < 11 || len(details) < 30 {
		t.Fatalf("got %d mistakes and %d details, want those of the checker", len(mistakes), len(details))
	}
	for _, lang := range []string{words.English, words.Russian} {
		ctx := words.With(t.Context(), lang)
		other := detailWords(ctx, "something_new")
		for _, d := range details {
			text := detailWords(ctx, webhook.Detail(d))
			spoken(t, d, lang, text)
			if text == other {
				t.Errorf("UI-03 %s in %s: got the words for what we don't know, want its own", d, lang)
			}
		}
		for _, m := range append(mistakes, string(oldSecret)) {
			v := foundWords(ctx, webhook.Finding{Mistake: webhook.Mistake(m), Details: []webhook.Detail{"sorted"}})
			spoken(t, m, lang, append(v.Lines, v.Title)...)
		}
		for _, off := range []time.Duration{-time.Hour, time.Hour} {
			v := foundWords(ctx, webhook.Finding{Mistake: webhook.MistakeKey, Time: hookNow, Off: off})
			spoken(t, off.String(), lang, v.Lines...)
			if len(v.Lines) != 1 || !strings.Contains(v.Lines[0], "5") {
				t.Errorf("K-07 %v: got %q, want that t alone would be refused", off, v.Lines)
			}
		}
	}
}

func TestAttemptsHaveWords(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{words.English, words.Russian} {
		ctx := words.With(t.Context(), lang)
		for _, fate := range []delivery.Fate{delivery.FateConfirmed, delivery.FateFailed, delivery.FateStays} {
			for _, code := range codesOfErrors {
				a := queue.Attempt{Fate: fate, Code: code, Status: troubleOf(code, "").status, Charged: 2}
				kind, text := result(ctx, a)
				spoken(t, string(fate)+" "+code, lang, text, answerCode(a))
				if kind == "" {
					t.Errorf("UI-05 %s %s: got no kind, want one", fate, code)
				}
			}
		}
		for verdict, a := range map[delivery.Verdict]delivery.Answer{
			delivery.VerdictConfirmed: {Kind: delivery.Answered, Status: 204}, delivery.VerdictFailed: {Kind: delivery.Answered, Status: 422},
			delivery.VerdictPause: {Kind: delivery.BadCertificate, Detail: delivery.CertificateName}, delivery.VerdictBudget: {Kind: delivery.TimedOut},
			delivery.VerdictWait: {Kind: delivery.NotConnected},
		} {
			made := newTrial(12, a, 1234*time.Millisecond)
			got, ok := trialOf(12, made.flash(ctx))
			if !ok || got.verdict != verdict || got.trouble != made.trouble || got.took != made.took {
				t.Errorf("M-08 %s in %s: got %+v, %v, want it back from the flash", verdict, lang, got, ok)
			}
			v := got.say(ctx)
			spoken(t, string(verdict), lang, v.Title, v.Answer, v.Follows)
			if (v.Fix == "") != (verdict == delivery.VerdictConfirmed) {
				t.Errorf("M-08 %s in %s: got fix %q", verdict, lang, v.Fix)
			}
		}
	}
	for _, flash := range []string{"", "Saved.", "x [test 13 confirmed HTTP_200 - 5]", "x [test 12 strange HTTP_200 - 5]", "x [test 12 confirmed HTTP_200 - x]", "x [test 12 confirmed]"} {
		if got, ok := trialOf(12, flash); ok {
			t.Errorf("M-08 the flash %q: got %+v, want none of this bot", flash, got)
		}
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	ctx := words.With(t.Context(), words.English)
	pace := func(n int, each time.Duration) (list []queue.Attempt) {
		for range n {
			list = append(list, queue.Attempt{Fate: delivery.FateConfirmed, Took: each}, queue.Attempt{Fate: delivery.FateStays, Took: time.Hour})
		}
		return list
	}
	for want, got := range map[string]string{
		"":                                    drain(ctx, 312, pace(9, time.Second)),
		"About 5 min for 312 waiting updates": drain(ctx, 312, pace(10, time.Second)),
		"Less than a minute for 1 waiting update": drain(ctx, 1, pace(25, time.Second)),
		"About 28 h for 10,000 waiting updates":   drain(ctx, 10_000, pace(10, 10*time.Second)),
	} {
		if got != want {
			t.Errorf("UI-03 got %q, want %q", got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0 ms", 1: "1 ms", 35 * time.Millisecond: "35 ms", time.Second: "1.0 s", 9_960 * time.Millisecond: "10.0 s"} {
		if got := web.Took(ctx, d); got != want {
			t.Errorf("UI-03 %v: got %s, want %s", d, got, want)
		}
	}
}
