package notice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"mybots/delivery"
)

// maxTime is how long one request to MAX may take, in real time.
const maxTime = 10 * time.Second

// Messenger sends by MAX (N-07).
type Messenger struct {
	url    string
	token  delivery.Secret
	base   func() *url.URL
	client *http.Client
}

// NewMessenger returns the way to MAX's API at address. base is where browsers
// reach the product.
func NewMessenger(address string, token delivery.Secret, base func() *url.URL) *Messenger {
	return &Messenger{url: strings.TrimSuffix(address, "/") + "/messages", token: token, base: base, client: &http.Client{
		Timeout: maxTime,
		// A connection for each request: one that turns out closed would make «was it sent?» a guess.
		// No proxy of the environment: the token goes along.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

type linkButton struct {
	Type string `json:"type"`
	Text string `json:"text"`
	URL  string `json:"url"`
}

type maxMessage struct {
	Text        string          `json:"text"`
	Attachments []maxAttachment `json:"attachments"`
	Notify      bool            `json:"notify"`
}

type maxAttachment struct {
	Type    string `json:"type"`
	Payload struct {
		Buttons [][]linkButton `json:"buttons"`
	} `json:"payload"`
}

// Send makes one try. It ends within 10 s whatever the other side does.
func (m *Messenger) Send(ctx context.Context, j Job) Result {
	body, err := m.body(j)
	if err != nil {
		return Result{Class: ClassPermanent, Reason: WhyUnusable}
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+"?user_id="+url.QueryEscape(j.Recipient), bytes.NewReader(body))
	if err != nil {
		return Result{Class: ClassPermanent, Reason: WhyUnusable}
	}
	req.Header.Set("Authorization", string(m.token))
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := m.client.Do(req)
	switch {
	case err != nil && !connected.Load():
		return Result{Class: ClassTemporary, Reason: WhyUnreachable}
	case err != nil:
		return Result{Class: ClassUnknown, Reason: WhyLost}
	}
	defer resp.Body.Close()
	r := Result{Class: classOf(resp.StatusCode), Code: resp.StatusCode}
	switch r.Class {
	case ClassSent:
		r.MessageID = messageID(resp.Body)
	case ClassAuthorisation:
		r.Reason = WhyToken
	default:
		r.Reason = WhyStatus
		r.RetryAfter = delivery.RetryAfter(resp.Header.Get("Retry-After"), http.ParseTime, time.Now())
	}
	return r
}

func (m *Messenger) body(j Job) ([]byte, error) {
	message := maxMessage{Text: j.Text, Notify: true, Attachments: []maxAttachment{{Type: "inline_keyboard"}}}
	message.Attachments[0].Payload.Buttons = [][]linkButton{{{Type: "link", Text: j.Button, URL: m.base().JoinPath(ConnectionPath(j.BotID)).String()}}}
	return json.Marshal(message)
}

// maxMessageID is how long an id of MAX may be that is kept.
const maxMessageID = 128

// messageID reads the id that MAX gave the message; "" when the answer says none:
// the status has said all that counts.
func messageID(body io.Reader) string {
	var answer struct {
		Message struct {
			Body struct {
				ID string `json:"mid"`
			} `json:"body"`
		} `json:"message"`
	}
	content, err := io.ReadAll(io.LimitReader(body, 64<<10))
	if err = errors.Join(err, json.Unmarshal(content, &answer)); err != nil {
		return ""
	}
	id := answer.Message.Body.ID
	if len(id) > maxMessageID || !delivery.Storable(id) || delivery.HasControl(id) {
		return ""
	}
	return id
}
