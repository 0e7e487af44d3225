package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWebhookAddresses(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t)
	s := w.serve(t)
	o := s.signIn(t)
	t.Run("W-01 G-06 what is allowed beside lifts no rule about names, and no other network", func(t *testing.T) {
		b := o.newBot(t)
		e.names.lead("nowhere.example.test")
		e.names.lead("mixed.example.test", "127.0.0.1", "10.1.2.3")
		e.names.lead("inside.example.test", "10.1.2.3")
		for _, address := range []string{
			"https://localhost:" + e.port + "/hook", "https://x.LOCALHOST.:" + e.port + "/hook", "https://x.local/", "https://x.internal/", "https://nowhere.example.test/", "https://mixed.example.test/",
			"https://inside.example.test/", "https://10.1.2.3/", "https://hook.example.test:444/", "http://hook.example.test/", "https://me:word@hook.example.test/", "https://hook.example.test/#f", "", "x",
			"https://hook.example.test/" + strings.Repeat("a", 2048),
		} {
			o.denied(t, b, address, "WEBHOOK_URL_FORBIDDEN")
		}
	})
	t.Run("W-01 G-06 the usual ports stay allowed beside others", func(t *testing.T) {
		for _, address := range []string{"https://hook.example.test/", "https://hook.example.test:8443/x?y=z", "https://127.0.0.1:" + e.port + "/"} {
			o.hook(t, o.newBot(t), address, "keep")
		}
	})
	t.Run("W-02 W-04 a connection is kept for a minute at the most, no cookie is, and the name is looked up anew", func(t *testing.T) {
		h := o.hooked(t, e)
		h.does(says(200, "Set-Cookie: a=b; Path=/"))
		visit := func(id string) *visit {
			s.sends(t, h.bot, 1)
			v := h.gets(t, id, 1)
			if c := v.request.Header["Cookie"]; c != nil {
				t.Errorf("W-04 got the cookie %q", c)
			}
			s.stands(t, h.bot, fmt.Sprintf("active, 0 waiting, 0 failed, at %d", v.update.id+1))
			return v
		}
		saved := e.names.lookups(h.host)
		first, second := visit("1"), visit("2")
		if second.conn != first.conn || e.names.lookups(h.host) != saved+1 {
			t.Errorf("got the connections %d and %d and %d look-ups, want one", first.conn, second.conn, e.names.lookups(h.host)-saved)
		}
		s.advance(t, 61*time.Second)
		if third := visit("3"); third.conn == first.conn || e.names.lookups(h.host) != saved+2 {
			t.Errorf("a minute later: got the connections %d and %d and %d look-ups, want a second one", first.conn, third.conn, e.names.lookups(h.host)-saved)
		}
		e.names.lead(h.host, "10.1.2.3")
		s.advance(t, 61*time.Second)
		s.sends(t, h.bot, 1)
		s.stands(t, h.bot, "paused ADDRESS_FORBIDDEN, 1 waiting, 0 failed, at 4")
	})
	t.Run("W-08 a kept connection that turns out closed costs no attempt", func(t *testing.T) {
		h := o.hooked(t, e)
		s.sends(t, h.bot, 1)
		first := h.gets(t, "1", 1)
		s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 2")
		h.queue(breaks)
		s.sends(t, h.bot, 1)
		closed, again := h.gets(t, "2", 1), h.gets(t, "2", 1)
		if closed.conn != first.conn || again.conn == closed.conn || again.body != closed.body {
			t.Errorf("got the connections %d, %d and %d, want the second on the first one, and once more on a new one", first.conn, closed.conn, again.conn)
		}
		again.signed(t, h.secret)
		s.stands(t, h.bot, "active, 0 waiting, 0 failed, at 3")
		h.queue(breaks, breaks) // there is one more, not many more
		s.sends(t, h.bot, 1)
		h.gets(t, "3", 1)
		h.gets(t, "3", 1)
		s.stands(t, h.bot, "retrying CONNECTION_LOST, 1 waiting, 0 failed, at 3")
	})
}
