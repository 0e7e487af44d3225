package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/notice"
	"mybots/delivery/queue"
	"mybots/delivery/wake"
	"mybots/delivery/webhook"
	"mybots/handlers"
	"mybots/handlers/intake"
	"mybots/static"
)

// The roles that a process can have.
const (
	rolePages   = "web"     // the screens
	roleAPI     = "api"     // Bot API and intake
	roleDeliver = "deliver" // updates to webhooks, notices to owners, and what bots write on to the messenger
)

var allRoles = []string{rolePages, roleAPI, roleDeliver}

// stopTime is how long requests get to finish after SIGTERM (G-04).
const stopTime = 12 * time.Second

func serve(ctx context.Context, w world, args []string) error {
	roles, err := parseRoles(w, "serve", args)
	if err != nil {
		return err
	}
	c, log, err := begin(w)
	if err != nil {
		return err
	}
	db, err := openForServer(ctx, c, log)
	if err != nil {
		return err
	}
	return runServer(ctx, c, log, db, roles, nil)
}

func parseRoles(w world, name string, args []string) ([]string, error) {
	var list string
	err := parse(w, name, args, func(f *flag.FlagSet) {
		f.StringVar(&list, "roles", strings.Join(allRoles, ","), "what this process does")
	})
	if err != nil {
		return nil, err
	}
	roles := strings.Split(list, ",")
	for _, r := range roles {
		if !slices.Contains(allRoles, r) {
			return nil, fmt.Errorf("%s: --roles takes some of %s, not %q", name, strings.Join(allRoles, ","), r)
		}
	}
	return roles, nil
}

// begin reads the settings and opens the log.
func begin(w world) (config, *slog.Logger, error) {
	c, err := readConfig(w.environ)
	if err != nil {
		return config{}, nil, err
	}
	log := slog.New(slog.NewJSONHandler(w.stderr, &slog.HandlerOptions{Level: c.logLevel}))
	return c, log, nil
}

func migrate(ctx context.Context, w world, args []string) error {
	if err := parse(w, "migrate", args, func(*flag.FlagSet) {}); err != nil {
		return err
	}
	c, log, err := begin(w)
	if err != nil {
		return err
	}
	db, err := openForCommand(ctx, c, log)
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "the schema is up to date")
	return db.close()
}

// server is one running process of the product.
type server struct {
	config  config
	log     *slog.Logger
	db      *database
	clock   *delivery.ShiftedClock
	bell    *wake.Bell
	ring    *wake.Replicas
	queue   *queue.Queue
	bots    *bots.Store
	chats   *chat.Store
	guard   *webhook.Guard
	sender  *webhook.Sender
	worker  *webhook.Worker // nil: this process delivers to no webhooks
	notices *notice.Store
	base    atomic.Pointer[url.URL] // where browsers reach the product

	registry *prometheus.Registry
	stopping atomic.Bool
}

// newServer puts the rooms together.
func newServer(ctx context.Context, c config, log *slog.Logger, db *database) (*server, error) {
	key, err := secretKey(c)
	if err != nil {
		return nil, err
	}
	sealer, err := bots.NewSealer(key)
	if err != nil {
		return nil, err
	}
	clock, err := startClock(ctx, c, db.DB)
	if err != nil {
		return nil, err
	}
	s := &server{config: c, log: log, db: db, clock: clock, bell: wake.NewBell(), registry: prometheus.NewRegistry()}
	s.ring = wake.NewReplicas(s.bell, db.DB, db.url, log)
	s.base.Store(c.baseURL)
	s.notices = notice.New(notice.Options{DB: db.DB, Clock: clock, BaseURL: s.base.Load, MAX: c.maxToken != ""})
	s.queue = queue.New(db.DB, clock, s.ring.Ring, queue.Telling(s.notices.Record))
	s.bots = bots.New(db.DB, clock, s.queue, sealer)
	s.chats = chat.New(db.DB, clock, s.queue, c.outboundURL != "")
	s.guard = webhook.NewGuard(c.guard)
	s.sender = webhook.NewSender(s.guard, clock)
	return s, nil
}

// runServer serves until ctx ends or something vital is lost, then stops in
// order: no new connections, waiting polls answered, requests finished, the
// database closed. ready, if not nil, is called before the first request is served.
func runServer(ctx context.Context, c config, log *slog.Logger, db *database, roles []string, ready func(*server, *url.URL) error) (err error) {
	defer func() { err = errors.Join(err, db.close()) }()
	s, err := newServer(ctx, c, log, db)
	if err != nil {
		return err
	}
	defer s.queue.Close()
	defer s.sender.Close()
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return fmt.Errorf("MYBOTS_ADDR: %w", err)
	}
	base := c.baseURL
	if base.Host == c.addr {
		base = &url.URL{Scheme: base.Scheme, Host: listener.Addr().String()} // port 0 is a port now
		s.base.Store(base)
	}
	admin, err := s.listenAdmin()
	if err != nil {
		return errors.Join(err, listener.Close())
	}

	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stopBackground()
	// Delivery stops as soon as the process is asked to, while requests finish.
	delivering, stopDelivering := context.WithCancel(background)
	defer stopDelivering()
	if slices.Contains(roles, roleDeliver) && !c.webhooksOff {
		s.newWorker()
		running.Go(func() { s.worker.Run(delivering) }) // ends with delivering, and the requests under way
	}
	if slices.Contains(roles, roleDeliver) {
		notices := s.newNoticeWorker()
		running.Go(func() { notices.Run(delivering) }) // ends with delivering, and the requests under way
	}
	running.Go(func() { s.ring.Run(background, s.queue) }) // ends with background
	running.Go(func() { s.upkeep(background) })            // ends with background
	if c.testClock {
		log.WarnContext(ctx, "TEST CLOCK: anybody with an intake key can move this installation's time; never use this in production")
		running.Go(func() { testClock{s.clock, db.DB, log}.follow(background) }) // ends with background
	}
	if c.outboundURL != "" && slices.Contains(roles, roleDeliver) {
		out := chat.NewOutbound(db.DB, s.clock, log, c.outboundURL)
		running.Go(func() { out.Run(background) }) // ends with background
	}
	if !static.HasHTMX() {
		log.WarnContext(ctx, "htmx is missing: the screens work without it, less smoothly; `make assets` brings it")
	}

	// Who connects already waits in the listener's queue until ready is done.
	if ready != nil {
		if err := ready(s, base); err != nil {
			err = errors.Join(err, listener.Close())
			if admin != nil {
				err = errors.Join(err, admin.listener.Close())
			}
			if ctx.Err() != nil {
				log.Info("stopped before it was ready", "err", err)
				return nil
			}
			return err
		}
	}
	web := s.httpServer(base, roles)
	failed := make(chan error, 2)
	running.Go(func() { failed <- web.Serve(listener) }) // ends with web.Shutdown
	if admin != nil {
		running.Go(func() { failed <- admin.serve() }) // ends with admin.Close
	}
	log.InfoContext(ctx, "listening", "addr", listener.Addr().String(), "url", base.String(), "version", release, "roles", strings.Join(roles, ","))

	var cause error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case cause = <-failed:
	case <-db.lost:
		cause = errors.New("its own PostgreSQL can't be kept running")
	}
	stopDelivering()
	return errors.Join(cause, s.stop(web, admin))
}

// newWorker makes the worker that delivers to webhooks, on the bell.
func (s *server) newWorker() {
	s.worker = webhook.NewWorker(webhook.Options{Queue: s.queue, Bots: s.bots, Sender: s.sender, Clock: s.clock, Log: s.log, Metrics: s.registry})
	s.bell.Observe(s.worker.Ring, s.worker.RingAll)
}

// newNoticeWorker makes the worker that sends notices to owners.
func (s *server) newNoticeWorker() *notice.Worker {
	senders := map[string]notice.Sender{}
	if s.config.maxToken != "" {
		senders[notice.MAX] = notice.NewMessenger(s.config.maxURL, s.config.maxToken, s.base.Load)
	}
	return notice.NewWorker(s.notices, senders, s.log, s.registry)
}

// stop ends the serving: waiting polls answer an empty batch, requests finish.
func (s *server) stop(web *http.Server, admin *adminServer) error {
	s.stopping.Store(true)
	s.bell.Close()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var err error
	if slow := web.Shutdown(ctx); slow != nil { // their connections are cut
		s.log.Warn("some requests didn't finish in time", "err", slow)
		err = web.Close()
	}
	if admin != nil {
		err = errors.Join(err, admin.Close())
	}
	return err
}

func (s *server) httpServer(base *url.URL, roles []string) *http.Server {
	var test intake.TestClock
	if s.config.testClock {
		test = testClock{s.clock, s.db.DB, s.log}
	}
	return &http.Server{
		Handler: handlers.Routes(handlers.Options{
			Log: s.log, Clock: s.clock, Bots: s.bots, Queue: s.queue, Chats: s.chats, Bell: s.bell, TestClock: test,
			Guard: s.guard, Sender: s.sender, WebhooksOff: s.config.webhooksOff, Notices: s.notices, MAXSecret: s.config.maxSecret,
			BaseURL: base, TrustedProxies: s.config.trustedProxies, Metrics: s.registry, Ready: s.ready,
			Pages: slices.Contains(roles, rolePages), API: slices.Contains(roles, roleAPI),
		}),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
