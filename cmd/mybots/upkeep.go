package main

import (
	"context"
	"errors"
	"time"
)

// upkeepEvery is how often old things are looked for, on the product's clock.
const upkeepEvery = 30 * time.Second

// upkeep expires and drops what is old, until ctx ends. Every process does it:
// each step is harmless twice.
func (s *server) upkeep(ctx context.Context) {
	for {
		s.tidy(ctx)
		due, stop := s.clock.At(s.clock.Now().Add(upkeepEvery))
		select {
		case <-due:
		case <-ctx.Done():
			stop()
			return
		}
	}
}

func (s *server) tidy(ctx context.Context) {
	report := func(what string, err error) {
		if err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "upkeep failed", "step", what, "err", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	report("make partitions", errors.Join(s.queue.MakeWeeks(ctx), s.queue.MakeDays(ctx)))
	n, err := s.queue.Expire(ctx)
	report("expire updates", err)
	if n > 0 {
		s.log.InfoContext(ctx, "updates expired", "count", n)
	}
	weeks, err := s.queue.DropWeeks(ctx)
	report("drop partitions", err)
	days, err := s.queue.DropDays(ctx)
	report("drop partitions", err)
	if weeks+days > 0 {
		s.log.InfoContext(ctx, "old partitions dropped", "count", weeks+days)
	}
	rebuilt, err := s.queue.Shrink(ctx)
	report("shrink indexes", err)
	for _, name := range rebuilt {
		s.log.InfoContext(ctx, "index rebuilt, its empty pages given back", "index", name)
	}
	closed, err := s.notices.DropOld(ctx)
	report("drop old notices", err)
	if closed > 0 {
		s.log.InfoContext(ctx, "old notices dropped", "count", closed)
	}
	report("drop old sessions", s.bots.DropOld(ctx, s.clock.Now().Add(-12*time.Hour)))
}
