// Package static carries the style sheet, the script and what npm brought
// (vendor) inside the binary and serves them under names that change with their
// content, so that a browser may keep them for ever.
//
// vendor is filled by `make assets` and ignored by git. Without it the program
// builds and every page works; HasHTMX tells.
package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// Prefix is the path under which Handler wants to be mounted.
const Prefix = "/static/"

// HTMX is the name of the library's file in URL's words.
const HTMX = "vendor/htmx.min.js"

//go:embed css js vendor
var files embed.FS

type asset struct {
	url         string // with the hash in its name
	contentType string
	content     []byte
}

var byName, byURL = load(files)

// load reads every file once and names it after its content.
func load(from fs.FS) (byName, byURL map[string]asset) {
	byName, byURL = map[string]asset{}, map[string]asset{}
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		contentType := contentTypeOf(name)
		if contentType == "" {
			return nil // the placeholder
		}
		a := asset{url: Prefix + hashed(name, content), contentType: contentType, content: content}
		byName[name], byURL[a.url] = a, a
		return nil
	})
	if err != nil {
		panic(fmt.Errorf("read the embedded assets: %w", err))
	}
	return byName, byURL
}

// hashed puts eight hex digits of the content's SHA-256 before the extension.
func hashed(name string, content []byte) string {
	sum := sha256.Sum256(content)
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:4]) + ext
}

// contentTypeOf returns "" for what isn't served. The types are spelled out:
// those of package mime depend on the machine.
func contentTypeOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return mime.FormatMediaType("image/svg+xml", nil)
	}
	return ""
}

// URL returns the path under which the file of that name ("css/app.css") is
// served, with its content's hash: "/static/css/app.0a1b2c3d.css". It panics
// for a name that isn't there: that is a mistake in a template.
func URL(name string) string {
	a, ok := byName[name]
	if !ok {
		panic("static: no asset " + name)
	}
	return a.url
}

// HasHTMX reports whether htmx was there when the program was built.
func HasHTMX() bool {
	_, ok := byName[HTMX]
	return ok
}

// Handler serves the assets for ever under the paths that URL gives; any other
// path, an old hash included, is 404 and not kept.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := byURL[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", a.contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		http.ServeContent(w, r, a.url, time.Time{}, bytes.NewReader(a.content))
	})
}
