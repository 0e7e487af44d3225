package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"mybots/views/layout"
	"mybots/views/words"
)

// Maintenance is what the platform says about itself.
type Maintenance struct {
	On     bool
	Text   string // what people are told, in English
	TextRU string // and in Russian; "": Text serves both
	Since  time.Time
}

// Said is the text for readers of that language; "" when none was written.
func (m Maintenance) Said(language string) string {
	if language == words.Russian && m.TextRU != "" {
		return m.TextRU
	}
	return m.Text
}

// platform tells about maintenance.
type platform interface {
	Maintenance(ctx context.Context) (Maintenance, error)
}

// bannerTime is how long a page waits for the banner.
const bannerTime = time.Second

// banner is what every page says while maintenance goes on (UI-06). A page
// whose reader the database couldn't tell says nothing: it says worse already.
func banner(r *http.Request, reader *reader) layout.Banner {
	if reader.front == nil || reader.front.platform == nil || reader.blind {
		return layout.Banner{}
	}
	ctx, cancel := context.WithTimeout(r.Context(), bannerTime)
	defer cancel()
	m, err := reader.front.platform.Maintenance(ctx)
	if err != nil {
		if r.Context().Err() == nil {
			reader.front.log.WarnContext(ctx, "no banner", "request_id", RequestID(ctx), "error", err)
		}
		return layout.Banner{}
	}
	if !m.On {
		return layout.Banner{}
	}
	text := strings.TrimSpace(m.Said(words.Lang(ctx)))
	if text == "" {
		text = words.T(ctx, "frame.maintenance_text")
	}
	return layout.Banner{Title: words.T(ctx, "frame.maintenance"), Text: text, Since: m.Since}
}
