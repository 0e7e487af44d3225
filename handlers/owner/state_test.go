package owner

import (
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/queue"
	"mybots/views/ui"
	"mybots/views/words"
	"mybots/web"
)

func TestStateOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC)
	lease := delivery.Connection{LeaseUntil: now.Add(time.Minute)}
	asking := delivery.Connection{LeaseUntil: now.Add(time.Minute), PollUntil: now.Add(time.Second)}
	all := delivery.Connection{Maintenance: true, Disabled: true, Paused: true, LeaseUntil: now.Add(time.Minute), PollUntil: now.Add(time.Second)}
	without := func(c delivery.Connection, change func(*delivery.Connection)) delivery.Connection {
		change(&c)
		return c
	}
	tests := map[string]struct {
		s    queue.Status
		want state
		code string
		kind ui.Kind
	}{
		"everything at once": {queue.Status{Connection: all, Waiting: delivery.MaxWaiting}, maintenance, "maintenance", ui.Waiting},
		"all but maintenance": {queue.Status{Connection: without(all, func(c *delivery.Connection) { c.Maintenance = false }), Waiting: delivery.MaxWaiting},
			disabled, "disabled", ui.Off},
		"paused and full":         {queue.Status{Connection: delivery.Connection{Paused: true}, Waiting: delivery.MaxWaiting}, paused, "paused", ui.Off},
		"full":                    {queue.Status{Waiting: delivery.MaxWaiting}, queueFull, "queue_full", ui.Trouble},
		"full by bytes":           {queue.Status{Waiting: 200, WaitingBytes: delivery.MaxWaitingBytes}, queueFull, "queue_full", ui.Trouble},
		"one short of full":       {queue.Status{Waiting: delivery.MaxWaiting - 1, WaitingBytes: delivery.MaxWaitingBytes - 1}, noReceiver, "no_receiver", ui.Trouble},
		"full and connected":      {queue.Status{Connection: lease, Waiting: delivery.MaxWaiting}, queueFullBusy, "queue_full", ui.Trouble},
		"a call waits":            {queue.Status{Connection: asking}, receiving, "receiving", ui.Fine},
		"between calls":           {queue.Status{Connection: lease, Waiting: 7}, receivingBusy, "receiving", ui.Fine},
		"the lease ends now":      {queue.Status{Connection: delivery.Connection{LeaseUntil: now}, Waiting: 1}, noReceiver, "no_receiver", ui.Trouble},
		"the call's end has come": {queue.Status{Connection: delivery.Connection{LeaseUntil: now.Add(time.Minute), PollUntil: now}}, receivingBusy, "receiving", ui.Fine},
		"nothing, nobody":         {queue.Status{}, idle, "idle", ui.Waiting},
	}
	for name, c := range tests {
		t.Run("UI-05 "+name, func(t *testing.T) {
			t.Parallel()
			c.s.At = now
			got := stateOf(c.s)
			if got != c.want || got.code() != c.code || got.kind() != c.kind {
				t.Errorf("got %s, code %s, kind %s, want %s, %s, %s", got, got.code(), got.kind(), c.want, c.code, c.kind)
			}
		})
	}
}

func TestStatesHaveWords(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{words.English, words.Russian} {
		ctx := words.With(t.Context(), lang)
		for _, s := range []state{maintenance, disabled, paused, queueFull, queueFullBusy, receiving, receivingBusy, noReceiver, idle} {
			v := s.say(ctx, queue.Status{Waiting: 5})
			for _, text := range []string{v.Word, v.Means, v.Act} {
				if len(text) > 6 && text[:6] == "state." {
					t.Errorf("UI-01 %s in %s: got the key %s, want words", s, lang, text)
				}
			}
			if v.Word == "" || v.Means == "" || (v.Act == "") != (s == receiving || s == receivingBusy) {
				t.Errorf("UI-05 %s in %s: got %q, %q, %q, want a word, a sentence and what to do", s, lang, v.Word, v.Means, v.Act)
			}
		}
		for _, code := range []delivery.Code{delivery.QueueFull, delivery.BotPaused, delivery.BotDisabled, delivery.PayloadTooLarge, delivery.InvalidEvent} {
			if text := whyRefused(ctx, code); len(text) > 5 && text[:5] == "chat." {
				t.Errorf("UI-01 %s in %s: got the key %s, want words", code, lang, text)
			}
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for lang, rows := range map[string]map[int64]string{
		words.English: {0: "0 KiB", 1: "1 KiB", 1024: "1 KiB", 1025: "2 KiB", 1 << 20: "1 MiB", 3 << 19: "1.5 MiB", 50<<20 - 1: "49.9 MiB", 50 << 20: "50 MiB"},
		words.Russian: {3 << 19: "1,5 МиБ", 1023: "1 КиБ"},
	} {
		for bytes, want := range rows {
			if got := web.Size(words.With(t.Context(), lang), bytes); got != want {
				t.Errorf("UI-01 %d bytes in %s: got %s, want %s", bytes, lang, got, want)
			}
		}
	}
	for _, c := range []struct{ n, limit, want int64 }{{0, 10_000, 0}, {1, 10_000, 1}, {5_050, 10_000, 50}, {10_000, 10_000, 100}, {10_001, 10_000, 100}} {
		if got := web.Percent(c.n, c.limit); int64(got) != c.want {
			t.Errorf("percent of %d in %d: got %d, want %d", c.n, c.limit, got, c.want)
		}
	}
}
