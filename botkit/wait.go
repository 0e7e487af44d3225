package botkit

import (
	"context"
	"math/rand/v2"
	"time"
)

const longestPause = 30 * time.Second // between two tries, where the server names no time

// backoff returns the pause after the n-th failure in a row, from 1: half a
// second to a second at first, doubled up to longestPause, never in step with
// others.
func backoff(n int) time.Duration {
	most := min(longestPause, time.Second<<min(max(n-1, 0), 10))
	return most/2 + rand.N(most/2)
}

// after returns the pause after a failed call: what the server asked for and a
// little more, or the backoff.
func after(asked time.Duration, n int) time.Duration {
	if asked > 0 {
		return asked + rand.N(time.Second)
	}
	return backoff(n)
}

// pause waits; false: ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
