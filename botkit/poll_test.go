package botkit_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mybots/botkit"
)

func TestPolling(t *testing.T) {
	t.Parallel()
	bubble(t, "K-01 handles in order and confirms with the next call", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		for n := range 250 {
			r.server.Message("550", fmt.Sprint(n))
		}
		r.poll()
		after(2 * time.Second)
		if len(h.got()) != 250 || !slices.IsSortedFunc(h.got(), botkit.ID.Compare) {
			t.Errorf("handled %d updates, in order: %t; want 250 in order", len(h.got()), slices.IsSortedFunc(h.got(), botkit.ID.Compare))
		}
		if got := r.server.Position(); got != "251" {
			t.Errorf("position %s, want 251", got)
		}
		if err := r.stop(); err != nil {
			t.Errorf("Poll returned %v, want nil", err)
		}
		for _, c := range r.server.Calls() {
			if c.Fields["consumer_id"] != "test" {
				t.Errorf("a call with %v", c.Fields)
			}
		}
	})
	bubble(t, "K-06 P-03 it keeps to the server's pace", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		for range 1500 {
			r.server.Message("550", "hello")
		}
		r.poll()
		after(8 * time.Second)
		_ = r.stop()
		if len(h.got()) != 1500 {
			t.Errorf("handled %d in 8 s, want 1500", len(h.got()))
		}
		for _, c := range r.server.Calls() {
			if c.Code == string(botkit.RateLimited) {
				t.Errorf("a call at %s was too early", c.At)
			}
		}
	})
	bubble(t, "K-01 a failure confirms what came before it, and only that", func(t *testing.T) {
		var mended atomic.Bool
		h := &seen{do: func(_ context.Context, u *botkit.Update) error {
			if u.UpdateID == "3" && !mended.Load() {
				return errBug
			}
			return nil
		}}
		r := newRig(t, h, botkit.Options{})
		for n := range 5 {
			r.server.Message("550", fmt.Sprint(n))
		}
		r.poll()
		after(time.Minute)
		if got := r.server.Position(); got != "3" {
			t.Errorf("position %s, want 3", got)
		}
		ids := h.got()
		if count(ids, "1") != 1 || count(ids, "2") != 1 || count(ids, "4") != 0 {
			t.Errorf("handled %v, want 1 and 2 once, 4 never", ids)
		}
		if n := count(ids, "3"); n < 4 || n > 12 {
			t.Errorf("update 3 tried %d times in a minute, want a growing pause", n)
		}
		if s := r.bot.Status(); s.Healthy || !strings.Contains(strings.Join(s.Problems, ";"), "update 3 has failed") {
			t.Errorf("status %+v, want it to name update 3", s)
		}
		mended.Store(true)
		after(time.Minute)
		if got := r.server.Position(); got != "6" || !r.bot.Healthy() {
			t.Errorf("position %s, healthy %t; want 6, true", got, r.bot.Healthy())
		}
		_ = r.stop()
	})
	bubble(t, "K-06 ids past 2^53 and 2^63 in growing length", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		r.server.StartAt(9999999999999999)
		for range 3 {
			r.server.Message("550", "hello")
		}
		r.poll()
		after(time.Second)
		_ = r.stop()
		want := []botkit.ID{"9999999999999999", "10000000000000000", "10000000000000001"}
		if !slices.Equal(h.got(), want) || r.server.Position() != "10000000000000002" {
			t.Errorf("handled %v up to %s, want %v", h.got(), r.server.Position(), want)
		}
	})
	bubble(t, "K-06 skipped ranges of any reason are passed and counted", func(t *testing.T) {
		h := &seen{}
		r := newRig(t, h, botkit.Options{})
		var ids []botkit.ID
		for range 9 {
			ids = append(ids, r.server.Message("550", "hello"))
		}
		r.server.Skip("cancelled", ids[0], ids[1])
		r.server.Skip("eaten_by_a_later_version", ids[4])
		r.server.Skip("expired", ids[7], ids[8])
		r.poll()
		after(2 * time.Second)
		if got, want := h.got(), []botkit.ID{"3", "4", "6", "7"}; !slices.Equal(got, want) {
			t.Errorf("handled %v, want %v", got, want)
		}
		if got := r.server.Position(); got != "10" {
			t.Errorf("position %s, want 10", got)
		}
		want := map[string]int64{"cancelled": 1, "eaten_by_a_later_version": 1, "expired": 1}
		if got := r.bot.Status().SkippedRanges; !reflect.DeepEqual(got, want) {
			t.Errorf("skipped %v, want %v", got, want)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 a long batch is left to keep the lease", func(t *testing.T) {
		h := &seen{do: func(context.Context, *botkit.Update) error {
			time.Sleep(6 * time.Second)
			return nil
		}}
		r := newRig(t, h, botkit.Options{})
		for range 40 {
			r.server.Message("550", "hello")
		}
		r.poll()
		after(4*time.Minute + 45*time.Second)
		if n := len(h.got()); n != 40 || r.bot.Status().Position.Epoch != "1" || !r.bot.Healthy() {
			t.Errorf("handled %d under epoch %s, healthy %t; want 40, each once, under 1", n, r.bot.Status().Position.Epoch, r.bot.Healthy())
		}
		_ = r.stop()
	})
	bubble(t, "K-06 an unchanged server is asked once in 25 s", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		r.poll()
		after(10 * time.Minute)
		if n := len(r.server.Calls()); n < 23 || n > 26 {
			t.Errorf("%d calls in 10 minutes, want 24 or 25", n)
		}
		if !r.bot.Healthy() {
			t.Errorf("problems %v, want none", r.bot.Status().Problems)
		}
		_ = r.stop()
	})
	bubble(t, "K-06 a poll that waits ends at once", func(t *testing.T) {
		r := newRig(t, &seen{}, botkit.Options{})
		r.poll()
		after(3 * time.Second)
		began := time.Now()
		if err := r.stop(); err != nil || time.Since(began) > time.Second {
			t.Errorf("Poll returned %v after %s, want nil at once", err, time.Since(began))
		}
		if n := len(r.server.Calls()); n != 1 {
			t.Errorf("%d calls, want 1: there was nothing to confirm", n)
		}
	})
}

func count(ids []botkit.ID, id botkit.ID) (n int) {
	for _, i := range ids {
		if i == id {
			n++
		}
	}
	return n
}
