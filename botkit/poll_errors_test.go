package botkit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

// Every error that a bot can get while it polls, and what it does about it.
func TestPollErrors(t *testing.T) {
	t.Parallel()
	const goesOn = ""
	tests := map[botkit.Code]struct {
		fault  bottest.Fault
		fatal  string        // words of the error that Poll returns
		before time.Duration // the next call comes not before
		within time.Duration // and within
		offset string        // of the next call; "-": none
	}{
		botkit.ConsumerConflict:     {bottest.Fault{RetryAfter: 40}, goesOn, 40 * time.Second, 41 * time.Second, "2"},
		botkit.OffsetNotIssued:      {bottest.Fault{}, goesOn, 0, time.Second, "-"},
		botkit.DeliveryModeConflict: {bottest.Fault{}, goesOn, 30 * time.Second, 60 * time.Second, "2"},
		botkit.BotPaused:            {bottest.Fault{}, goesOn, 30 * time.Second, 60 * time.Second, "2"},
		botkit.RateLimited:          {bottest.Fault{RetryAfter: 7}, goesOn, 7 * time.Second, 8 * time.Second, "2"},
		botkit.Maintenance:          {bottest.Fault{RetryAfter: 90}, goesOn, 90 * time.Second, 91 * time.Second, "2"},
		botkit.Unavailable:          {bottest.Fault{RetryAfter: 3}, goesOn, 3 * time.Second, 4 * time.Second, "2"},
		botkit.Internal:             {bottest.Fault{}, goesOn, 400 * time.Millisecond, time.Second, "2"},
		botkit.Unauthorized:         {bottest.Fault{}, "token isn't valid", 0, 0, ""},
		botkit.BotDisabled:          {bottest.Fault{}, "bots switched off", 0, 0, ""},
		botkit.InvalidRequest:       {bottest.Fault{}, "ConsumerID", 0, 0, ""},
		botkit.MethodNotFound:       {bottest.Fault{}, "address", 0, 0, ""},
		botkit.MethodNotAllowed:     {bottest.Fault{}, "address", 0, 0, ""},
		botkit.RequestTooLarge:      {bottest.Fault{}, "refuses", 0, 0, ""},
		botkit.UnsupportedMediaType: {bottest.Fault{}, "refuses", 0, 0, ""},
		"A_LATER_CODE":              {bottest.Fault{Status: 400}, "refuses", 0, 0, ""},
		"a proxy's page, 502":       {bottest.Fault{Status: 502, Page: "<h1>Bad gateway</h1>"}, goesOn, 400 * time.Millisecond, time.Second, "2"},
		"a proxy's page, 503":       {bottest.Fault{Status: 503, Page: "<h1>Later</h1>", RetryAfter: 9}, goesOn, 9 * time.Second, 10 * time.Second, "2"},
		"a proxy's page, 200":       {bottest.Fault{Status: 200, Page: "<h1>Welcome</h1>"}, goesOn, 400 * time.Millisecond, time.Second, "2"},
		"a redirect":                {bottest.Fault{Status: 302, Page: "moved"}, goesOn, 400 * time.Millisecond, time.Second, "2"},
		"another server's JSON":     {bottest.Fault{Status: 200, Page: `{"hello":"world"}`}, goesOn, 400 * time.Millisecond, time.Second, "2"},
		"a result of another shape": {bottest.Fault{Status: 200, Page: `{"ok":true,"result":{"updates":7}}`}, "shape", 0, 0, ""},
		"a batch without an offset": {bottest.Fault{Status: 200, Page: `{"ok":true,"result":{"updates":[]}}`}, "ids", 0, 0, ""},
		"an update without an id":   {bottest.Fault{Status: 200, Page: `{"ok":true,"result":{"updates":[{}],"confirmed_offset":"2","next_offset":"3","lease":{"epoch":"1"}}}`}, "ids", 0, 0, ""},
		"the request is lost":       {bottest.Fault{LoseRequest: true}, goesOn, 400 * time.Millisecond, time.Second, "2"},
		"the answer is lost":        {bottest.Fault{LoseAnswer: true}, goesOn, 400 * time.Millisecond, time.Second, "2"},
	}
	for code, c := range tests {
		bubble(t, "K-06 A-08 "+string(code), func(t *testing.T) {
			h := &seen{}
			r := newRig(t, h, botkit.Options{PollTimeout: time.Second})
			r.server.Message("550", "one")
			if f := c.fault; f.Page == "" && !f.LoseAnswer && !f.LoseRequest {
				c.fault.Code = code
			}
			var at time.Time
			c.fault.Do = func() { at = time.Now() }
			r.server.Fault("getUpdates", bottest.Fault{}, c.fault)
			r.poll()
			r.server.WaitCalls("getUpdates", 2)
			if c.fatal != "" {
				err := <-r.ended
				if err == nil || !strings.Contains(err.Error(), c.fatal) {
					t.Errorf("Poll returned %v, want %q in it", err, c.fatal)
				}
				if c.fault.Code != "" && !errors.Is(err, code) {
					t.Errorf("Poll returned %v, want it to be %s", err, code)
				}
				if r.bot.Healthy() {
					t.Error("it is healthy, want not: it has stopped")
				}
				return
			}
			after(2 * time.Minute)
			waited := r.server.Calls()[2].At.Sub(at)
			if c.fault.LoseAnswer {
				waited -= time.Second // the poll's own
			}
			if waited < c.before || waited > c.within {
				t.Errorf("the next call came after %s, want %s to %s", waited, c.before, c.within)
			}
			third := r.server.Calls()[2]
			if got := fmt.Sprint(third.Fields["offset"]); got != c.offset && (c.offset != "-" || third.Fields["offset"] != nil) {
				t.Errorf("its offset is %s, want %s", got, c.offset)
			}
			if third.Fields["epoch"] != "1" {
				t.Errorf("its epoch is %v, want 1: it stays", third.Fields["epoch"])
			}
			r.server.Message("550", "two")
			after(time.Second * 3)
			want := []botkit.ID{"1", "2"}
			if code == botkit.OffsetNotIssued { // nothing was confirmed
				want = []botkit.ID{"1", "1", "2"}
			}
			if got := h.got(); !slices.Equal(got, want) || !r.bot.Healthy() {
				t.Errorf("handled %v, problems %v; want %v, none", got, r.bot.Status().Problems, want)
			}
			_ = r.stop()
		})
	}
}
