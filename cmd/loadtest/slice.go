package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// variant is one way of writing, measured in turn with the others.
type variant struct {
	part    string // of the table
	name    string
	callers int
	each    int // events of one call
	// start makes ready one caller; its call writes each events and returns when
	// they are durable; done lets go of what it holds.
	start func(ctx context.Context) (call func() error, done func() error, err error)
}

// sample is what one slice of a variant came to.
type sample struct {
	rate     float64       // events a second
	p50, p99 time.Duration // of one call
	commits  float64       // an event; negative: not known
	wal      float64       // bytes of WAL an event
}

// mark is a place in the server's WAL.
type mark struct {
	Written int64 `db:"written"`
	Flushed int64 `db:"flushed"`
}

func (s *site) mark(ctx context.Context) (mark, error) {
	var m mark
	err := s.db.GetContext(ctx, &m, `
SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint AS written, (pg_current_wal_flush_lsn() - '0/0')::bigint AS flushed`)
	if err != nil {
		return m, fmt.Errorf("look at the WAL: %w", err)
	}
	return m, nil
}

// commits counts the commits between two marks in the WAL itself; false where
// the server lacks the extension for that, or has used those files again.
func (s *site) commits(ctx context.Context, from, to mark) (float64, bool) {
	if !s.inspects {
		return 0, false
	}
	var n float64
	err := s.db.GetContext(ctx, &n, `
SELECT coalesce(sum(count), 0) FROM pg_get_wal_stats('0/0'::pg_lsn + $1::bigint, '0/0'::pg_lsn + $2::bigint, true)
 WHERE "resource_manager/record_type" = 'Transaction/COMMIT'`, from.Flushed, to.Flushed)
	return n, err == nil
}

// slice runs a variant for about d and empties the queues afterwards.
func (s *site) slice(ctx context.Context, v variant, d time.Duration) (out sample, err error) {
	calls := make([]func() error, v.callers)
	for i := range calls {
		call, done, err := v.start(ctx)
		if err != nil {
			return out, fmt.Errorf("%s: %w", v.name, err)
		}
		defer func() { err = errors.Join(err, done()) }()
		calls[i] = call
	}
	before, err := s.mark(ctx)
	if err != nil {
		return out, err
	}
	times := make([][]time.Duration, v.callers)
	failures := make([]error, v.callers)
	began := time.Now()
	end := began.Add(d)
	var running sync.WaitGroup
	for i, call := range calls {
		running.Go(func() { // ends at end
			for t := time.Now(); t.Before(end) && ctx.Err() == nil; {
				if err := call(); err != nil {
					failures[i] = err
					return
				}
				now := time.Now()
				times[i] = append(times[i], now.Sub(t))
				t = now
			}
		})
	}
	running.Wait()
	took := time.Since(began)
	for _, err := range failures {
		if err != nil {
			return out, fmt.Errorf("%s: %w", v.name, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	after, err := s.mark(ctx)
	if err != nil {
		return out, err
	}
	all := slices.Concat(times...)
	if len(all) == 0 {
		return out, fmt.Errorf("%s: no call ended within %v", v.name, d)
	}
	events := float64(len(all) * v.each)
	out = sample{rate: events / took.Seconds(), commits: -1, wal: float64(after.Written-before.Written) / events}
	if n, ok := s.commits(ctx, before, after); ok {
		out.commits = n / events
	}
	out.p50, out.p99 = percentiles(all)
	return out, s.empty(ctx)
}

// percentiles returns the median and what 99 % stay under. It sorts the list.
func percentiles(list []time.Duration) (p50, p99 time.Duration) {
	if len(list) == 0 {
		return 0, 0
	}
	slices.Sort(list)
	return list[len(list)/2], list[len(list)*99/100]
}

// middle returns the median of each of the samples' values.
func middle(list []sample) sample {
	return sample{
		rate:    median(list, func(s sample) float64 { return s.rate }),
		p50:     time.Duration(median(list, func(s sample) float64 { return float64(s.p50) })),
		p99:     time.Duration(median(list, func(s sample) float64 { return float64(s.p99) })),
		commits: median(list, func(s sample) float64 { return s.commits }),
		wal:     median(list, func(s sample) float64 { return s.wal }),
	}
}

// median passes over what is negative: not known. It returns -1 where nothing is.
func median[T any](list []T, of func(T) float64) float64 {
	var values []float64
	for _, s := range list {
		if v := of(s); v >= 0 {
			values = append(values, v)
		}
	}
	n := len(values)
	if n == 0 {
		return -1
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
