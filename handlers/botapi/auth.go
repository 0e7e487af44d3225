package botapi

import (
	"context"
	"errors"
	"net/http"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/web"
)

// authorize finds the bot by its token. Whatever is wrong with the header, the
// look-up happens and the answer is the same.
func (h *Handler) authorize(ctx context.Context, r *http.Request) (bots.Bot, error) {
	bot, err := h.bots.ByToken(ctx, web.Bearer(r, delivery.BotTokenPrefix))
	if errors.Is(err, delivery.ErrNotFound) {
		return bots.Bot{}, delivery.Refuse(delivery.Unauthorized, delivery.UnauthorizedMessage)
	}
	return bot, err
}
