package support

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"mybots/delivery"
	"mybots/delivery/bots"
	views "mybots/views/support"
	"mybots/views/words"
	"mybots/web"
)

// countMost is where counting stops: what is more is "10,000+".
const countMost = 10_000

// actor is the reader as the audit log names them.
func actor(r *http.Request) bots.Actor {
	return bots.Actor{UserID: web.PersonOf(r).ID, RequestID: web.RequestID(r.Context()), Address: web.AddressOf(r)}
}

// pathID reads an id of the path; delivery.ErrNotFound for what is none.
func pathID(r *http.Request, name string) (int64, error) {
	id, ok := delivery.ParseID(r.PathValue(name))
	if !ok {
		return 0, fmt.Errorf("%s of the path: %w", name, delivery.ErrNotFound)
	}
	return id, nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func botURL(botID int64) string { return "/support/bots/" + number(botID) }

// at is an address with a query; empty values are left out.
func at(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// upTo writes a count that stopped at countMost.
func upTo(ctx context.Context, n int) string {
	if n > countMost {
		return words.T(ctx, "support.more_than", "N", countMost)
	}
	return words.Number(ctx, int64(n))
}

// foundWords writes how many bots there are.
func foundWords(ctx context.Context, n int) string {
	text := words.N(ctx, "support.found", min(n, countMost))
	if n > countMost {
		text = strings.Replace(text, words.Number(ctx, countMost), upTo(ctx, n), 1)
	}
	return text
}

// why puts a code into words; "" for one that has none.
func why(ctx context.Context, code string) string {
	key := "support.code_" + code
	if text := words.T(ctx, key); text != key {
		return text
	}
	if strings.HasPrefix(code, "HTTP_5") {
		return words.T(ctx, "support.code_HTTP_5XX")
	}
	return ""
}

// host is all that support sees of a webhook's address: the rest may hold a token.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// off puts the platform's last word into the view's.
func off(o bots.Off) views.Off { return views.Off{At: o.At.Time, Reason: o.Reason} }
