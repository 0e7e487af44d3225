package botkit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	answerTime  = 15 * time.Second // for an answer; a poll gets it on top of its own time
	maxAnswer   = 32 << 20         // bytes; a batch is 4 MiB and one update
	tries       = 5                // of one call
	longestWait = time.Minute      // a call whose server asks for more fails at once
)

// Client calls the Bot API with one bot's token. It may be used from many
// goroutines.
//
// Reads and writes with an Idempotency-Key are repeated while the fault may
// pass: 429, 5xx, a lost connection, five times at most, with retry_after or
// growing pauses between them. A write without a key is sent once, since nobody
// could tell whether it was done (K-06). Errors are *Error.
type Client struct {
	base      string
	authorize func(http.Header) // holds the token: fmt prints what a field holds, not what a function does
	mark      string            // names this bot at this server, and can't be turned back into the token
	http      *http.Client
}

// ClientOption changes what NewClient makes.
type ClientOption func(*Client)

// WithTransport makes the calls go through rt, for example a test's.
func WithTransport(rt http.RoundTripper) ClientOption {
	return func(c *Client) { c.http.Transport = rt }
}

// NewClient returns a client of the Bot API at an address like
// "https://host" or "http://127.0.0.1:8080", for the bot with that token. An
// error says what is wrong with one of them, without quoting the token.
func NewClient(address string, token Secret, options ...ClientOption) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the server's address must look like https://host or http://host:port")
	}
	if !visible(string(token)) {
		return nil, errors.New("the bot's token is empty or holds characters that no token has: take it from My bots")
	}
	base := strings.TrimRight(u.String(), "/") + "/bot-api/v1/"
	sum := sha256.Sum256([]byte(base + " " + string(token)))
	c := &Client{
		base:      base,
		authorize: func(h http.Header) { h.Set("Authorization", "Bearer "+string(token)) },
		mark:      hex.EncodeToString(sum[:8]),
		http: &http.Client{
			// Each call has its own time; a redirect would turn a POST into a GET.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	for _, o := range options {
		o(c)
	}
	if c.http.Transport == nil {
		c.http.Transport = newTransport()
	}
	return c, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       50 * time.Second,
	}
}

// Close ends the connections that no call uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// read calls a method that changes nothing.
func (c *Client) read(ctx context.Context, method string, result any) error {
	return c.repeat(ctx, true, func() error { return c.once(ctx, method, "", struct{}{}, result, answerTime) })
}

// write calls a method that changes something; it is repeated only with a key.
func (c *Client) write(ctx context.Context, method, key string, params, result any) error {
	return c.repeat(ctx, key != "", func() error { return c.once(ctx, method, key, params, result, answerTime) })
}

// repeat calls until it succeeds, fails for good, or has been tried enough.
func (c *Client) repeat(ctx context.Context, repeatable bool, call func() error) error {
	for n := 1; ; n++ {
		err := call()
		failed, ok := errors.AsType[*Error](err)
		if !ok || !repeatable || n == tries || !failed.passing() || failed.RetryAfter > longestWait {
			return err
		}
		if !pause(ctx, after(failed.RetryAfter, n)) {
			return err
		}
	}
}

// once calls a method once. patience is how long its answer may take.
func (c *Client) once(ctx context.Context, method, key string, params, result any, patience time.Duration) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	timed, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(timed, http.MethodPost, c.base+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	c.authorize(req.Header)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.http.Do(req)
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		err = errors.Join(err, res.Body.Close())
	}
	if err != nil {
		if addressed, ok := errors.AsType[*url.Error](err); ok {
			err = addressed.Err
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return &Error{Method: method, Code: NoAnswer, Message: "the connection failed: " + err.Error(), cause: err}
	}
	return answer(method, res, body, result)
}

// answer reads an answer into result, or returns the *Error that it stands for.
func answer(method string, res *http.Response, body []byte, result any) error {
	var a struct {
		OK        bool
		Result    json.RawMessage
		Error     map[string]json.RawMessage
		RequestID string `json:"request_id"`
	}
	e := &Error{Method: method, Status: res.StatusCode, RequestID: res.Header.Get("X-Request-Id")}
	e.RetryAfter = seconds([]byte(res.Header.Get("Retry-After")))
	err := json.Unmarshal(body, &a)
	if err == nil && a.OK && a.Result != nil {
		if err := json.Unmarshal(a.Result, result); err != nil {
			e.Code, e.Message = BadResult, "the server's result doesn't have the shape that this kit knows; a newer version may"
			return e
		}
		return nil
	}
	if err != nil || json.Unmarshal(a.Error["code"], &e.Code) != nil || e.Code == "" {
		e.Code, e.Message = BadAnswer, fmt.Sprintf("HTTP %d with a body that isn't the Bot API's; if this stays, check the address", res.StatusCode)
		return e
	}
	// What these two can't read stays empty: the code alone decides.
	_ = json.Unmarshal(a.Error["message"], &e.Message)
	_ = json.Unmarshal(a.Error["confirmed_offset"], &e.ConfirmedOffset)
	e.RequestID = cmp.Or(a.RequestID, e.RequestID)
	e.RetryAfter = cmp.Or(seconds(a.Error["retry_after"]), e.RetryAfter)
	e.Details = a.Error
	return e
}

// seconds reads a number of seconds, 0 where there is none.
func seconds(text []byte) time.Duration {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return 0
	}
	return time.Duration(min(n, 24*3600)) * time.Second
}
