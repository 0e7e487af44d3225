package browsertest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// bad is a page that breaks every promise the tabs look after.
const bad = `<!DOCTYPE html><html><head><meta charset="utf-8"><title>bad</title></head><body>
<img src="/missing.png"><p style="color: #ccc; background: #fff">pale</p>
<script>window.inline = true</script>
<script src="/bad.js"></script>
<img src="http://elsewhere.invalid/x.png" alt="">
<div>` + `<p style="width: 3000px">wide</p></div></body></html>`

const good = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>good</title><link rel="icon" href="data:,"></head>
<body><main><h1>Good</h1><p id="js">no script</p></main><script src="/good.js"></script></body></html>`

func site(t *testing.T) string {
	t.Helper()
	page := func(html string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; img-src 'self' data: http://elsewhere.invalid")
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(html))
		}
	}
	script := func(js string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(js))
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/bad", page(bad))
	mux.Handle("/good", page(good))
	mux.Handle("/bad.js", script(`console.error("said so"); throw new Error("thrown")`))
	mux.Handle("/good.js", script(`document.getElementById("js").textContent = matchMedia("(prefers-color-scheme: dark)").matches + " " + innerWidth + " " + Intl.DateTimeFormat().resolvedOptions().timeZone`))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// The negative control: what the tests of pages rely on really fires.
func TestABadPageIsNoticed(t *testing.T) {
	t.Parallel()
	tab := open(t, Setup{})
	tab.Go(site(t) + "/bad")
	problems := strings.Join(tab.Problems(), "\n")
	for name, want := range map[string]string{
		"exception":            "Error: thrown",
		"console error":        "said so",
		"answer of 404":        "status of 404",
		"broken script policy": "script-src 'self'",
		"broken style policy":  "style-src",
		"request to elsewhere": "request to elsewhere: http://elsewhere.invalid/x.png",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("%s: got\n%s\nwant %q among it", name, problems, want)
		}
	}
	violations := strings.Join(tab.violations(), "\n")
	for _, want := range []string{"html-has-lang", "image-alt", "landmark-one-main"} {
		if !strings.Contains(violations, want) {
			t.Errorf("axe: got\n%s\nwant %s among it", violations, want)
		}
	}
}

func TestAGoodPageIsNot(t *testing.T) {
	t.Parallel()
	address := site(t) + "/good"
	for name, c := range map[string]struct {
		setup Setup
		want  string
	}{
		"dark, narrow, far away": {Setup{Width: 360, Dark: true, Zone: "Asia/Tokyo"}, "true 360 Asia/Tokyo"},
		"light, wide, at home":   {Setup{}, "false 1280 UTC"},
		"without JavaScript":     {Setup{NoScript: true}, "no script"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := Open(t, c.setup)
			tab.Go(address)
			tab.Fits()
			if got := tab.Text("#js"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !c.setup.NoScript {
				tab.Axe()
			}
		})
	}
}
