package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"mybots/delivery"
	"mybots/delivery/webhook"
)

// plainPoster sends webhook requests over plain HTTP on kept connections, which
// the product's own sender never does: so the cost of the queue shows beside a
// cheap request. It writes and signs what that one does.
type plainPoster struct{ http.Transport }

func newPlainPoster() *plainPoster {
	return &plainPoster{http.Transport{MaxIdleConnsPerHost: hookBots, DisableCompression: true}}
}

// Send implements webhook.Poster.
func (p *plainPoster) Send(ctx context.Context, r webhook.Request) delivery.Answer {
	limited, cancel := context.WithTimeout(ctx, delivery.RequestTime)
	defer cancel()
	body := r.Update.AppendJSON(nil)
	req, err := http.NewRequestWithContext(limited, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return delivery.Answer{Kind: delivery.Forbidden}
	}
	req.Header = http.Header{
		"User-Agent":        {"SMeet-Webhook/1"},
		"Content-Type":      {"application/json; charset=utf-8"},
		"X-Smeet-Update-Id": {strconv.FormatInt(r.Update.UpdateID, 10)},
		"X-Smeet-Event-Id":  {r.Update.EventID},
		"X-Smeet-Attempt":   {strconv.Itoa(r.Attempt)},
		"X-Smeet-Signature": {webhook.Sign(r.Secret, time.Now().Unix(), body)},
	}
	resp, err := p.RoundTrip(req)
	if err != nil {
		return failed(ctx)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return failed(ctx)
	}
	return delivery.Answer{Kind: delivery.Answered, Status: resp.StatusCode}
}

func failed(ctx context.Context) delivery.Answer {
	if ctx.Err() != nil {
		return delivery.Answer{Kind: delivery.Cut}
	}
	return delivery.Answer{Kind: delivery.Lost}
}

// Forget implements webhook.Poster: connections belong to no bot here.
func (p *plainPoster) Forget(int64) {}
