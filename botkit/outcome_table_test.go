package botkit_test

import (
	"context"
	"errors"
	"testing"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

const notReadable = `{"message_id":"1","chat":{"id":550},"text":"a secret order"}` // the id isn't a text

// outcomes is the table of what confirms an update and what doesn't, for both
// ways of receiving.
var outcomes = map[string]struct {
	bot       func(t *testing.T, s *bottest.Server, o *botkit.Options) botkit.Handler
	press     bool // the update is the press of a button, else a message
	bad       bool // the update can't be read
	want      int  // the webhook's answer
	confirmed bool // when polling
	stops     bool // polling returns, and asks no more
	check     func(t *testing.T, s *bottest.Server)
}{
	"K-01 no route": {want: 200, confirmed: true,
		bot: func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler { return botkit.NewRouter("") }},
	"K-01 a limiter refuses": {want: 200, confirmed: true,
		bot: func(t *testing.T, _ *bottest.Server, _ *botkit.Options) botkit.Handler {
			r := botkit.NewRouter("")
			r.On("", func(context.Context, *botkit.Update) error { t.Error("the limiter let it pass"); return nil })
			r.Use(func(botkit.Handler) botkit.Handler {
				return botkit.HandlerFunc(func(context.Context, *botkit.Update) error { return nil })
			})
			return r
		}},
	"K-01 K-05 handler and automatic answer succeed": {press: true, want: 200, confirmed: true,
		bot: func(_ *testing.T, s *bottest.Server, _ *botkit.Options) botkit.Handler {
			r := botkit.NewRouter("")
			r.Callback("yes", botkit.AutoAnswer(s.Client(), "Got it", succeed))
			return r
		},
		check: func(t *testing.T, s *bottest.Server) {
			if got := s.Answered(); len(got) != 1 || got[0].Text != "Got it" || got[0].CallbackQueryID != "cb-yes" {
				t.Errorf("answered %+v, want once, with Got it", got)
			}
		}},
	"K-05 no automatic answer unless asked for": {press: true, want: 200, confirmed: true,
		bot: func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler {
			r := botkit.NewRouter("")
			r.Callback("yes", succeed)
			return r
		}, check: noAnswer},
	"K-05 no automatic answer after a failed handler": {press: true, want: 500,
		bot: func(_ *testing.T, s *bottest.Server, _ *botkit.Options) botkit.Handler {
			r := botkit.NewRouter("")
			r.Callback("yes", botkit.AutoAnswer(s.Client(), "Got it", fail))
			return r
		}, check: noAnswer},
	"K-05 the automatic answer fails": {press: true, want: 500,
		bot: func(_ *testing.T, s *bottest.Server, _ *botkit.Options) botkit.Handler {
			noMoreAnswers(s)
			r := botkit.NewRouter("")
			r.Callback("yes", botkit.AutoAnswer(s.Client(), "Got it", succeed))
			return r
		}, check: noAnswer},
	"K-05 an error handler takes the failed automatic answer": {press: true, want: 200, confirmed: true,
		bot: func(_ *testing.T, s *bottest.Server, _ *botkit.Options) botkit.Handler {
			noMoreAnswers(s)
			r := botkit.NewRouter("")
			r.Callback("yes", botkit.AutoAnswer(s.Client(), "Got it", succeed))
			r.OnError(botkit.ErrorIs(botkit.UpdateNotFound, decide(botkit.Handled, nil)))
			return r
		}, check: noAnswer},
	"K-01 an error handler says Handled": {want: 200, confirmed: true,
		bot: failing(botkit.ErrorIs(errBug, decide(botkit.Handled, nil)))},
	"K-01 the second error handler says Handled": {want: 200, confirmed: true,
		bot: failing(decide(botkit.Unhandled, nil), decide(botkit.Handled, nil))},
	"K-02 an error handler says Unhandled": {want: 500, bot: failing(decide(botkit.Unhandled, nil))},
	"K-02 no error handler is for it": {want: 500,
		bot: failing(botkit.ErrorIs(botkit.ChatNotFound, decide(botkit.Handled, nil)),
			botkit.ErrorAs(func(context.Context, *botkit.Update, *botkit.Error) (botkit.Decision, error) {
				return botkit.Handled, nil
			}))},
	"K-02 the handler fails": {want: 500, bot: failing()},
	"K-02 the handler panics": {want: 500,
		bot: func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler {
			return withRoute(func(context.Context, *botkit.Update) error { panic(errBug) }, decide(botkit.Handled, nil))
		}},
	"K-04 a middleware fails":  {want: 500, bot: middleware(func(context.Context, *botkit.Update) error { return errBug })},
	"K-04 a middleware panics": {want: 500, bot: middleware(func(context.Context, *botkit.Update) error { panic("bug") })},
	"K-04 a middleware handles what surfaces": {want: 200, confirmed: true,
		bot: func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler {
			r := withRoute(fail)
			r.Use(func(next botkit.Handler) botkit.Handler {
				return botkit.HandlerFunc(func(ctx context.Context, u *botkit.Update) error {
					if err := next.Handle(ctx, u); !errors.Is(err, errBug) {
						return err
					}
					return nil
				})
			})
			return r
		}},
	"K-02 the error handler fails": {want: 500, bot: failing(decide(botkit.Handled, errors.New("another")), decide(botkit.Handled, nil))},
	"K-02 the error handler panics": {want: 500,
		bot: failing(func(context.Context, *botkit.Update, error) (botkit.Decision, error) { panic("bug") }, decide(botkit.Handled, nil))},
	"K-02 the handler takes too long": {want: 500,
		bot: func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler {
			return withRoute(func(ctx context.Context, _ *botkit.Update) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}},
	"the handler rejects": {want: 422, confirmed: true,
		bot: func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler {
			return withRoute(func(context.Context, *botkit.Update) error { return botkit.Reject("no such order") })
		}, check: wasRejected},

	"K-03 the default policy stops": {bad: true, want: 500, stops: true, bot: policy(nil)},
	"K-03 the policy says Stop":     {bad: true, want: 500, stops: true, bot: policy(botkit.StopOnDecodeError)},
	"K-03 the policy says Retry": {bad: true, want: 503,
		bot: policy(func(context.Context, *botkit.DecodeError) (botkit.Verdict, error) { return botkit.Retry, nil })},
	"K-03 the policy stores and says Skip": {bad: true, want: 200, confirmed: true,
		bot: func(t *testing.T, s *bottest.Server, o *botkit.Options) botkit.Handler {
			q, err := botkit.OpenQuarantine(t.TempDir(), "test_bot")
			if err != nil {
				t.Fatal(err)
			}
			return policy(q.Policy)(t, s, o)
		}},
	"K-03 the policy rejects": {bad: true, want: 422, confirmed: true, bot: policy(botkit.RejectOnDecodeError), check: wasRejected},
	"K-03 the policy fails": {bad: true, want: 500,
		bot: policy(func(context.Context, *botkit.DecodeError) (botkit.Verdict, error) { return botkit.Skip, errBug })},
	"K-03 the policy panics": {bad: true, want: 500,
		bot: policy(func(context.Context, *botkit.DecodeError) (botkit.Verdict, error) { panic("bug") })},
	"K-03 the policy is cancelled": {bad: true, want: 500,
		bot: policy(func(context.Context, *botkit.DecodeError) (botkit.Verdict, error) {
			return botkit.Skip, context.Canceled
		})},
}

func succeed(context.Context, *botkit.Update) error { return nil }
func fail(context.Context, *botkit.Update) error    { return errBug }

func decide(d botkit.Decision, err error) botkit.ErrorHandler {
	return func(context.Context, *botkit.Update, error) (botkit.Decision, error) { return d, err }
}

func withRoute(h botkit.HandlerFunc, onError ...botkit.ErrorHandler) *botkit.Router {
	r := botkit.NewRouter("")
	r.On(botkit.TypeMessage, h)
	for _, e := range onError {
		r.OnError(e)
	}
	return r
}

func failing(onError ...botkit.ErrorHandler) func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler {
	return func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler { return withRoute(fail, onError...) }
}

// middleware is a bot whose middleware does f, with an error handler that would
// take everything.
func middleware(f botkit.HandlerFunc) func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler {
	return func(t *testing.T, _ *bottest.Server, _ *botkit.Options) botkit.Handler {
		r := withRoute(succeed, func(context.Context, *botkit.Update, error) (botkit.Decision, error) {
			t.Error("an error handler was asked about a middleware's error")
			return botkit.Handled, nil
		})
		r.Use(func(botkit.Handler) botkit.Handler { return f })
		return r
	}
}

func policy(p botkit.DecodePolicy) func(*testing.T, *bottest.Server, *botkit.Options) botkit.Handler {
	return func(t *testing.T, _ *bottest.Server, o *botkit.Options) botkit.Handler {
		o.DecodePolicy = p
		return botkit.HandlerFunc(func(context.Context, *botkit.Update) error {
			t.Error("an update that can't be read was handled")
			return nil
		})
	}
}

func noMoreAnswers(s *bottest.Server) {
	for range 50 {
		s.Fault("answerCallbackQuery", bottest.Fault{Code: botkit.UpdateNotFound})
	}
}

func noAnswer(t *testing.T, s *bottest.Server) {
	t.Helper()
	if got := s.Answered(); len(got) != 0 {
		t.Errorf("answered %+v, want nothing", got)
	}
}

func wasRejected(t *testing.T, s *bottest.Server) {
	t.Helper()
	if got := s.Rejected(); len(got) != 1 || got[0].UpdateID != "1" {
		t.Errorf("rejected %+v, want update 1", got)
	}
}
