// Command webhookbot is a webhook receiver: it checks the signature, stores the
// update, answers, and works afterwards. It needs the standard library only.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const tries = 5 // at handling an update; then it is set aside

// handle is what the bot does. Replace it with your own. It works on one update,
// after it was answered. After a crash it can be called again for the same
// update: give whatever it does a key of event_id and the action, for example
// "<event_id>:reply".
func handle(_ context.Context, log *slog.Logger, update []byte) error {
	var u struct {
		UpdateID string `json:"update_id"`
		EventID  string `json:"event_id"`
		Type     string `json:"type"`
	}
	if err := json.Unmarshal(update, &u); err != nil {
		return err
	}
	log.Info("handled", "type", u.Type, "update_id", u.UpdateID, "event_id", u.EventID)
	return nil
}

// worker handles the stored updates one after another, the ones left from before
// a restart too.
type worker struct {
	inbox  *inbox
	handle func(context.Context, *slog.Logger, []byte) error
	pause  time.Duration // after a failure, doubled with each
	news   chan struct{} // holds 1; full: something was stored
	log    *slog.Logger
}

func (w *worker) ring() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// run works until ctx is done.
func (w *worker) run(ctx context.Context) {
	tidy := time.NewTicker(24 * time.Hour)
	defer tidy.Stop()
	for failed := 0; ctx.Err() == nil; {
		r, ok := w.inbox.first()
		if !ok {
			select {
			case <-ctx.Done():
			case <-w.news:
			case <-tidy.C:
				if err := w.inbox.tidy(time.Now()); err != nil {
					w.log.Error("the store can't be tidied", "error", err)
				}
			}
			continue
		}
		state := handled
		if err := w.try(ctx, []byte(r.Body)); err != nil {
			// The error's text may quote the update, so only its kind is told.
			w.log.Error("an update can't be handled", "event_id", r.EventID, "error", fmt.Sprintf("%T", err))
			failed++
			state = setAside
		}
		if state == handled || failed == tries {
			err := w.inbox.settle(r.EventID, state)
			if err == nil {
				failed = 0
				continue
			}
			w.log.Error("the store fails", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(w.pause << min(failed, tries)):
		}
	}
}

// try calls handle; a panic counts as a failure.
func (w *worker) try(ctx context.Context, update []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("panic")
		}
	}()
	return w.handle(ctx, w.log, update)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	proxied := slices.Contains(os.Args[1:], "--behind-proxy")
	if err := run(ctx, os.Getenv, proxied, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run receives until ctx is done.
func run(ctx context.Context, env func(string) string, proxied bool, log *slog.Logger) error {
	secret := strings.TrimSpace(env("SMEET_WEBHOOK_SECRET"))
	certificate, key := env("SMEET_WEBHOOK_CERT"), env("SMEET_WEBHOOK_KEY")
	host, path := env("SMEET_WEBHOOK_HOST"), cmp.Or(env("SMEET_WEBHOOK_PATH"), "/smeet")
	if host == "" && proxied {
		host = "127.0.0.1"
	}
	switch {
	case secret == "":
		return errors.New("set SMEET_WEBHOOK_SECRET to the secret that the Connection screen showed")
	case !proxied && (certificate == "" || key == ""):
		return errors.New("set SMEET_WEBHOOK_CERT and SMEET_WEBHOOK_KEY to the files of the certificate and its key, " +
			"or start with --behind-proxy where a proxy does HTTPS")
	case !strings.HasPrefix(path, "/"):
		return errors.New("SMEET_WEBHOOK_PATH begins with a slash")
	}
	// The port first: a second copy, started by mistake, ends here and leaves the first one's file alone.
	listener, err := net.Listen("tcp", net.JoinHostPort(host, cmp.Or(env("SMEET_WEBHOOK_PORT"), "8443")))
	if err != nil {
		return err
	}
	in, err := openInbox(cmp.Or(env("SMEET_WEBHOOK_STORE"), "./webhookbot.jsonl"), time.Now())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	work := &worker{inbox: in, handle: handle, pause: time.Second, news: make(chan struct{}, 1), log: log}
	receive := &receiver{secret: []byte(secret), inbox: in, stored: work.ring, log: log}
	server := &http.Server{
		Handler:           routes(path, receive),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       75 * time.Second, // SMeet keeps a connection for 60
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelInfo),
	}
	var running sync.WaitGroup
	working, end := context.WithCancel(context.Background())
	running.Go(func() { work.run(working) }) // ends after the update at hand, once end is called
	ended := make(chan error, 1)
	go func() { // ends when the server is closed
		if proxied {
			ended <- server.Serve(listener)
			return
		}
		ended <- server.ServeTLS(listener, certificate, key)
	}()
	log.Info("receiving", "address", listener.Addr().String(), "path", path, "https", !proxied)
	select {
	case err = <-ended:
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = server.Shutdown(closing)
	}
	end()
	running.Wait()
	return err
}

func routes(path string, receive http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz" && r.Method == http.MethodGet:
			w.WriteHeader(http.StatusOK)
		case r.URL.Path != path:
			w.WriteHeader(http.StatusNotFound)
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			receive.ServeHTTP(w, r)
		}
	})
}
