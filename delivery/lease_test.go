package delivery_test

import (
	"testing"
	"time"

	"mybots/delivery"
)

var start = time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC)

// held is a connection whose lease was given to consumer a with epoch 7 at
// start: 42 is the last one issued, the position is 40.
func held() delivery.Connection {
	return delivery.Connection{
		Mode: delivery.Polling, NextUpdateID: 50, Confirmed: 40, MaxIssued: 42,
		Epoch: 7, ConsumerID: "a", LeaseSince: start, LeaseUntil: start.Add(60 * time.Second), LeaseMaxIssued: 42, LeaseNextOffset: 43,
	}
}

func call(consumer string) delivery.Poll {
	return delivery.Poll{ConsumerID: consumer, Timeout: 25 * time.Second, Limit: 100}
}

func withEpoch(p delivery.Poll, epoch int64) delivery.Poll {
	p.HasEpoch, p.Epoch = true, epoch
	return p
}

func withOffset(p delivery.Poll, offset int64) delivery.Poll {
	p.HasOffset, p.Offset = true, offset
	return p
}

func TestReceive(t *testing.T) {
	t.Parallel()
	waiting := held()
	waiting.PollUntil, waiting.LeaseUntil = start.Add(20*time.Second), start.Add(80*time.Second)
	lost := held().TakeAway()
	jumped := held()
	jumped.LeaseNextOffset = 50
	fresh := delivery.Connection{Mode: delivery.Polling, NextUpdateID: 1, Confirmed: 1, EpochLost: true}
	const in, after = 10 * time.Second, 90 * time.Second
	type want struct {
		code      delivery.Code // "" for a call that may go on
		retry     time.Duration
		confirmed int64
		epoch     int64
		holder    string
		until     time.Duration // the lease's end, from start
	}
	tests := map[string]struct {
		c    delivery.Connection
		call delivery.Poll
		at   time.Duration
		want want
	}{
		"P-04 the first call gets a lease with a new epoch":              {fresh, call("a"), 0, want{"", 0, 1, 1, "a", 0}},
		"P-04 the holder keeps its lease":                                {held(), withEpoch(call("a"), 7), in, want{"", 0, 40, 7, "a", 60 * time.Second}},
		"P-05 (a) another consumer waits for the end of the lease":       {held(), call("b"), in, want{delivery.ConsumerConflict, 50 * time.Second, 40, 7, "a", 60 * time.Second}},
		"P-05 (a) another consumer with the right epoch too":             {held(), withEpoch(call("b"), 7), in, want{delivery.ConsumerConflict, 50 * time.Second, 40, 7, "a", 60 * time.Second}},
		"P-05 (b) the same consumer without its epoch":                   {held(), call("a"), in, want{delivery.ConsumerConflict, 50 * time.Second, 40, 7, "a", 60 * time.Second}},
		"P-05 (b) the same consumer with an old epoch":                   {held(), withEpoch(call("a"), 6), in, want{delivery.ConsumerConflict, 50 * time.Second, 40, 7, "a", 60 * time.Second}},
		"P-05 (c) a poll waits, the right epoch waits for its end":       {waiting, withEpoch(call("a"), 7), in, want{delivery.ConsumerConflict, 10 * time.Second, 40, 7, "a", 80 * time.Second}},
		"P-05 (a) a poll waits, another consumer waits for the lease":    {waiting, call("b"), in, want{delivery.ConsumerConflict, 70 * time.Second, 40, 7, "a", 80 * time.Second}},
		"P-05 (c) a conflict confirms nothing":                           {waiting, withOffset(withEpoch(call("a"), 7), 43), in, want{delivery.ConsumerConflict, 10 * time.Second, 40, 7, "a", 80 * time.Second}},
		"P-09 once the dead poll's timeout is over its holder goes on":   {waiting, withOffset(withEpoch(call("a"), 7), 43), 20 * time.Second, want{"", 0, 43, 7, "a", 80 * time.Second}},
		"P-04 the lease ends at its last moment":                         {held(), call("b"), 60 * time.Second, want{"", 0, 40, 8, "b", 60 * time.Second}},
		"P-06 after expiry the last epoch's offset still confirms":       {held(), withOffset(withEpoch(call("a"), 7), 43), after, want{"", 0, 43, 8, "a", 60 * time.Second}},
		"P-06 whatever its consumer_id":                                  {held(), withOffset(withEpoch(call("b"), 7), 43), after, want{"", 0, 43, 8, "b", 60 * time.Second}},
		"P-07 foreign epoch confirms nothing":                            {held(), withOffset(withEpoch(call("a"), 6), 43), after, want{"", 0, 40, 8, "a", 60 * time.Second}},
		"P-07 an epoch that never was confirms nothing":                  {held(), withOffset(withEpoch(call("a"), 99), 43), after, want{"", 0, 40, 8, "a", 60 * time.Second}},
		"P-07 a foreign epoch raises no offset error, above":             {held(), withOffset(withEpoch(call("a"), 6), 4000), after, want{"", 0, 40, 8, "a", 60 * time.Second}},
		"P-07 a foreign epoch raises no offset error, below":             {held(), withOffset(withEpoch(call("a"), 6), 1), after, want{"", 0, 40, 8, "a", 60 * time.Second}},
		"P-07 no epoch confirms nothing":                                 {held(), withOffset(call("a"), 43), after, want{"", 0, 40, 8, "a", 60 * time.Second}},
		"P-08 after a reset the last epoch is foreign":                   {lost, withOffset(withEpoch(call("a"), 7), 43), in, want{"", 0, 40, 8, "a", 0}},
		"P-08 after a reset anybody gets the lease":                      {lost, call("b"), in, want{"", 0, 40, 8, "b", 0}},
		"P-10 offset = position changes nothing":                         {held(), withOffset(withEpoch(call("a"), 7), 40), in, want{"", 0, 40, 7, "a", 60 * time.Second}},
		"P-10 an offset among the issued confirms what is below":         {held(), withOffset(withEpoch(call("a"), 7), 42), in, want{"", 0, 42, 7, "a", 60 * time.Second}},
		"P-10 max_issued + 1 confirms all":                               {held(), withOffset(withEpoch(call("a"), 7), 43), in, want{"", 0, 43, 7, "a", 60 * time.Second}},
		"P-10 below the position is CURSOR_BEHIND, P-11 keeps the lease": {held(), withOffset(withEpoch(call("a"), 7), 39), in, want{delivery.CursorBehind, 0, 40, 7, "a", 70 * time.Second}},
		"P-10 offset 0 is CURSOR_BEHIND":                                 {held(), withOffset(withEpoch(call("a"), 7), 0), in, want{delivery.CursorBehind, 0, 40, 7, "a", 70 * time.Second}},
		"P-10 above is OFFSET_NOT_ISSUED, P-11 keeps the lease":          {held(), withOffset(withEpoch(call("a"), 7), 44), in, want{delivery.OffsetNotIssued, 0, 40, 7, "a", 70 * time.Second}},
		"P-10 the greatest offset doesn't overflow":                      {held(), withOffset(withEpoch(call("a"), 7), 1<<63-1), in, want{delivery.OffsetNotIssued, 0, 40, 7, "a", 70 * time.Second}},
		"P-10 nothing received: position 1, offset 1 is accepted":        {fresh, withOffset(call("a"), 1), in, want{"", 0, 1, 1, "a", 0}},
		"P-11 after expiry an offset error grants no lease, above":       {held(), withOffset(withEpoch(call("b"), 7), 44), after, want{delivery.OffsetNotIssued, 0, 40, 7, "a", 60 * time.Second}},
		"P-11 after expiry an offset error grants no lease, below":       {held(), withOffset(withEpoch(call("b"), 7), 39), after, want{delivery.CursorBehind, 0, 40, 7, "a", 60 * time.Second}},
		"P-15 the lease's own jump confirms":                             {jumped, withOffset(withEpoch(call("a"), 7), 50), in, want{"", 0, 50, 7, "a", 60 * time.Second}},
		"P-15 a part of the jump doesn't":                                {jumped, withOffset(withEpoch(call("a"), 7), 49), in, want{delivery.OffsetNotIssued, 0, 40, 7, "a", 70 * time.Second}},
		"P-15 an expired lease's jump gets OFFSET_NOT_ISSUED":            {jumped, withOffset(withEpoch(call("a"), 7), 50), after, want{delivery.OffsetNotIssued, 0, 40, 7, "a", 60 * time.Second}},
		"P-16 webhook mode":                                              {with(held(), func(c *delivery.Connection) { c.Mode = delivery.Webhook }), withEpoch(call("a"), 7), in, want{delivery.DeliveryModeConflict, 0, 40, 7, "a", 60 * time.Second}},
		"P-16 paused, and no call keeps the lease":                       {with(held(), func(c *delivery.Connection) { c.Paused = true }), withEpoch(call("a"), 7), in, want{delivery.BotPaused, 0, 40, 7, "a", 60 * time.Second}},
		"P-16 maintenance asks for patience":                             {with(held(), func(c *delivery.Connection) { c.Maintenance = true }), withEpoch(call("a"), 7), in, want{delivery.Maintenance, 30 * time.Second, 40, 7, "a", 60 * time.Second}},
		"P-16 a space that runs no bots":                                 {with(held(), func(c *delivery.Connection) { c.Disabled = true }), withEpoch(call("a"), 7), in, want{delivery.BotDisabled, 0, 40, 7, "a", 60 * time.Second}},
		"A-04 maintenance comes before disabled, paused and the mode": {with(held(), func(c *delivery.Connection) {
			c.Maintenance, c.Disabled, c.Paused, c.Mode = true, true, true, delivery.Webhook
		}), call("a"), in, want{delivery.Maintenance, 30 * time.Second, 40, 7, "a", 60 * time.Second}},
		"A-04 disabled comes before paused and the mode": {with(held(), func(c *delivery.Connection) { c.Disabled, c.Paused, c.Mode = true, true, delivery.Webhook }), call("a"), in, want{delivery.BotDisabled, 0, 40, 7, "a", 60 * time.Second}},
		"A-04 the bot's state comes before the lease":    {with(held(), func(c *delivery.Connection) { c.Paused = true }), call("b"), in, want{delivery.BotPaused, 0, 40, 7, "a", 60 * time.Second}},
		"A-04 the lease comes before the offset":         {held(), withOffset(call("b"), 1), in, want{delivery.ConsumerConflict, 50 * time.Second, 40, 7, "a", 60 * time.Second}},
		"M-09 a bot that was deleted meanwhile":          {with(held(), func(c *delivery.Connection) { c.Deleted = true }), call("a"), in, want{delivery.Unauthorized, 0, 40, 7, "a", 60 * time.Second}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, refusal := tt.c.Receive(tt.call, start.Add(tt.at))
			g := want{confirmed: got.Confirmed, epoch: got.Epoch, holder: got.ConsumerID}
			if !got.LeaseUntil.IsZero() {
				g.until = got.LeaseUntil.Sub(start)
			}
			if refusal != nil {
				g.code, g.retry = refusal.Code, refusal.RetryAfter
				if refusal.Code == delivery.CursorBehind && refusal.ConfirmedOffset != tt.want.confirmed {
					t.Errorf("got confirmed_offset %d in the error, want %d", refusal.ConfirmedOffset, tt.want.confirmed)
				}
			}
			if g != tt.want {
				t.Errorf("got  %+v\nwant %+v", g, tt.want)
			}
			if refusal == nil && got.EpochLost {
				t.Error("the caller holds the lease, but its epoch is lost")
			}
		})
	}
}

func with(c delivery.Connection, change func(*delivery.Connection)) delivery.Connection {
	change(&c)
	return c
}

func TestLeaseTime(t *testing.T) {
	t.Parallel()
	t.Run("P-04 the lease lasts 60 s after an answer", func(t *testing.T) {
		t.Parallel()
		c := held().Answer(delivery.NewBatch(nil, nil, 40, 40), start.Add(5*time.Second))
		if want := start.Add(65 * time.Second); !c.LeaseUntil.Equal(want) {
			t.Errorf("got a lease until %v, want %v", c.LeaseUntil, want)
		}
	})
	t.Run("P-04 while a poll waits it lasts until the end of the wait and 60 s", func(t *testing.T) {
		t.Parallel()
		c, ticket := held().Wait(25*time.Second, start)
		if want := start.Add(85 * time.Second); !c.LeaseUntil.Equal(want) {
			t.Errorf("got a lease until %v, want %v", c.LeaseUntil, want)
		}
		if want := start.Add(25 * time.Second); !ticket.Until.Equal(want) {
			t.Errorf("got a wait until %v, want %v", ticket.Until, want)
		}
	})
}

func TestRate(t *testing.T) {
	t.Parallel()
	t.Run("P-03 a bucket of 5 that refills 5 a second", func(t *testing.T) {
		t.Parallel()
		c := delivery.Connection{Mode: delivery.Polling, NextUpdateID: 1, Confirmed: 1, EpochLost: true}
		var refusal *delivery.Refusal
		for i := range 5 {
			if c, refusal = c.Receive(call("a"), start); refusal != nil && refusal.Code == delivery.RateLimited {
				t.Fatalf("call %d was refused: %v", i+1, refusal)
			}
		}
		before := c
		c, refusal = c.Receive(call("a"), start)
		if refusal == nil || refusal.Code != delivery.RateLimited || refusal.RetryAfter != 200*time.Millisecond {
			t.Fatalf("got %+v for the sixth call, want RATE_LIMITED after 200ms", refusal)
		}
		if c != before {
			t.Errorf("a refused call changed the connection:\ngot  %+v\nwant %+v", c, before)
		}
		if _, refusal = c.Receive(call("a"), start.Add(199*time.Millisecond)); refusal == nil || refusal.Code != delivery.RateLimited {
			t.Errorf("got %v 199 ms later, want RATE_LIMITED", refusal)
		}
		if _, refusal = c.Receive(call("a"), start.Add(200*time.Millisecond)); refusal != nil && refusal.Code == delivery.RateLimited {
			t.Errorf("got RATE_LIMITED 200 ms later, want a token")
		}
	})
	t.Run("P-03 conflicts count too", func(t *testing.T) {
		t.Parallel()
		c := held()
		codes := map[delivery.Code]int{}
		for range 7 {
			var refusal *delivery.Refusal
			c, refusal = c.Receive(call("b"), start)
			codes[refusal.Code]++
		}
		if codes[delivery.ConsumerConflict] != 5 || codes[delivery.RateLimited] != 2 {
			t.Errorf("got %v, want 5 conflicts and 2 rate limits", codes)
		}
	})
	t.Run("P-03 the rate comes before the bot's state", func(t *testing.T) {
		t.Parallel()
		c := held()
		c.Paused = true
		c.Tokens, c.TokensAt = 0, start
		if _, refusal := c.Receive(call("a"), start); refusal.Code != delivery.RateLimited {
			t.Errorf("got %v, want RATE_LIMITED", refusal)
		}
	})
	t.Run("P-03 a clock that is behind another replica's gives no tokens", func(t *testing.T) {
		t.Parallel()
		c := held()
		c.Tokens, c.TokensAt = 0.5, start
		if _, refusal := c.Receive(call("a"), start.Add(-time.Hour)); refusal.Code != delivery.RateLimited {
			t.Errorf("got %v, want RATE_LIMITED", refusal)
		}
	})
}

func TestResume(t *testing.T) {
	t.Parallel()
	c, ticket := held().Wait(25*time.Second, start)
	later, _ := c.Wait(25*time.Second, start.Add(26*time.Second))
	tests := map[string]struct {
		c     delivery.Connection
		code  delivery.Code
		retry time.Duration
		until time.Duration // the lease's end, from start; -1: no lease
	}{
		"P-02 it waits on":                                        {c, "", 0, 85 * time.Second},
		"P-08 a reset ends it, retry_after 1":                     {c.TakeAway(), delivery.ConsumerConflict, time.Second, -1},
		"P-08 a switch to webhook ends it":                        {with(c.TakeAway(), func(c *delivery.Connection) { c.Mode = delivery.Webhook }), delivery.DeliveryModeConflict, 0, -1},
		"P-08 a new lease since ends it":                          {with(c, func(c *delivery.Connection) { c.Epoch = 8 }), delivery.ConsumerConflict, time.Second, 85 * time.Second},
		"P-05 a later poll of its own lease took over":            {later, delivery.ConsumerConflict, time.Second, 111 * time.Second},
		"P-16 pause ends it, the lease ends 60 s later":           {with(c, func(c *delivery.Connection) { c.Paused = true }), delivery.BotPaused, 0, 70 * time.Second},
		"P-16 maintenance ends it, the lease ends 60 s later":     {with(c, func(c *delivery.Connection) { c.Maintenance = true }), delivery.Maintenance, 30 * time.Second, 70 * time.Second},
		"P-16 a space switched off ends it, the lease ends later": {with(c, func(c *delivery.Connection) { c.Disabled = true }), delivery.BotDisabled, 0, 70 * time.Second},
		"M-09 deletion ends it with 401":                          {with(c.TakeAway(), func(c *delivery.Connection) { c.Deleted = true }), delivery.Unauthorized, 0, -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, refusal := tt.c.Resume(ticket, start.Add(10*time.Second))
			var code delivery.Code
			var retry time.Duration
			if refusal != nil {
				code, retry = refusal.Code, refusal.RetryAfter
			}
			if code != tt.code || retry != tt.retry {
				t.Errorf("got %q after %v, want %q after %v", code, retry, tt.code, tt.retry)
			}
			until := time.Duration(-1)
			if !got.LeaseUntil.IsZero() {
				until = got.LeaseUntil.Sub(start)
			}
			if until != tt.until {
				t.Errorf("got a lease until %v, want %v", until, tt.until)
			}
			if got.Epoch != tt.c.Epoch || got.EpochLost != tt.c.EpochLost {
				t.Errorf("the epoch changed: got %d %v, want %d %v", got.Epoch, got.EpochLost, tt.c.Epoch, tt.c.EpochLost)
			}
		})
	}
	t.Run("M-07 pausing ends the wait at once, P-16 and the lease 60 s later", func(t *testing.T) {
		t.Parallel()
		p := c.Pause(true, start.Add(10*time.Second))
		if !p.PollUntil.IsZero() || !p.LeaseUntil.Equal(start.Add(70*time.Second)) || !p.Paused || p.Epoch != 7 || p.EpochLost {
			t.Errorf("got %+v", p)
		}
		if back := p.Pause(false, start.Add(20*time.Second)); back.Paused || !back.LeaseUntil.Equal(p.LeaseUntil) {
			t.Errorf("after Resume got %+v", back)
		}
	})
	t.Run("P-08 a reset makes the epoch foreign also when the lease had expired", func(t *testing.T) {
		t.Parallel()
		expired := held()
		expired.LeaseUntil = start.Add(-time.Hour)
		if !expired.TakeAway().EpochLost {
			t.Error("the epoch is still the last")
		}
	})
}

func TestReject(t *testing.T) {
	t.Parallel()
	rejection := delivery.Rejection{UpdateID: 41, Reason: "no", ConsumerID: "a", Epoch: 7}
	waiting, _ := held().Wait(25*time.Second, start)
	tests := map[string]struct {
		c      delivery.Connection
		change func(*delivery.Rejection)
		at     time.Duration
		code   delivery.Code
		retry  time.Duration
		until  time.Duration
	}{
		"R-02 an issued one":                          {held(), nil, 10 * time.Second, "", 0, 70 * time.Second},
		"R-02 while a poll waits; P-04 keeps its end": {waiting, nil, 10 * time.Second, "", 0, 85 * time.Second},
		"R-02 another consumer":                       {held(), func(r *delivery.Rejection) { r.ConsumerID = "b" }, 10 * time.Second, delivery.ConsumerConflict, 50 * time.Second, 60 * time.Second},
		"R-02 another epoch":                          {held(), func(r *delivery.Rejection) { r.Epoch = 6 }, 10 * time.Second, delivery.ConsumerConflict, 50 * time.Second, 60 * time.Second},
		"R-02 no active lease, retry_after 1":         {held(), nil, 60 * time.Second, delivery.ConsumerConflict, time.Second, 60 * time.Second},
		"R-02 confirmed already":                      {held(), func(r *delivery.Rejection) { r.UpdateID = 39 }, 10 * time.Second, delivery.UpdateNotFound, 0, 70 * time.Second},
		"R-02 never issued to this lease":             {held(), func(r *delivery.Rejection) { r.UpdateID = 43 }, 10 * time.Second, delivery.UpdateNotFound, 0, 70 * time.Second},
		"R-02 webhook mode":                           {with(held(), func(c *delivery.Connection) { c.Mode = delivery.Webhook }), nil, 10 * time.Second, delivery.DeliveryModeConflict, 0, 60 * time.Second},
		"P-16 paused":                                 {with(held(), func(c *delivery.Connection) { c.Paused = true }), nil, 10 * time.Second, delivery.BotPaused, 0, 60 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rejection
			if tt.change != nil {
				tt.change(&r)
			}
			got, refusal := tt.c.Reject(r, start.Add(tt.at))
			var code delivery.Code
			var retry time.Duration
			if refusal != nil {
				code, retry = refusal.Code, refusal.RetryAfter
			}
			if code != tt.code || retry != tt.retry {
				t.Errorf("got %q after %v, want %q after %v", code, retry, tt.code, tt.retry)
			}
			if until := got.LeaseUntil.Sub(start); until != tt.until {
				t.Errorf("got a lease until %v, want %v", until, tt.until)
			}
		})
	}
}
