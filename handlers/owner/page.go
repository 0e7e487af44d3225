package owner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	"mybots/views/layout"
	views "mybots/views/owner"
	"mybots/views/words"
	"mybots/web"
)

// open finds the bot that the path names and looks at its queue.
// delivery.ErrNotFound: it isn't the reader's, or the path names none (UI-07).
func (h *Handler) open(r *http.Request) (bots.Bot, queue.Status, error) {
	id, ok := delivery.ParseID(r.PathValue("id"))
	if !ok {
		return bots.Bot{}, queue.Status{}, fmt.Errorf("bot of the path: %w", delivery.ErrNotFound)
	}
	b, err := h.bots.Owned(r.Context(), web.PersonOf(r).ID, id)
	if err != nil {
		return bots.Bot{}, queue.Status{}, err
	}
	s, err := h.queue.Status(r.Context(), id)
	return b, h.allow(s), err
}

// allow takes from the bot what the installation doesn't have (W-03).
func (h *Handler) allow(s queue.Status) queue.Status {
	s.HookAllowed = s.HookAllowed && !h.webhooksOff
	return s
}

// deed is open for a posted form.
func (h *Handler) deed(w http.ResponseWriter, r *http.Request) (b bots.Bot, s queue.Status, form form, err error) {
	if b, s, err = h.open(r); err != nil {
		return b, s, form, err
	}
	form.Values, err = web.Form(w, r)
	return b, s, form, err
}

// actor is the reader as the audit log names them.
func actor(r *http.Request) bots.Actor {
	return bots.Actor{UserID: web.PersonOf(r).ID, RequestID: web.RequestID(r.Context()), Address: web.AddressOf(r)}
}

// frame is the frame of a page of the bot; title is the window's. A piece must
// not ask for one: it would use up the flash that it doesn't show.
func frame(r *http.Request, b bots.Bot, s queue.Status, tab layout.Tab, title string) layout.Frame {
	f := web.Frame(r, title)
	state := stateOf(s).say(r.Context(), s)
	f.Bot = &layout.BotHead{
		Name: b.Name, Username: b.Username, State: state.Kind, StateWord: state.Word, BackURL: "/bots", Current: tab,
		Failed: int64(s.Failed), ConnectionURL: at(b.ID, "connection"), FailedURL: at(b.ID, "failed"), ChatURL: at(b.ID, "chat"), SettingsURL: at(b.ID, "settings"),
	}
	return f
}

// at is the address of a bot's page.
func at(botID int64, page string) string { return "/bots/" + number(botID) + "/" + page }

// number writes a whole number as addresses and fields carry it.
func number(n int64) string { return strconv.FormatInt(n, 10) }

// seen is a short mark of what a piece shows: the page sends it along when it
// asks whether there is anything new. v is a struct of a view.
func seen(ctx context.Context, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("mark what a page shows: %w", err)) // structs of texts and times always have an encoding
	}
	sum := sha256.Sum256(append(text, words.Lang(ctx)...))
	return hex.EncodeToString(sum[:12])
}

// nothingNew answers a piece's question when the page shows mark already.
func nothingNew(w http.ResponseWriter, r *http.Request, mark string) bool {
	if !web.Partial(r) || r.URL.Query().Get("seen") != mark {
		return false
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// example is a command with a token in it, in its parts.
func example(label, before, token, after string) views.Example {
	return views.Example{Label: label, Before: before, Token: token, After: after}
}

// echo starts the example bot.
func (h *Handler) echo(label, token string) views.Example {
	return example(label, "SMEET_URL="+h.base+" \\\n  SMEET_TOKEN=", token, " python3 examples/python/echo_bot.py")
}

// call is one call of the Bot API by curl.
func (h *Handler) call(label, method, body, token string) views.Example {
	return example(label, "curl -sS -X POST "+h.base+"/bot-api/v1/"+method+" \\\n  -H 'Authorization: Bearer ", token,
		"' \\\n  -H 'Content-Type: application/json' \\\n  -d '"+body+"'")
}

// examples are the first steps with a token.
func (h *Handler) examples(ctx context.Context, token string) []views.Example {
	return []views.Example{
		h.call(words.T(ctx, "token.curl_me"), "getMe", "{}", token),
		h.call(words.T(ctx, "token.curl_updates"), "getUpdates", `{"consumer_id": "my-first-try"}`, token),
		h.echo(words.T(ctx, "token.echo"), token),
	}
}
