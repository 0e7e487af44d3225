// Command kitbot is an example of a durable bot on the kit: it stores updates
// in SQLite before it confirms them, and works from there, by long polling or,
// with --webhook, by webhook.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"mybots/botkit"
	"mybots/botkit/sqlitestore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run receives until ctx ends. out takes what --parked and --retry say.
func run(ctx context.Context, args []string, env func(string) string, out io.Writer, log *slog.Logger) (err error) {
	s, err := readSettings(args, env)
	if err != nil {
		return err
	}
	// The port first: a second copy, started by mistake, ends here and leaves the
	// first one's file alone.
	var listener net.Listener
	if s.webhook && !s.parked && !s.retry {
		if listener, err = net.Listen("tcp", net.JoinHostPort(s.host, s.port)); err != nil {
			return err
		}
		defer func() { _ = listener.Close() }() // the server has closed it in most cases
	}
	inbox, err := sqlitestore.Open(ctx, s.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inbox.Close()) }()
	if s.parked || s.retry {
		return lookAtParked(ctx, inbox, s.retry, out)
	}
	bot, err := newBot(s, inbox, log)
	if err != nil {
		return err
	}
	stop, err := serveHealth(s.health, bot, log)
	if err != nil {
		return err
	}
	defer stop()
	if s.webhook {
		return receive(ctx, s, bot, listener, log)
	}
	return bot.Poll(ctx)
}

func newBot(s settings, inbox botkit.Inbox, log *slog.Logger) (*botkit.Bot, error) {
	client, err := botkit.NewClient(s.url, s.token)
	if err != nil {
		return nil, err
	}
	quarantine, err := botkit.OpenQuarantine(s.quarantine, "kitbot")
	if err != nil {
		return nil, err
	}
	return botkit.New(client, newRouter(client, ""), botkit.Options{
		ConsumerID: s.consumerID, Inbox: inbox, DecodePolicy: quarantine.Policy, Log: log,
	})
}

// lookAtParked lists the updates that were given up on, or lets them be tried
// again. Nothing of their content is shown.
func lookAtParked(ctx context.Context, inbox *sqlitestore.Inbox, retry bool, out io.Writer) error {
	if retry {
		n, err := inbox.Retry(ctx)
		if err == nil {
			_, err = fmt.Fprintf(out, "%d updates are tried again\n", n)
		}
		return err
	}
	items, err := inbox.Parked(ctx, 1000)
	for _, i := range items {
		if _, err := fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", i.UpdateID, i.EventID, i.Received.Format(time.RFC3339), i.Note); err != nil {
			return err
		}
	}
	return err
}

// serveHealth gives /healthz at an address of its own, since what it tells isn't
// for strangers; "": nowhere.
func serveHealth(address string, bot *botkit.Bot, log *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", bot.HealthHandler())
	server := newServer(mux, log)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends with stop
	return func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}

// receive receives by webhook.
func receive(ctx context.Context, s settings, bot *botkit.Bot, listener net.Listener, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle(s.path, bot.Webhook(s.secrets...))
	server := newServer(mux, log)
	ended := make(chan error, 1)
	go func() { // ends with Shutdown below
		if s.behindProxy {
			ended <- server.Serve(listener)
			return
		}
		ended <- server.ServeTLS(listener, s.certificate, s.key)
	}()
	working, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- bot.Work(working) }() // ends with stop
	log.Info("receiving", "address", listener.Addr().String(), "https", !s.behindProxy)
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = server.Shutdown(closing)
	}
	stop()
	return errors.Join(err, <-done)
}

func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       75 * time.Second, // SMeet keeps a connection for 60
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelInfo),
	}
}
