package web

import (
	"context"
	"net/http"
	"strings"

	"mybots/views/layout"
	"mybots/views/ui"
)

// maxFlash is the longest flash in bytes.
const maxFlash = 1000

// SetFlash keeps a sentence, in the reader's language, for the next page that
// the signed-in reader sees; call it before the 303. It is for what a deed did,
// never for a secret. Without a session it does nothing. That it couldn't be
// kept is logged and otherwise harmless.
func SetFlash(r *http.Request, kind ui.Kind, text string) {
	reader := readerOf(r.Context())
	if reader.person == nil {
		return
	}
	if len(text) > maxFlash {
		text = strings.ToValidUTF8(text[:maxFlash], "") + "…"
	}
	reader.keepFlash(r.Context(), string(kind)+" "+text)
}

func (r *reader) keepFlash(ctx context.Context, flash string) {
	hash, ok := hashOf(r.session.ID)
	if !ok {
		return
	}
	if err := r.front.store.rows.SetFlash(ctx, hash, flash); err != nil {
		r.front.log.ErrorContext(ctx, "flash not kept", "request_id", RequestID(ctx), "error", err)
	}
}

// showFlash hands the waiting flash to a frame.
func (r *reader) showFlash() layout.Flash {
	kind, text, ok := strings.Cut(r.flash, " ")
	if !ok {
		return layout.Flash{}
	}
	r.shown = true
	return layout.Flash{Kind: ui.Kind(kind), Text: text}
}

// flashShown forgets the flash once a page with it goes out.
func (r *reader) flashShown(ctx context.Context) {
	if r.shown {
		r.shown, r.flash = false, ""
		r.keepFlash(ctx, "")
	}
}
