package botkit_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"mybots/botkit"
)

func message(text string) *botkit.Update {
	return &botkit.Update{UpdateID: "1", EventID: "e", Type: botkit.TypeMessage, Message: &botkit.Message{Chat: botkit.Chat{ID: "550"}, Text: text}}
}

func press(data string) *botkit.Update {
	return &botkit.Update{UpdateID: "1", EventID: "e", Type: botkit.TypeCallbackQuery, CallbackQuery: &botkit.CallbackQuery{CallbackQueryID: "cb", Data: data}}
}

func TestRouter(t *testing.T) {
	t.Parallel()
	var went string
	to := func(name string) botkit.HandlerFunc {
		return func(context.Context, *botkit.Update) error {
			went = name
			return nil
		}
	}
	r := botkit.NewRouter("My_Bot")
	r.Command("start", to("start"))
	r.Command("/help", to("help"))
	r.Callback("order:new", to("new order"))
	r.CallbackPrefix("order:", to("an order"))
	r.On(botkit.TypeMessage, to("a message"))
	r.On(botkit.TypeChatAccessChanged, to("access"))
	tests := map[string]struct {
		update *botkit.Update
		want   string
	}{
		"a command":            {message("/start"), "start"},
		"with arguments":       {message("/start 7"), "start"},
		"with the bot's name":  {message("/help@my_bot"), "help"},
		"with another's":       {message("/help@other_bot"), "a message"},
		"a longer word":        {message("/started"), "a message"},
		"another case":         {message("/Start"), "a message"},
		"text":                 {message("hello"), "a message"},
		"that data":            {press("order:new"), "new order"},
		"data that begins so":  {press("order:7"), "an order"},
		"other data":           {press("ORDER:7"), ""},
		"another type":         {&botkit.Update{Type: botkit.TypeChatAccessChanged}, "access"},
		"a type with no route": {&botkit.Update{Type: "later"}, ""},
	}
	for name, c := range tests {
		went = ""
		if err := r.Handle(t.Context(), c.update); err != nil || went != c.want {
			t.Errorf("K-01 %s: went to %q, %v; want %q, nil", name, went, err, c.want)
		}
	}
	any := botkit.NewRouter("")
	any.Command("help", to("help"))
	any.On("", to("everything"))
	if err := any.Handle(t.Context(), message("/help@whoever")); err != nil || went != "help" {
		t.Errorf("with no name: went to %q, %v; want help", went, err)
	}
	if err := any.Handle(t.Context(), &botkit.Update{Type: "later"}); err != nil || went != "everything" {
		t.Errorf("every type: went to %q, %v", went, err)
	}
}

func TestMiddleware(t *testing.T) {
	t.Parallel()
	var steps []string
	step := func(name string) botkit.Middleware {
		return func(next botkit.Handler) botkit.Handler {
			return botkit.HandlerFunc(func(ctx context.Context, u *botkit.Update) error {
				steps = append(steps, name+" in")
				err := next.Handle(ctx, u)
				steps = append(steps, name+" out")
				return err
			})
		}
	}
	r := botkit.NewRouter("")
	r.Use(step("1"), step("2"))
	r.Use(step("3"))
	r.On("", func(context.Context, *botkit.Update) error {
		steps = append(steps, "route")
		return errBug
	})
	r.OnError(func(context.Context, *botkit.Update, error) (botkit.Decision, error) {
		steps = append(steps, "error handler")
		return botkit.Unhandled, nil
	})
	err := r.Handle(t.Context(), message("hello"))
	want := []string{"1 in", "2 in", "3 in", "route", "error handler", "3 out", "2 out", "1 out"}
	if !errors.Is(err, errBug) || !slices.Equal(steps, want) {
		t.Errorf("K-04: got %v, %v; want %v", steps, err, want)
	}
}

type orderError struct{ number int }

func (orderError) Error() string { return "no such order" }

func TestErrorHandlers(t *testing.T) {
	t.Parallel()
	var asked []string
	note := func(name string, d botkit.Decision, err error) botkit.ErrorHandler {
		return func(context.Context, *botkit.Update, error) (botkit.Decision, error) {
			asked = append(asked, name)
			return d, err
		}
	}
	build := func(failure error) *botkit.Router {
		asked = nil
		r := botkit.NewRouter("")
		r.On("", func(context.Context, *botkit.Update) error { return failure })
		r.OnError(botkit.ErrorIs(errBug, note("bug", botkit.Unhandled, nil)))
		r.OnError(botkit.ErrorAs(func(_ context.Context, _ *botkit.Update, e orderError) (botkit.Decision, error) {
			asked = append(asked, "order")
			if e.number != 7 {
				return botkit.Unhandled, errors.New("another order")
			}
			return botkit.Handled, nil
		}))
		r.OnError(botkit.ErrorIs(botkit.ChatNotFound, note("chat", botkit.Handled, nil)))
		r.OnError(note("rest", botkit.Unhandled, nil))
		return r
	}
	tests := map[string]struct {
		failure error
		asked   []string
		want    string
	}{
		"Unhandled goes to the next": {errBug, []string{"bug", "rest"}, "a bug"},
		"by its type":                {errors.Join(orderError{7}, errors.New("x")), []string{"order"}, ""},
		"its own error surfaces":     {orderError{8}, []string{"order"}, "another order"},
		"by the API's code":          {&botkit.Error{Code: botkit.ChatNotFound}, []string{"chat"}, ""},
		"nobody's":                   {context.Canceled, []string{"rest"}, "context canceled"},
	}
	for name, c := range tests {
		err := build(c.failure).Handle(t.Context(), message("hello"))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || !slices.Equal(asked, c.asked) {
			t.Errorf("K-02 %s: got %q after %v, want %q after %v", name, got, asked, c.want, c.asked)
		}
	}
}
