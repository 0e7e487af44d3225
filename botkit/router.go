package botkit

import (
	"context"
	"errors"
	"strings"
)

// Router is a Handler that picks the first route, in the order in which they
// were added, that matches an update. No route is a good outcome. Add everything
// before the bot starts.
type Router struct {
	username   string
	routes     []route
	middleware []Middleware
	onError    []ErrorHandler
}

type route struct {
	matches func(*Update) bool
	handler Handler
}

// NewRouter returns a router without routes for the bot with that username.
// Commands that name another bot (/start@another) aren't its own; with username
// "" it takes them all.
func NewRouter(username string) *Router { return &Router{username: username} }

// Use adds middleware around the dispatch, the first outermost.
func (r *Router) Use(m ...Middleware) { r.middleware = append(r.middleware, m...) }

// On routes updates of a type; "" stands for every type.
func (r *Router) On(kind string, h HandlerFunc) {
	r.add(h, func(u *Update) bool { return kind == "" || u.Type == kind })
}

// Command routes messages like "/name", "/name@bot" and "/name and more".
func (r *Router) Command(name string, h HandlerFunc) {
	name = strings.TrimPrefix(name, "/")
	r.add(h, func(u *Update) bool {
		got, to, _, ok := u.Command()
		return ok && got == name && (to == "" || r.username == "" || strings.EqualFold(to, r.username))
	})
}

// Callback routes presses of buttons with that very data.
func (r *Router) Callback(data string, h HandlerFunc) {
	r.add(h, func(u *Update) bool { return u.CallbackQuery != nil && u.CallbackQuery.Data == data })
}

// CallbackPrefix routes presses of buttons whose data begins so.
func (r *Router) CallbackPrefix(prefix string, h HandlerFunc) {
	r.add(h, func(u *Update) bool {
		return u.CallbackQuery != nil && strings.HasPrefix(u.CallbackQuery.Data, prefix)
	})
}

func (r *Router) add(h Handler, matches func(*Update) bool) {
	r.routes = append(r.routes, route{matches, h})
}

// Handle implements Handler.
func (r *Router) Handle(ctx context.Context, u *Update) error {
	var h Handler = HandlerFunc(r.dispatch)
	for i := len(r.middleware) - 1; i >= 0; i-- {
		h = r.middleware[i](h)
	}
	return h.Handle(ctx, u)
}

// dispatch is inside all middleware; its errors are what error handlers see.
func (r *Router) dispatch(ctx context.Context, u *Update) error {
	for _, route := range r.routes {
		if route.matches(u) {
			return r.recovered(ctx, u, route.handler.Handle(ctx, u))
		}
	}
	return nil
}

// recovered asks the error handlers about a route's error.
func (r *Router) recovered(ctx context.Context, u *Update, failure error) error {
	if failure == nil {
		return nil
	}
	for _, h := range r.onError {
		decision, err := h(ctx, u, failure)
		if err != nil {
			return err
		}
		if decision == Handled {
			return nil
		}
	}
	return failure
}

// Decision is what an error handler decides.
type Decision int

// The decisions.
const (
	Unhandled Decision = iota // not for me: ask the next; with none left the error surfaces
	Handled                   // the update has reached an acceptable, durable result: confirm it
)

// ErrorHandler decides about the error of a route. Its own error, or panic, says
// that the recovery failed, and surfaces instead of the first one.
type ErrorHandler func(ctx context.Context, u *Update, err error) (Decision, error)

// OnError adds an error handler; they are asked in the order in which they were
// added. Choose with ErrorIs and ErrorAs what each is for: one that says Handled
// to every error turns bugs into lost updates.
func (r *Router) OnError(h ErrorHandler) { r.onError = append(r.onError, h) }

// ErrorIs asks h only about errors that match target, for example ChatNotFound.
func ErrorIs(target error, h ErrorHandler) ErrorHandler {
	return func(ctx context.Context, u *Update, err error) (Decision, error) {
		if !errors.Is(err, target) {
			return Unhandled, nil
		}
		return h(ctx, u, err)
	}
}

// ErrorAs asks h only about errors that are or wrap an E.
func ErrorAs[E error](h func(ctx context.Context, u *Update, err E) (Decision, error)) ErrorHandler {
	return func(ctx context.Context, u *Update, err error) (Decision, error) {
		e, ok := errors.AsType[E](err)
		if !ok {
			return Unhandled, nil
		}
		return h(ctx, u, e)
	}
}

// AutoAnswer makes a callback route answer the press with text after h has
// succeeded. It is part of the route: if the answer fails, the route has failed,
// and the error handlers are asked (K-05).
func AutoAnswer(c *Client, text string, h HandlerFunc) HandlerFunc {
	return func(ctx context.Context, u *Update) error {
		if err := h(ctx, u); err != nil || u.CallbackQuery == nil {
			return err
		}
		return c.AnswerCallbackQuery(ctx, u.Key("auto-answer"), u.CallbackQuery.CallbackQueryID, text)
	}
}
