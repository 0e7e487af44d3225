package support

import (
	"context"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
	views "mybots/views/support"
	"mybots/views/ui"
	"mybots/views/words"
)

// states are all the things that hold of a bot, the gravest first. Its owner
// sees the first one; support sees them all.
func (h *Handler) states(ctx context.Context, b bots.Found, s queue.Status) ([]views.State, error) {
	if s.Deleted {
		return []views.State{say(ctx, "deleted", ui.Off)}, nil
	}
	var list []views.State
	if s.Maintenance {
		list = append(list, say(ctx, "maintenance", ui.Waiting))
	}
	if s.Disabled {
		o, err := h.bots.SpaceOff(ctx, b.SpaceID)
		if err != nil {
			return nil, err
		}
		st := say(ctx, "space_off", ui.Off)
		st.Off = off(o)
		list = append(list, st)
	}
	switch {
	case h.webhooksOff && s.Mode == delivery.Webhook:
		list = append(list, say(ctx, "installation", ui.Off))
	case !s.HookAllowed:
		o, err := h.bots.WebhookOff(ctx, b.ID)
		if err != nil {
			return nil, err
		}
		st := say(ctx, "hook_off", ui.Off)
		st.Off = off(o)
		list = append(list, st)
	}
	if s.Paused {
		list = append(list, say(ctx, "paused", ui.Off))
	}
	if s.Full() {
		list = append(list, say(ctx, "queue_full", ui.Trouble))
	}
	if s.Mode == delivery.Webhook {
		return append(list, hookStates(ctx, s)...), nil
	}
	switch active := s.Active(s.At); {
	case active:
		list = append(list, say(ctx, "receiving", ui.Fine))
	case s.Waiting > 0:
		list = append(list, say(ctx, "no_receiver", ui.Trouble))
	default:
		list = append(list, say(ctx, "idle", ui.Waiting))
	}
	return list, nil
}

// hookStates say how delivery to the webhook itself is.
func hookStates(ctx context.Context, s queue.Status) []views.State {
	hook := s.Hook
	var list []views.State
	caused := func(code string, kind ui.Kind, cause string) {
		st := say(ctx, code, kind)
		st.Cause, st.Why = cause, why(ctx, cause)
		list = append(list, st)
	}
	if hook.Paused != "" {
		caused("hook_paused", ui.Trouble, hook.Paused)
	}
	switch {
	case hook.Open():
		caused("hook_open", ui.Trouble, hook.LastError.Code)
	case hook.Paused != "":
	case hook.Retrying(s.Waiting > 0):
		caused("hook_retrying", ui.Waiting, hook.LastError.Code)
	case s.HookAllowed && s.Stopped() == nil:
		list = append(list, say(ctx, "active", ui.Fine))
	}
	return list
}

func say(ctx context.Context, code string, kind ui.Kind) views.State {
	return views.State{Code: code, Kind: kind, Word: words.T(ctx, "support.state_"+code), Means: words.T(ctx, "support.means_"+code)}
}
