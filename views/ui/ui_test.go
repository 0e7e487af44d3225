package ui

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"mybots/views/words"

	"github.com/a-h/templ"
)

func render(t *testing.T, lang string, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(words.With(t.Context(), lang), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestParts(t *testing.T) {
	t.Parallel()
	const nasty = `"><img src=x onerror=alert(1)>`
	at := time.Date(2026, 9, 26, 13, 0, 4, 7_000_000, time.FixedZone("MSK", 3*3600))
	for name, c := range map[string]struct {
		part templ.Component
		want []string // in this order
		not  []string
	}{
		"UI-11 a token stands alone in the element token": {Secret("token", "Token", "sbt1_abc"),
			[]string{`<label for="token">Token</label>`, `<textarea id="token"`, "readonly", `>sbt1_abc</textarea>`}, nil},
		"UI-11 an error has its code": {Errors("ADDRESS_FORBIDDEN", nasty),
			[]string{`id="error"`, `role="alert"`, `data-code="ADDRESS_FORBIDDEN"`, "&lt;img"}, []string{"<img"}},
		"no error is nothing": {Errors("X", ""), nil, []string{"<"}},
		"UI-05 a state has an icon and a word": {Pill(Trouble, "Paused"),
			[]string{`class="pill trouble"`, `<svg`, `aria-hidden="true"`, "<span>Paused</span>"}, nil},
		"UI-05 a time is UTC for machines and on hover": {Time(at),
			[]string{`datetime="2026-09-26T10:00:04.007Z"`, `title="2026-09-26 10:00:04 UTC"`, ">2026-09-26 10:00:04 UTC</time>"}, nil},
		"no time is a dash": {Time(time.Time{}), []string{"—"}, []string{"<time"}},
		"a wrong field says so": {Field(FieldProps{ID: "url", Name: "url", Label: "Address", Value: nasty, Hint: "With https.", Error: "Private.", Required: true, MaxLength: 9}),
			[]string{`<label for="url">Address</label>`, `id="url-hint"`, `<input id="url" name="url" type="text"`, "required", `maxlength="9"`, `aria-invalid="true"`, `aria-describedby="url-hint url-error"`, `id="url-error"`, "Private."}, []string{"<img"}},
		"a good field doesn't": {Field(FieldProps{ID: "url", Name: "url", Label: "Address"}),
			[]string{`<input id="url"`}, []string{"aria-invalid", "aria-describedby", "required"}},
		"a choice": {Radio(ChoiceProps{ID: "m", Name: "mode", Value: "polling", Label: "Long polling", Checked: true, Disabled: true}),
			[]string{`type="radio"`, `value="polling"`, "checked", "disabled", `<label for="m">Long polling</label>`}, nil},
		"an address that runs a script isn't one": {ButtonLink(Plain, "javascript:alert(1)", "x"), []string{"about:invalid"}, []string{"javascript:"}},
		"a list of one page has no pager":         {Pager(PagerProps{Text: "1–3 of 3"}), nil, []string{"<nav"}},
		"the first page has no previous":          {Pager(PagerProps{Text: "1–50", NextURL: "/x?after=50"}), []string{"1–50", `rel="next" href="/x?after=50"`}, []string{`rel="prev"`}},
		"a code block can be reached and copied":  {Code("curl", "curl <x>"), []string{"data-copy", `<pre tabindex="0" role="region" aria-label="curl"><code data-copy-text>curl &lt;x&gt;</code></pre>`}, nil},
		"an id is whole":                          {ID("bot id", "9223372036854775807"), []string{"<code data-copy-text>9223372036854775807</code>", "Copy bot id"}, nil},
		"why a button is off stands beside it":    {Disabled("Retry", "It has expired."), []string{"disabled", "It has expired."}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render(t, "en", c.part)
			rest := got
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("got %s\nwant %s next", got, want)
				}
				rest = after
			}
			for _, not := range c.not {
				if strings.Contains(got, not) {
					t.Errorf("got %s\nwant no %s", got, not)
				}
			}
		})
	}
}

func TestPartsSpeakTheReadersLanguage(t *testing.T) {
	t.Parallel()
	if got := render(t, "ru", Count(1234567)); !strings.Contains(got, "1\u00a0234\u00a0567") {
		t.Errorf("UI-01 number: got %s, want it grouped the Russian way", got)
	}
	if got := render(t, "ru", Secret("secret", "Секрет", "x")); !strings.Contains(got, "Показать") || !strings.Contains(got, "Копировать") {
		t.Errorf("UI-01 buttons: got %s, want Russian", got)
	}
}

// Each meaning has a shape of its own, so that nobody needs the colour.
func TestKindsHaveTheirOwnShapes(t *testing.T) {
	t.Parallel()
	seen := map[string]Kind{}
	for _, k := range []Kind{Fine, Waiting, Trouble, Off} {
		shape := render(t, "en", Icon(k.icon()))
		if other, ok := seen[shape]; ok || !strings.Contains(shape, "<path") {
			t.Errorf("UI-05 %s: got the shape of %q, want its own", k, other)
		}
		seen[shape] = k
	}
}

func TestAContextThatEndedRendersNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Pill(Fine, "x").Render(ctx, io.Discard); err == nil {
		t.Error("got no error, want the context's")
	}
}
