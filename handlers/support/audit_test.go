package support_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/audit"
	"mybots/delivery/bots"
	"mybots/delivery/notice"
	"mybots/delivery/pg"
	"mybots/delivery/queue"
	"mybots/web"
)

// deed is one action with what its line must say.
type deed struct {
	action, before, after string
	do                    func() error
}

// deeds are all actions of an owner and of support, on a bot with a webhook that
// has one FAILED update and one that waits.
func (r *rig) deeds(t *testing.T, anna, root *person, bot int64) []deed {
	ctx := t.Context()
	by, sup := bots.Actor{UserID: anna.id, RequestID: "req"}, bots.Actor{UserID: root.id, RequestID: "req"}
	version := func() int64 {
		s, err := r.queue.Status(ctx, bot)
		r.must(err)
		return s.SettingsVersion
	}
	// What prepare's 401 was told with, refused by MAX.
	r.notify(map[string]notice.Sender{notice.MAX: answers{Class: notice.ClassPermanent, Code: 404}})
	var dead int64
	r.must(r.db.Get(&dead, `SELECT notice_id FROM notices WHERE kind = 'paused' AND state = 'dead'`))
	failed := func() []int64 {
		var ids []int64
		r.must(r.db.Select(&ids, `SELECT update_id FROM failed_updates WHERE bot_id = $1`, bot))
		return ids
	}
	return []deed{
		{"create", "", "username=another_bot", func() error {
			_, _, err := r.bots.Create(ctx, bots.NewBot{SpaceID: r.space, OwnerID: anna.id, Username: "another_bot", Name: "Another", By: by})
			return err
		}},
		{"pause", "paused=off", "paused=on", func() error { return r.bots.Pause(ctx, by, bot, true) }},
		{"resume", "paused=on", "paused=off", func() error { return r.bots.Pause(ctx, by, bot, false) }},
		{"reset_connection", "lease=none", "lease=none", func() error { return r.bots.Reset(ctx, by, bot) }},
		{"emergency_reset", "lease=none token=old", "lease=none token=new", func() error { _, err := r.bots.EmergencyReset(ctx, by, bot); return err }},
		{"resume_delivery", "delivery_paused=HTTP_401", "delivery_paused=no", func() error { return r.bots.ResumeWebhook(ctx, by, bot) }},
		{"probe_now", "breaker=0", "probe=asked", func() error { return r.bots.ProbeWebhook(ctx, by, bot) }},
		{"save_connection", "mode=webhook version=2 host=bots.example.org", "mode=polling version=3", func() error {
			_, err := r.bots.SavePolling(ctx, by, bot, version(), false)
			return err
		}},
		{"save_connection", "mode=polling version=3", "mode=webhook version=4 host=other.example.org", func() error {
			_, _, err := r.bots.SaveWebhook(ctx, by, bot, version(), "https://other.example.org/x?token=TOKEN-MARKER", false)
			return err
		}},
		{"replay", "failed=1", "chosen=1", func() error { _, err := r.bots.Replay(ctx, by, bot, failed()); return err }},
		{"skip", "failed=0", "chosen=1", func() error { _, err := r.bots.Skip(ctx, by, bot, []int64{1}); return err }},
		{"webhook_off", "webhook_allowed=on", "webhook_allowed=off", func() error { return r.bots.AllowWebhook(ctx, sup, bot, false, "why") }},
		{"webhook_on", "webhook_allowed=off", "webhook_allowed=on", func() error { return r.bots.AllowWebhook(ctx, sup, bot, true, "why") }},
		{"space_off", "running=on", "running=off", func() error { return r.bots.RunSpace(ctx, sup, r.space, false, "why") }},
		{"space_on", "running=off", "running=on", func() error { return r.bots.RunSpace(ctx, sup, r.space, true, "why") }},
		{"maintenance_on", "maintenance=off", "maintenance=on", func() error { return r.bots.Maintain(ctx, sup, queue.Maintenance{On: true, Text: "hi"}, "why") }},
		{"maintenance_off", "maintenance=on", "maintenance=off", func() error { return r.bots.Maintain(ctx, sup, queue.Maintenance{}, "why") }},
		{"notices_off", "sending=on", "sending=off", func() error { return r.notices.StopRoute(ctx, notice.MAX, r.acting(sup)) }},
		{"notices_on", "sending=off", "sending=on portion=10", func() error { return r.notices.ResumeRoute(ctx, notice.MAX, 10, r.acting(sup)) }},
		{"notice_retry", "state=dead", "state=queued", func() error { return r.notices.Retry(ctx, dead, r.acting(sup)) }},
		{"notice_readdress", "state=queued", "state=queued", func() error { return r.notices.Readdress(ctx, dead, notice.MAX, "5", r.acting(sup)) }},
		{"notice_close", "state=queued", "state=stale", func() error { return r.notices.Close(ctx, dead, r.acting(sup)) }},
		{"max_unlink", "", "", func() error { return r.notices.Unlink(ctx, notice.Actor{UserID: anna.id, RequestID: "req"}) }},
		{"unmask", "masked", "shown", func() error { _, _, err := r.bots.Unmask(ctx, sup, bot, 2, "why"); return err }},
		{"delete", "username=robot_1 waiting=2 failed=0", "deleted", func() error { return r.bots.Delete(ctx, by, bot, "robot_1") }},
	}
}

// acting is what a deed about notices carries.
func (r *rig) acting(by bots.Actor) notice.Within {
	within, err := r.bots.ActingFor(by, "why")
	r.must(err)
	return within
}

// prepare makes the bot that deeds want.
func (r *rig) prepare(anna *person) int64 {
	r.t.Helper()
	bot := anna.bot("Order helper")
	r.db.MustExec(`INSERT INTO max_links (user_id, max_user_id, linked_at) VALUES ($1, 987654321, $2)`, anna.id, r.clock.Now())
	anna.hook(bot, "https://bots.example.org/hook?token=TOKEN-MARKER")
	r.append(bot, `{"text":"PAYLOAD-MARKER"}`)
	r.append(bot, `{"text":"PAYLOAD-MARKER"}`)
	r.settle(bot, delivery.Answer{Kind: delivery.Answered, Status: 422})
	r.settle(bot, delivery.Answer{Kind: delivery.Answered, Status: 401})
	return bot
}

func TestEachDeedLeavesOneLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, root := r.signedIn("anna", web.Owner), r.signedIn("root", web.Admin)
	bot := r.prepare(anna)
	last := func() int64 {
		var id int64
		r.must(r.db.Get(&id, `SELECT coalesce(max(audit_id), 0) FROM audit`))
		return id
	}
	for _, d := range r.deeds(t, anna, root, bot) {
		t.Run("UI-06 "+d.action, func(t *testing.T) {
			before := last()
			if err := d.do(); err != nil {
				t.Fatalf("got %v, want no error", err)
			}
			lines, err := audit.Read(t.Context(), r.db, audit.Filter{}, 0, 10)
			r.must(err)
			var fresh []audit.Line
			for _, l := range lines {
				if l.ID > before {
					fresh = append(fresh, l)
				}
			}
			if len(fresh) != 1 {
				t.Fatalf("got %d lines, want one", len(fresh))
			}
			if l := fresh[0]; l.Action != d.action || l.Before != d.before || l.After != d.after || l.RequestID != "req" || l.UserID == 0 {
				t.Errorf("got %+v, want %s from %q to %q", l, d.action, d.before, d.after)
			}
		})
	}
	t.Run("UI-06 no secret, content or query is in any line", func(t *testing.T) {
		if n := r.count(`SELECT count(*) FROM audit a WHERE a::text ~ 'sbt1_|swh1_|sik1_|MARKER|\?token'`); n != 0 {
			t.Errorf("got %d lines with one, want none", n)
		}
	})
	t.Run("UI-06 lines can't be changed or removed", func(t *testing.T) {
		all := r.count(`SELECT count(*) FROM audit`)
		for _, statement := range []string{`UPDATE audit SET detail = 'x'`, `DELETE FROM audit`, `TRUNCATE audit`, `DELETE FROM audit WHERE false`} {
			if _, err := r.db.Exec(statement); pg.State(err) != "42501" {
				t.Errorf("%s: got %v, want insufficient_privilege", statement, err)
			}
		}
		if n := r.count(`SELECT count(*) FROM audit`); n != all {
			t.Errorf("got %d lines, want %d", n, all)
		}
	})
}

// A deed that is undone leaves no line: here the database refuses the change
// itself, after the line was written.
func TestUndoneDeedsLeaveNoLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, root := r.signedIn("anna", web.Owner), r.signedIn("root", web.Admin)
	bot := r.prepare(anna)
	list := r.deeds(t, anna, root, bot)
	r.db.MustExec(`
CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
CREATE TRIGGER no BEFORE INSERT OR UPDATE ON queues FOR EACH ROW EXECUTE FUNCTION no();
CREATE TRIGGER no BEFORE UPDATE ON spaces FOR EACH ROW EXECUTE FUNCTION no();
CREATE TRIGGER no BEFORE UPDATE ON notices FOR EACH ROW EXECUTE FUNCTION no();
CREATE TRIGGER no BEFORE UPDATE ON notice_routes FOR EACH ROW EXECUTE FUNCTION no();
CREATE TRIGGER no BEFORE DELETE ON max_links FOR EACH ROW EXECUTE FUNCTION no();
CREATE TRIGGER no BEFORE UPDATE ON platform FOR EACH ROW EXECUTE FUNCTION no();`)
	all := r.count(`SELECT count(*) FROM audit`)
	for _, d := range list {
		if d.action == "unmask" {
			continue // it changes nothing but the log
		}
		t.Run("UI-06 "+d.action, func(t *testing.T) {
			if err := d.do(); err == nil {
				t.Error("got no error, want the database's")
			}
			if n := r.count(`SELECT count(*) FROM audit`); n != all {
				t.Errorf("got %d lines more, want none", n-all)
			}
		})
	}
	t.Run("UI-06 unmask", func(t *testing.T) {
		no := errors.New("no")
		_, payload, err := r.queue.Reveal(t.Context(), bot, 2, func(context.Context, *sqlx.Tx, queue.Kept) error { return no })
		if !errors.Is(err, no) || payload != nil {
			t.Errorf("got %q, %v: without its line nothing may be shown", payload, err)
		}
	})
}

func TestUnmask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, sam, udo := r.signedIn("anna", web.Owner), r.signedIn("sam", web.Support), r.signedIn("udo", web.Support, web.Unmask)
	bot := anna.bot("Order helper")
	r.fail(bot, `{"text":"MARKER failed","n":12345,"list":[{"deep":"MARKER deep"}]}`, "MARKER reason")
	r.append(bot, `{"text":"MARKER waits"}`)

	t.Run("UI-06 the shape is there, the content isn't", func(t *testing.T) {
		for _, p := range []*person{sam, udo} {
			p.get(here(bot, "/updates/1")).wants(http.StatusOK).shows(`"text": "…11–50"`, `"n": #4–9`, `"deep"`, "••••••••78").lacks("MARKER", "5512345678")
		}
		sam.get(here(bot, "/updates/1")).shows("needs the right")
	})
	t.Run("UI-06 without a reason nothing is shown", func(t *testing.T) {
		for _, reason := range []string{"", "   ", "\u200b", "\u200b\u00a0\u2060", strings.Repeat("x", 501)} {
			udo.post(here(bot, "/updates/1/unmask"), form("reason", reason)).wants(http.StatusBadRequest).shows("REASON_NEEDED").lacks("MARKER")
		}
		if n := len(r.lines("unmask")); n != 0 {
			t.Errorf("got %d lines, want none", n)
		}
	})
	t.Run("UI-06 with one it is shown in that answer alone, and written down", func(t *testing.T) {
		got := udo.post(here(bot, "/updates/1/unmask"), form("reason", "The owner asked on 1 December")).wants(http.StatusOK).shows("MARKER failed", "MARKER deep")
		if c := got.header.Get("Cache-Control"); c != "no-store" {
			t.Errorf("got Cache-Control %q, want no-store", c)
		}
		r.oneLine(t, "unmask", "masked", "shown", "The owner asked on 1 December", udo, web.Support)
		udo.get(here(bot, "/updates/1")).wants(http.StatusOK).lacks("MARKER")
		udo.get(here(bot, "/updates/1/unmask")).wants(http.StatusMethodNotAllowed)
		udo.get("/support/audit").wants(http.StatusOK).shows("The owner asked on 1 December", "udo@example.org", "update=1 failed type=message").lacks("MARKER")
	})
	t.Run("UI-06 what waits can be looked into, what is gone can't", func(t *testing.T) {
		udo.post(here(bot, "/updates/2/unmask"), form("reason", "x")).wants(http.StatusOK).shows("MARKER waits")
		for _, path := range []string{"/updates/3", "/updates/abc"} {
			udo.get(here(bot, path)).wants(http.StatusNotFound)
			udo.post(here(bot, path+"/unmask"), form("reason", "x")).wants(http.StatusNotFound)
		}
		other := anna.bot("Other")
		udo.post(here(other, "/updates/1/unmask"), form("reason", "x")).wants(http.StatusNotFound)
	})
}

// No page of support, line of the log or line of the audit log has what was planted.
func TestPlantedMarkers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	anna, root := r.signedIn("anna", web.Owner), r.signedIn("root", web.Admin)
	bot, token, err := r.bots.Create(t.Context(), bots.NewBot{SpaceID: r.space, OwnerID: anna.id, Username: "planted_bot", Name: "Planted"})
	r.must(err)
	r.fail(bot.ID, `{"text":"PAYLOAD-MARKER","from":{"name":"PAYLOAD-MARKER"}}`, "REASON-MARKER")
	secret := anna.hook(bot.ID, "https://bots.example.org/PATH-MARKER?token=QUERY-MARKER")
	r.append(bot.ID, `{"text":"PAYLOAD-MARKER"}`)
	r.append(bot.ID, `{"text":"PAYLOAD-MARKER"}`)
	r.settle(bot.ID, delivery.Answer{Kind: delivery.Answered, Status: 422})
	r.settle(bot.ID, delivery.Answer{Kind: delivery.Answered, Status: 500})
	planted := []string{"PAYLOAD-MARKER", "REASON-MARKER", "QUERY-MARKER", "PATH-MARKER", "?token=", string(token), string(secret), "5512345678"}
	id := bot.ID
	for _, path := range []string{
		"/support", "/support?q=planted", "/support?q=" + itoa(id), "/support/audit", "/support/audit?bot=" + itoa(id), here(id, ""), here(id, "/updates"), here(id, "/updates?list=failed"),
		here(id, "/updates/1"), here(id, "/updates/2"), here(id, "/updates/3"), here(id, "/webhook"), "/support/spaces/" + itoa(r.space) + "/running", "/support/maintenance",
	} {
		t.Run("N-09 UI-06 "+path, func(t *testing.T) { root.get(path).wants(http.StatusOK).lacks(planted...) })
	}
	root.post(here(id, "/updates/1/unmask"), form("reason", "look")).wants(http.StatusOK)
	root.post(here(id, "/updates/1/unmask"), form("reason", "")).wants(http.StatusBadRequest).lacks(planted...)
	root.get("/support?q=" + string(token)).wants(http.StatusOK)
	root.post(here(id, "/webhook"), form("allowed", "off", "reason", string(secret))).wants(http.StatusUnprocessableEntity)
	t.Run("N-09 the log", func(t *testing.T) {
		for _, p := range planted {
			if text := r.log.String(); strings.Contains(text, p) {
				t.Errorf("got %q in the log, want none", p)
			}
		}
	})
	t.Run("N-09 the audit log", func(t *testing.T) {
		for _, p := range planted {
			if n := r.count(`SELECT count(*) FROM audit a WHERE position($1 IN a::text) > 0`, p); n != 0 {
				t.Errorf("got %q in %d lines, want none", p, n)
			}
		}
	})
}
