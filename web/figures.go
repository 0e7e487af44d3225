package web

import (
	"context"
	"time"

	"mybots/views/words"
)

// Figures as a person reads them, for the pages of all rooms.

// Percent is how much of limit n is, 0 to 100: at least 1 for something.
func Percent(n, limit int64) int {
	if n <= 0 {
		return 0
	}
	return int(min(100, max(1, n*100/limit)))
}

// Size writes bytes: whole KiB, rounded up, or MiB with one decimal, rounded
// down.
func Size(ctx context.Context, bytes int64) string {
	const kib, mib = 1 << 10, 1 << 20
	switch {
	case bytes < mib:
		return words.T(ctx, "conn.size_kib", "N", (bytes+kib-1)/kib)
	case bytes%mib == 0:
		return words.T(ctx, "conn.size_mib_whole", "N", bytes/mib)
	}
	return words.T(ctx, "conn.size_mib", "Whole", bytes/mib, "Tenth", bytes%mib*10/mib)
}

// Took writes how long a request took: milliseconds, from a second on with one
// decimal.
func Took(ctx context.Context, d time.Duration) string {
	if d < time.Second {
		return words.T(ctx, "hook.took_ms", "N", (d+time.Millisecond-1)/time.Millisecond)
	}
	tenths := int64((d + 50*time.Millisecond) / (100 * time.Millisecond))
	return words.T(ctx, "hook.took_s", "Whole", tenths/10, "Tenth", tenths%10)
}
