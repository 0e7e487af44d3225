package botkit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"mybots/botkit"
)

// A whole bot: it answers every message, and finishes the one at hand when it is
// asked to end.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := botkit.NewClient(os.Getenv("SMEET_URL"), botkit.Secret(os.Getenv("SMEET_TOKEN")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	router := botkit.NewRouter("")
	router.Command("start", func(ctx context.Context, u *botkit.Update) error {
		_, err := client.SendMessage(ctx, u.Key("reply"), botkit.Outgoing{
			ChatID: u.ChatID(), Text: "Hello! Shall we?", Buttons: [][]botkit.Button{{{Text: "Yes", Data: "yes"}}},
		})
		return err
	})
	router.Callback("yes", botkit.AutoAnswer(client, "Here we go", func(context.Context, *botkit.Update) error {
		return nil
	}))
	bot, err := botkit.New(client, router, botkit.Options{
		ConsumerID: "my-host",
		Store:      botkit.NewFileStore("bot.json"),
		Log:        slog.Default(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	if err := bot.Poll(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func ExampleRouter() {
	r := botkit.NewRouter("my_bot")
	r.Command("order", func(_ context.Context, u *botkit.Update) error {
		_, _, args, _ := u.Command()
		fmt.Println("order", args)
		return nil
	})
	r.CallbackPrefix("cancel:", func(_ context.Context, u *botkit.Update) error {
		fmt.Println("pressed", u.CallbackQuery.Data)
		return nil
	})
	u := &botkit.Update{Type: botkit.TypeMessage, Message: &botkit.Message{Text: "/order@my_bot 7"}}
	fmt.Println(r.Handle(context.Background(), u))
	// Output:
	// order 7
	// <nil>
}

// An error handler says which errors are an acceptable end.
func ExampleErrorIs() {
	r := botkit.NewRouter("")
	r.On(botkit.TypeMessage, func(context.Context, *botkit.Update) error {
		return &botkit.Error{Method: "sendMessage", Code: botkit.ChatNotFound}
	})
	r.OnError(botkit.ErrorIs(botkit.ChatNotFound, func(context.Context, *botkit.Update, error) (botkit.Decision, error) {
		fmt.Println("the person has left: nothing to answer")
		return botkit.Handled, nil
	}))
	u := &botkit.Update{Type: botkit.TypeMessage, Message: &botkit.Message{}}
	fmt.Println(r.Handle(context.Background(), u))
	// Output:
	// the person has left: nothing to answer
	// <nil>
}

// A limiter: it stops an update on purpose, which is a good outcome.
func ExampleMiddleware() {
	last := map[botkit.ID]time.Time{}
	limiter := func(next botkit.Handler) botkit.Handler {
		return botkit.HandlerFunc(func(ctx context.Context, u *botkit.Update) error {
			if time.Since(last[u.ChatID()]) < time.Minute {
				return nil
			}
			last[u.ChatID()] = time.Now()
			return next.Handle(ctx, u)
		})
	}
	r := botkit.NewRouter("")
	r.Use(limiter)
	r.On("", func(context.Context, *botkit.Update) error {
		fmt.Println("handled")
		return nil
	})
	u := &botkit.Update{Type: botkit.TypeMessage, Message: &botkit.Message{Chat: botkit.Chat{ID: "550"}}}
	fmt.Println(r.Handle(context.Background(), u), r.Handle(context.Background(), u))
	// Output:
	// handled
	// <nil> <nil>
}

func ExampleParseUpdate() {
	_, err := botkit.ParseUpdate([]byte(`{"update_id":"42","event_id":"e","type":"message","message":{"message_id":"1","chat":{"id":550}}}`))
	if bad, ok := errors.AsType[*botkit.DecodeError](err); ok {
		fmt.Println(bad.UpdateID, bad.Path, bad.Problem)
	}
	// Output: 42 message.chat.id is not of the kind string
}

func ExampleBot_Webhook() {
	bot, err := botkit.New(nil, botkit.NewRouter(""), botkit.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/smeet", bot.Webhook(botkit.Secret(os.Getenv("SMEET_WEBHOOK_SECRET")+"…")))
	mux.Handle("/healthz", bot.HealthHandler())
	fmt.Println(bot.Healthy())
	// Output: true
}
