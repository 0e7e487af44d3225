package owner

import (
	"strings"
	"testing"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/views/words"
)

func TestReasonsHaveWords(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{words.English, words.Russian} {
		ctx := words.With(t.Context(), lang)
		check := func(what string, texts ...string) {
			t.Helper()
			for _, text := range texts {
				if text == "" || strings.HasPrefix(text, "failed.") || strings.HasPrefix(text, "became.") {
					t.Errorf("UI-01 %s in %s: got %q, want words", what, lang, text)
				}
			}
		}
		for kind := range kinds {
			check(kind, kindOf(ctx, kind).Words)
		}
		for _, code := range failureCodes {
			r := reasonOf(ctx, code, true)
			check(code, r.Words, r.Do)
			if r.Code != code {
				t.Errorf("F-01 %s: got code %q, want it", code, r.Code)
			}
		}
		for _, code := range append([]delivery.RefusedFor{"SOMETHING_NEW"}, refusals...) {
			r := whyNot(ctx, code)
			check(string(code), r.Words, r.Do)
			if r.Code != string(code) {
				t.Errorf("F-02 %s: got code %q, want it", code, r.Code)
			}
		}
		for _, c := range []delivery.Connection{{Maintenance: true}, {Disabled: true}, {Paused: true}} {
			check("blocked", blocked(ctx, queue.Status{Connection: c}))
			if refused := c.Replay(c.LeaseUntil, "allowed", 0, &delivery.Room{}, c.LeaseUntil); whyNot(ctx, refused).Words == whyNot(ctx, "SOMETHING_NEW").Words {
				t.Errorf("F-02 %s in %s: got the words for what we don't know, want its own", refused, lang)
			}
		}
	}
	if got := kindOf(t.Context(), "poll_answered"); got.Words != "" || got.Code != "poll_answered" {
		t.Errorf("U-01 a type that we don't know: got %+v, want its code alone", got)
	}
	if got := short(strings.Repeat("я", 61)); got != strings.Repeat("я", 59)+"…" {
		t.Errorf("got %q, want 59 letters and …", got)
	}
}
