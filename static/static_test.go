package static

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestURLNamesTheContent(t *testing.T) {
	t.Parallel()
	if got := URL("css/app.css"); !regexp.MustCompile(`^/static/css/app\.[0-9a-f]{8}\.css$`).MatchString(got) {
		t.Errorf("got %s, want /static/css/app.HASH8.css", got)
	}
	one, _ := load(fstest.MapFS{"css/a.css": {Data: []byte("a{}")}})
	other, _ := load(fstest.MapFS{"css/a.css": {Data: []byte("b{}")}})
	if one["css/a.css"].url == other["css/a.css"].url {
		t.Errorf("two contents: got %s twice, want two names", one["css/a.css"].url)
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown name: got no panic, want one")
		}
	}()
	URL("css/missing.css")
}

func TestHandler(t *testing.T) {
	t.Parallel()
	css := URL("css/app.css")
	for name, c := range map[string]struct {
		path, wantType, wantCache string
		want                      int
	}{
		"style sheet":     {css, "text/css; charset=utf-8", "public, max-age=31536000, immutable", 200},
		"script":          {URL("js/app.js"), "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", 200},
		"icon":            {URL("css/icon.svg"), "image/svg+xml", "public, max-age=31536000, immutable", 200},
		"without a hash":  {"/static/css/app.css", "text/plain; charset=utf-8", "", 404},
		"another hash":    {strings.Replace(css, "app.", "app.0", 1), "text/plain; charset=utf-8", "", 404},
		"the placeholder": {"/static/vendor/placeholder.txt", "text/plain; charset=utf-8", "", 404},
		"a folder":        {"/static/css/", "text/plain; charset=utf-8", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
			if w.Code != c.want {
				t.Errorf("status: got %d, want %d", w.Code, c.want)
			}
			if got := w.Header().Get("Content-Type"); got != c.wantType {
				t.Errorf("type: got %q, want %q", got, c.wantType)
			}
			if got := w.Header().Get("Cache-Control"); got != c.wantCache {
				t.Errorf("cache: got %q, want %q", got, c.wantCache)
			}
		})
	}
}

// Styles and scripts that the content security policy would block, or that
// would fetch something from elsewhere, have no place in our own files.
func TestOwnFilesStayInside(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"css/app.css", "js/app.js"} {
		for _, bad := range []string{"http:", "https:", "url(", "@import", "eval(", "new Function", "innerHTML"} {
			if strings.Contains(string(byName[name].content), bad) {
				t.Errorf("%s: got %q in it, want none", name, bad)
			}
		}
	}
}
