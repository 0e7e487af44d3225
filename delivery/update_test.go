package delivery_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mybots/delivery"
)

func TestUpdateJSON(t *testing.T) {
	t.Parallel()
	date := time.Date(2026, 9, 26, 13, 0, 0, 120_000_000, time.FixedZone("", 3*60*60))
	payload := `{"b":1,"a":12345678901234567890,"a":"\ud800","u":"\u0000","s":"` + "\u2028😀" + `"}`
	tests := map[string]struct {
		u    delivery.Update
		want string
	}{
		"U-01 the fields, the date in UTC; U-03 the payload as it was written": {
			delivery.Update{UpdateID: 42, EventID: "7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10", Type: "message", Date: date, Payload: []byte(payload)},
			`{"update_id":"42","event_id":"7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10","type":"message","date":"2026-09-26T10:00:00.12Z","message":` + payload + `}`,
		},
		"U-04 replay_of_update_id only on a replay": {
			delivery.Update{UpdateID: 99, EventID: "e", Type: "message", Date: date, Payload: []byte(`{}`), ReplayOf: 42},
			`{"update_id":"99","event_id":"e","type":"message","date":"2026-09-26T10:00:00.12Z","replay_of_update_id":"42","message":{}}`,
		},
		"U-01 a type that nobody knows passes through": {
			delivery.Update{UpdateID: 1, EventID: "e", Type: `po"ll`, Date: date, Payload: []byte(`{}`)},
			`{"update_id":"1","event_id":"e","type":"po\"ll","date":"2026-09-26T10:00:00.12Z","po\"ll":{}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(tt.u.AppendJSON(nil)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNewBatch(t *testing.T) {
	t.Parallel()
	updates := func(ids ...int64) (list []delivery.Update) {
		for _, id := range ids {
			list = append(list, delivery.Update{UpdateID: id})
		}
		return list
	}
	tests := map[string]struct {
		updates         []delivery.Update
		skipped         []delivery.Range
		confirmed, next int64
		want            []delivery.Range
		wantNext        int64
	}{
		"P-02 empty: next_offset equals confirmed_offset":   {nil, nil, 7, 7, nil, 7},
		"P-14 a batch with updates ends after its last one": {updates(7, 8), []delivery.Range{{From: 9, To: 12, Reason: "cancelled"}}, 7, 13, nil, 9},
		"P-14 a batch of skips alone jumps":                 {nil, []delivery.Range{{From: 7, To: 12, Reason: "cancelled"}}, 7, 13, []delivery.Range{{From: 7, To: 12, Reason: "cancelled"}}, 13},
		"P-13 neighbours of one reason become one range":    {updates(10), []delivery.Range{{From: 7, To: 7, Reason: "failed"}, {From: 8, To: 9, Reason: "failed"}}, 7, 11, []delivery.Range{{From: 7, To: 9, Reason: "failed"}}, 11},
		"P-13 neighbours of two reasons stay two":           {updates(9), []delivery.Range{{From: 7, To: 7, Reason: "failed"}, {From: 8, To: 8, Reason: "expired"}}, 7, 10, []delivery.Range{{From: 7, To: 7, Reason: "failed"}, {From: 8, To: 8, Reason: "expired"}}, 10},
		"P-13 a range that the position has entered is cut": {updates(10), []delivery.Range{{From: 3, To: 9, Reason: "expired"}}, 7, 11, []delivery.Range{{From: 7, To: 9, Reason: "expired"}}, 11},
		"P-13 one reason around an update stays two ranges": {updates(8, 10), []delivery.Range{{From: 7, To: 7, Reason: "failed"}, {From: 9, To: 9, Reason: "failed"}}, 7, 11, []delivery.Range{{From: 7, To: 7, Reason: "failed"}, {From: 9, To: 9, Reason: "failed"}}, 11},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := delivery.NewBatch(tt.updates, tt.skipped, tt.confirmed, tt.next)
			if !reflect.DeepEqual(b.Skipped, tt.want) || b.NextOffset != tt.wantNext || b.Confirmed != tt.confirmed {
				t.Errorf("got %+v [%d, %d), want %+v [%d, %d)", b.Skipped, b.Confirmed, b.NextOffset, tt.want, tt.confirmed, tt.wantNext)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		n  int64
		ok bool
	}{
		"0": {0, true}, "42": {42, true}, "9223372036854775807": {1<<63 - 1, true},
		"9223372036854775808": {0, false}, "": {0, false}, "-1": {0, false}, "+1": {0, false}, "01": {0, false}, "1.0": {0, false},
		"1e3": {0, false}, " 1": {0, false}, "١": {0, false}, "0x1": {0, false}, "1_0": {0, false},
	}
	for in, want := range tests {
		t.Run("A-02 "+in, func(t *testing.T) {
			t.Parallel()
			n, ok := delivery.ParseID(in)
			if ok != want.ok || ok && n != want.n {
				t.Errorf("got %d %v, want %d %v", n, ok, want.n, want.ok)
			}
		})
	}
}

func TestSecretIsCovered(t *testing.T) {
	t.Parallel()
	secret := delivery.NewSecret(delivery.BotTokenPrefix)
	if !strings.HasPrefix(string(secret), "sbt1_") || len(secret) < 5+39 {
		t.Errorf("got %d characters, want the prefix and 192 random bits", len(secret))
	}
	for _, format := range []string{"%v", "%s", "%q", "%#v", "%+v"} {
		if got := fmt.Sprintf(format, struct{ S delivery.Secret }{secret}); strings.Contains(got, string(secret)) {
			t.Errorf("A-03: %s prints the secret", format)
		}
	}
	if b, err := json.Marshal(secret); err != nil || strings.Contains(string(b), string(secret)) {
		t.Errorf("A-03: JSON holds the secret: %s %v", b, err)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	t.Run("G-05 a timer fires at its time and not before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := delivery.NewClock(time.Hour)
			at := c.Now().Add(25*time.Second + time.Nanosecond)
			done, stop := c.At(at)
			defer stop()
			<-done
			if c.Now().Before(at) {
				t.Errorf("fired at %v, before %v", c.Now(), at)
			}
		})
	})
	t.Run("G-05 a jump fires what has come due", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := delivery.NewClock(0)
			began := time.Now()
			done, stop := c.At(c.Now().Add(25 * time.Second))
			defer stop()
			later, stopLater := c.At(c.Now().Add(time.Minute))
			defer stopLater()
			c.SetShift(30 * time.Second)
			<-done
			if waited := time.Since(began); waited != 0 {
				t.Errorf("the timer fired after %v of real time, want at once", waited)
			}
			select {
			case <-later:
				t.Error("a timer fired before its time")
			default:
			}
			<-later
			if waited := time.Since(began); waited < 30*time.Second || waited > 31*time.Second {
				t.Errorf("the later timer fired after %v of real time, want 30 s", waited)
			}
		})
	})
	t.Run("G-05 time doesn't go back", func(t *testing.T) {
		t.Parallel()
		c := delivery.NewClock(time.Hour)
		c.SetShift(time.Minute)
		if c.Shift() != time.Hour {
			t.Errorf("got a shift of %v, want 1h", c.Shift())
		}
	})
	t.Run("a timer that was given up doesn't fire", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := delivery.NewClock(0)
			done, stop := c.At(c.Now().Add(time.Second))
			stop()
			stop()
			time.Sleep(2 * time.Second) // of the bubble's time
			select {
			case <-done:
				t.Error("it fired")
			default:
			}
		})
	})
}
