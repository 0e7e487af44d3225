package botkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

// allCodes is A-08.
var allCodes = map[botkit.Code]int{
	botkit.InvalidRequest: 400, botkit.OffsetNotIssued: 400, botkit.IdempotencyKeyRequired: 400, botkit.Unauthorized: 401,
	botkit.BotDisabled: 403, botkit.MethodNotFound: 404, botkit.UpdateNotFound: 404, botkit.ChatNotFound: 404, botkit.MethodNotAllowed: 405,
	botkit.ConsumerConflict: 409, botkit.CursorBehind: 409, botkit.DeliveryModeConflict: 409, botkit.IdempotencyKeyReused: 409,
	botkit.BotPaused: 409, botkit.RequestTooLarge: 413, botkit.UnsupportedMediaType: 415, botkit.RateLimited: 429, botkit.Internal: 500,
	botkit.Maintenance: 503, botkit.Unavailable: 503,
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for code, status := range allCodes {
		bubble(t, "A-08 "+string(code), func(t *testing.T) {
			s := bottest.New(t)
			for range 10 {
				s.Fault("sendMessage", bottest.Fault{Code: code, Status: status, RetryAfter: 3})
			}
			began := time.Now()
			_, err := s.Client().SendMessage(t.Context(), "key", botkit.Outgoing{ChatID: "550", Text: "hello"})
			e, ok := errors.AsType[*botkit.Error](err)
			if !ok || !errors.Is(err, code) || errors.Is(err, botkit.Code("ANOTHER")) {
				t.Fatalf("got %v, want an *Error that is %s", err, code)
			}
			if e.Status != status || e.Method != "sendMessage" || e.RetryAfter != 3*time.Second || e.RequestID == "" || e.Message == "" {
				t.Errorf("got %+v", e)
			}
			calls, want := len(s.Calls()), 1
			if status == 429 || status >= 500 {
				want = 5
			}
			if calls != want || time.Since(began) > time.Duration(want)*4*time.Second {
				t.Errorf("%d calls in %s, want %d with 3 s between", calls, time.Since(began), want)
			}
		})
	}
	bubble(t, "K-06 confirmed_offset comes with CURSOR_BEHIND", func(t *testing.T) {
		s := bottest.New(t)
		s.Fault("getUpdates", bottest.Fault{Status: 409, Page: `{"ok":false,"error":{"code":"CURSOR_BEHIND","message":"behind","confirmed_offset":"43"},"request_id":"r"}`})
		_, err := s.Client().GetUpdates(t.Context(), botkit.Poll{ConsumerID: "c"})
		if e, ok := errors.AsType[*botkit.Error](err); !ok || e.ConfirmedOffset != "43" || e.RequestID != "r" {
			t.Errorf("got %+v, want confirmed_offset 43", err)
		}
	})
}

func TestWrites(t *testing.T) {
	t.Parallel()
	message := botkit.Outgoing{ChatID: "550", Text: "hello"}
	faults := map[string]bottest.Fault{
		"the answer is lost": {LoseAnswer: true}, "the request is lost": {LoseRequest: true},
		"429": {Code: botkit.RateLimited, RetryAfter: 2}, "503": {Code: botkit.Unavailable, RetryAfter: 2},
		"a proxy's page": {Status: 502, Page: "<h1>Bad gateway</h1>"},
	}
	for name, fault := range faults {
		bubble(t, "K-06 with a key, tried again: "+name, func(t *testing.T) {
			s := bottest.New(t)
			s.Message("550", "hi")
			s.Fault("sendMessage", fault, fault)
			sent, err := s.Client().SendMessage(t.Context(), "key", message)
			if err != nil || sent.Text != "hello" || sent.MessageID == "" {
				t.Errorf("got %+v, %v; want the message", sent, err)
			}
			if got := s.Sent(); len(got) != 1 || got[0].Key != "key" || len(s.Calls()) != 3 {
				t.Errorf("sent %+v in %d calls, want once in 3", got, len(s.Calls()))
			}
		})
		bubble(t, "K-06 without a key, never: "+name, func(t *testing.T) {
			s := bottest.New(t)
			s.Fault("sendMessage", fault)
			if _, err := s.Client().SendMessage(t.Context(), "", message); err == nil || len(s.Calls()) != 1 {
				t.Errorf("got %v after %d calls, want an error after 1", err, len(s.Calls()))
			}
		})
	}
	bubble(t, "K-06 a server that asks for a long pause gets its error at once", func(t *testing.T) {
		s := bottest.New(t)
		s.Fault("sendMessage", bottest.Fault{Code: botkit.RateLimited, RetryAfter: 3600})
		began := time.Now()
		if _, err := s.Client().SendMessage(t.Context(), "key", message); !errors.Is(err, botkit.RateLimited) || time.Since(began) > 0 {
			t.Errorf("got %v after %s, want RATE_LIMITED at once", err, time.Since(began))
		}
	})
	bubble(t, "K-06 a context that ends ends the call and its pauses", func(t *testing.T) {
		s := bottest.New(t)
		for range 5 {
			s.Fault("sendMessage", bottest.Fault{Code: botkit.Unavailable, RetryAfter: 30})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := s.Client().SendMessage(ctx, "key", message); err == nil || time.Since(began) != 10*time.Second {
			t.Errorf("got %v after %s, want an error after 10 s", err, time.Since(began))
		}
	})
	bubble(t, "K-06 an answer that never comes", func(t *testing.T) {
		c, err := botkit.NewClient("http://x.invalid", "t", botkit.WithTransport(silent{}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = c.GetUpdates(t.Context(), botkit.Poll{ConsumerID: "c", Timeout: 20 * time.Second})
		if !errors.Is(err, botkit.NoAnswer) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 35*time.Second {
			t.Errorf("got %v after %s, want NO_ANSWER after the poll's 20 s and 15 s", err, time.Since(began))
		}
	})
}

// silent is a server that takes everything and says nothing.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := bottest.New(t)
	c, err := botkit.NewClient(s.URL()+"/", bottest.Token) // over a real connection
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	if me, err := c.GetMe(ctx); err != nil || me.Username != "test_bot" || me.ID != "7" || !me.IsBot {
		t.Errorf("getMe: got %+v, %v", me, err)
	}
	s.Callback("550", "yes")
	batch, err := c.GetUpdates(ctx, botkit.Poll{ConsumerID: "c", Timeout: time.Second, Limit: 5})
	if err != nil || len(batch.Updates) != 1 || string(batch.Updates[0]) != string(s.Raw("1")) || batch.NextOffset != "2" || batch.Lease.ConsumerID != "c" {
		t.Errorf("getUpdates: got %+v, %v; want the very bytes of update 1", batch, err)
	}
	if fields := s.Calls()[1].Fields; fmt.Sprintf("%v %v", fields["timeout"], fields["limit"]) != "1 5" || fields["offset"] != nil || fields["epoch"] != nil {
		t.Errorf("getUpdates was called with %v", fields)
	}
	if info, err := c.GetDeliveryInfo(ctx); err != nil || info.Mode != "polling" || info.PendingUpdateCount != 1 || info.ConfirmedOffset != "1" || info.Limits.Updates != 10000 {
		t.Errorf("getDeliveryInfo: got %+v, %v", info, err)
	}
	if info, err := c.GetWebhookInfo(ctx); err != nil || info.State != "off" {
		t.Errorf("getWebhookInfo: got %+v, %v", info, err)
	}
	if err := c.AnswerCallbackQuery(ctx, "key-1", "cb-yes", "Got it"); err != nil || len(s.Answered()) != 1 {
		t.Errorf("answerCallbackQuery: got %v, answered %v", err, s.Answered())
	}
	reason := "two\nlines " + strings.Repeat("ж", 300)
	if err := c.RejectUpdate(ctx, "key-2", botkit.Rejection{UpdateID: "1", Reason: reason, ConsumerID: "c", Epoch: batch.Lease.Epoch}); err != nil {
		t.Errorf("rejectUpdate: %v", err)
	}
	if got := s.Rejected(); len(got) != 1 || len([]rune(got[0].Reason)) != 256 || strings.Contains(got[0].Reason, "\n") {
		t.Errorf("rejected %+v, want a reason of 256 characters in one line", got)
	}
	buttons := [][]botkit.Button{{{Text: "Yes", Data: "yes"}}}
	if _, err := c.SendMessage(ctx, "key-3", botkit.Outgoing{ChatID: "550", Text: "Sure?", ReplyToMessageID: "7300", Buttons: buttons}); err != nil {
		t.Errorf("sendMessage: %v", err)
	}
	if got := s.Sent(); len(got) != 1 || got[0].Buttons[0][0].Data != "yes" || got[0].ReplyToMessageID != "7300" {
		t.Errorf("sent %+v", got)
	}
	if _, err := c.SendMessage(ctx, "key-3", botkit.Outgoing{ChatID: "550", Text: "other"}); !errors.Is(err, botkit.IdempotencyKeyReused) {
		t.Errorf("the key again: got %v, want IDEMPOTENCY_KEY_REUSED", err)
	}
	if _, err := c.SendMessage(ctx, "", botkit.Outgoing{ChatID: "550", Text: "other"}); !errors.Is(err, botkit.IdempotencyKeyRequired) {
		t.Errorf("no key: got %v, want IDEMPOTENCY_KEY_REQUIRED", err)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	const token = "sbt1_nobodymayseethis"
	secret := botkit.Secret(token)
	encoded, err := json.Marshal(map[string]any{"token": secret})
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{fmt.Sprint(secret), fmt.Sprintf("%v %+v %#v %s %q %x %d", secret, secret, secret, secret, secret, secret, secret), string(encoded), slog.AnyValue(secret).Resolve().String()}
	c, err := botkit.NewClient("http://127.0.0.1:1", secret)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.GetMe(ctx) // nothing listens there
	if !errors.Is(err, botkit.NoAnswer) {
		t.Errorf("got %v, want NO_ANSWER", err)
	}
	shown = append(shown, err.Error(), fmt.Sprintf("%+v %#v", err, err), fmt.Sprintf("%v %+v %#v", c, c, c))
	for _, text := range shown {
		if strings.Contains(text, "nobodymayseethis") || strings.Contains(text, "6e6f626f6479") {
			t.Errorf("the token shows in %s", text)
		}
	}
	for name, c := range map[string]struct {
		address string
		token   botkit.Secret
	}{
		"no address": {"", secret}, "no scheme": {"host:8080", secret}, "a file": {"file:///x", secret}, "a user": {"http://u:p@host", secret},
		"a query": {"http://host?x=1", secret}, "no token": {"http://host", ""}, "a line break": {"http://host", "sbt1_nobodymayseethis\nX: y"}, "not ASCII": {"http://host", "é"},
	} {
		if _, err := botkit.NewClient(c.address, c.token); err == nil || strings.Contains(err.Error(), "nobody") {
			t.Errorf("%s: got %v, want an error that quotes nothing", name, err)
		}
	}
}

func TestActionKey(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ got, want string }{
		"plain":     {botkit.ActionKey("e", "reply"), "e:reply"},
		"more":      {botkit.ActionKey("e", "reject", "42"), "e:reject:42"},
		"of update": {(&botkit.Update{EventID: "e"}).Key("reply"), "e:reply"},
		"hashed":    {botkit.ActionKey("e", "naïve")[:7], "sha256:"},
		"long":      {fmt.Sprint(len(botkit.ActionKey("e", strings.Repeat("x", 300)))), "71"},
		"steady":    {botkit.ActionKey("e", "a b"), botkit.ActionKey("e", "a b")},
	}
	for name, c := range tests {
		if c.got != c.want {
			t.Errorf("A-06 %s: got %s, want %s", name, c.got, c.want)
		}
	}
	if botkit.ActionKey("e", "é") == botkit.ActionKey("e", "è") {
		t.Error("two actions have one key")
	}
}
