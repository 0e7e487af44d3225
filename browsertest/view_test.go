package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// corner is a page that is bad in one corner each: pale in dark colours only,
// and with a nameless picture in narrow windows only.
const corner = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>corner</title><link rel="icon" href="data:,"><style>
p { color: #000; background: #fff } img { display: none; width: 20px; height: 20px }
@media (prefers-color-scheme: dark) { p { color: #333; background: #222 } }
@media (max-width: 719px) { img { display: block } }
</style></head><body><main><h1>Corner</h1><p>Text</p><input aria-label="typed"><img src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="></main></body></html>`

func serve(t *testing.T, html string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(html))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// rules are the names of the rules that were broken.
func rules(violations []string) string {
	var names []string
	for _, v := range violations {
		name, _, _ := strings.Cut(v, ":")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestEveryViewIsLookedAt(t *testing.T) {
	t.Parallel()
	tab := Open(t, Setup{})
	tab.Go(serve(t, corner))
	tab.Type("input", "kept")
	got := map[string]string{}
	tab.Views(func(v View) {
		name := fmt.Sprintf("%d dark=%v", Eval[int](tab, "innerWidth"), Eval[bool](tab, `matchMedia("(prefers-color-scheme: dark)").matches`))
		if want := fmt.Sprintf("%d dark=%v", v.Width, v.Dark); name != want {
			t.Errorf("the view: got %s, want %s", name, want)
		}
		got[name] = rules(tab.violations())
	})
	for name, want := range map[string]string{
		"1280 dark=false": "", "1280 dark=true": "color-contrast", "360 dark=false": "image-alt", "360 dark=true": "color-contrast image-alt",
	} {
		if got[name] != want {
			t.Errorf("UI-08 %s: got %q, want %q", name, got[name], want)
		}
	}
	if value, width := Eval[string](tab, `document.querySelector("input").value`), Eval[int](tab, "innerWidth"); value != "kept" || width != 1280 {
		t.Errorf("afterwards: got %q in %d pixels, want what was typed, in 1280", value, width)
	}
}

func TestTheRulesRunAgainWhenThePageChanges(t *testing.T) {
	t.Parallel()
	tab := Open(t, Setup{})
	tab.Go(serve(t, strings.Replace(corner, "<img", `<img alt="" `, 1)))
	for _, step := range []struct{ what, script, want string }{
		{"as it came", `0`, ""},
		{"the same again", `0`, ""},
		{"an attribute goes", `document.querySelector("input").removeAttribute("aria-label") || 0`, "label"},
		{"nothing changes: it is said again", `0`, "label"},
		{"the attribute comes back", `document.querySelector("input").setAttribute("aria-label", "typed") || 0`, ""},
		{"a heading is left out", `document.querySelector("main").insertAdjacentHTML("beforeend", "<h4>Deep</h4>") || 0`, "heading-order"},
	} {
		Eval[int](tab, step.script)
		if got := rules(tab.violations()); got != step.want {
			t.Errorf("%s: got %q, want %q", step.what, got, step.want)
		}
	}
}

// child is set in the process in which TestAxeWithoutJavaScript fails.
const child = "BROWSERTEST_CHILD"

func TestAxeWithoutJavaScriptFailsAtOnce(t *testing.T) {
	t.Parallel()
	if os.Getenv(child) != "" {
		tab := Open(t, Setup{NoScript: true})
		tab.Go(serve(t, corner))
		began := time.Now()
		t.Cleanup(func() { fmt.Println("took", time.Since(began) < 5*time.Second) })
		tab.Axe()
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAxeWithoutJavaScriptFailsAtOnce$")
	command.Env = append(os.Environ(), child+"=1")
	out, err := command.CombinedOutput()
	if err == nil {
		t.Errorf("got a pass, want a failure:\n%s", out)
	}
	for _, want := range []string{"axe-core is a script and can't run in a tab without JavaScript", "took true"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got\n%s\nwant %q in it", out, want)
		}
	}
}
