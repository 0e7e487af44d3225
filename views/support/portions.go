package support

import (
	"context"

	"mybots/views/ui"
	"mybots/views/words"
)

// portions are how many notices a route may send before it stops again.
func portions(ctx context.Context) []ui.Option {
	return []ui.Option{
		{Value: "10", Label: words.T(ctx, "notices.portion_n", "N", 10), Selected: true},
		{Value: "100", Label: words.T(ctx, "notices.portion_n", "N", 100)},
		{Value: "0", Label: words.T(ctx, "notices.portion_all")},
	}
}
