package owner_test

import (
	"testing"
	"time"

	"mybots/delivery"
	"mybots/delivery/chat"
	"mybots/delivery/notice"
)

// scene is a person with bots in many states.
type scene struct {
	*rig
	anna                                  *person
	shop, support, long, arabic, newcomer int64
	// With webhooks: refused with 401, answering 503, the breaker open, delivering, never tried, switched off.
	refused, shaky, broken, steady, untried, off int64
}

func newScene(t *testing.T) *scene {
	t.Helper()
	r := newRigAt(t, -30*time.Minute) // when the webhooks' stories begin
	s := &scene{rig: r, anna: r.owner()}
	s.shop = s.anna.bot("order_helper_bot", "Order helper")
	s.support = s.anna.bot("support_desk_bot", "Support desk")
	s.long = s.anna.bot("announcements_of_the_whole_co_bt", "Announcements of the whole company, its branches and its friends")
	s.arabic = s.anna.bot("talabat_bot", "مساعد الطلبات")
	s.newcomer = s.anna.bot("newcomer_bot", "Newcomer")
	r.must(r.notices.OpenChat(t.Context(), r.space, s.anna.id, notice.English))
	s.webhooks()
	r.notify()
	r.mustPoll(s.shop, "worker-7f3a")
	if _, err := r.poll(s.shop, "laptop-anna", 0); err == nil {
		t.Fatal("the second program: got no error, want a refusal")
	}
	s.failures()
	r.fill(s.support, 37, 18*time.Minute)
	r.fill(s.long, 1, 3*time.Hour)
	r.must(r.chats.SetAccess(t.Context(), s.long, chat.Person{ID: s.anna.id, DisplayName: "anna"}, chat.Left))
	r.db.MustExec(`UPDATE queues SET waiting = 10000, waiting_bytes = 18874368 WHERE bot_id = $1`, s.long)
	r.fill(s.arabic, 4, time.Minute)
	r.db.MustExec(`UPDATE queues SET paused = true WHERE bot_id = $1`, s.arabic)
	s.talk()
	return s
}

// failures are the failed updates of the support bot: 312 of many kinds.
func (s *scene) failures() {
	s.manyFailed(s.support, 312)
	s.db.MustExec(`
UPDATE failed_updates SET attempts = CASE WHEN update_id % 5 IN (0, 1) THEN 5 ELSE 1 END, date = $2::timestamptz - (400 - update_id) * interval '7 minutes',
       type = CASE update_id % 7 WHEN 0 THEN 'callback_query' WHEN 3 THEN 'message_edited' WHEN 5 THEN 'file_status_changed' ELSE 'message' END,
       failed_at = $2::timestamptz - (340 - update_id) * interval '5 minutes', expires_at = $2::timestamptz - (400 - update_id) * interval '7 minutes' + interval '7 days',
       reason = CASE update_id % 5 WHEN 0 THEN 'HTTP_5XX' WHEN 1 THEN 'DELIVERY_OUTCOME_UNKNOWN' WHEN 2 THEN 'HTTP_422'
                ELSE 'The bot can''t read this update: message.chat.id is not a text' END, by_webhook = update_id % 5 IN (0, 1, 2)
 WHERE bot_id = $1`, s.support, s.clock.Now())
	s.db.MustExec(`INSERT INTO chats (bot_id, chat_id, access) VALUES ($1, 551, 'stopped'), ($1, 552, 'left')`, s.support)
	s.db.MustExec(`UPDATE failed_updates SET chat_id = CASE WHEN update_id = 4 THEN 551 WHEN update_id = 9 THEN 552 ELSE 550 END WHERE bot_id = $1`, s.support)
	s.fail(s.arabic, "خطأ: الطلب غير موجود", 2)
}

// webhooks are bots in states of webhook delivery.
func (s *scene) webhooks() {
	for _, b := range []struct {
		id             *int64
		username, name string
		waiting        int
	}{
		{&s.refused, "billing_bot", "Billing", 36}, {&s.shaky, "booking_bot", "Booking", 3}, {&s.broken, "stock_bot", "Stock", 7},
		{&s.steady, "news_bot", "News", 400}, {&s.untried, "quiz_bot", "Quiz", 0}, {&s.off, "old_hook_bot", "Old hook", 2},
	} {
		*b.id = s.anna.bot(b.username, b.name)
		s.anna.webhook(*b.id)
		s.fill(*b.id, b.waiting, 4*time.Minute)
	}
	s.answered(s.broken, statusAnswer(200), 48*time.Millisecond)
	s.answered(s.broken, statusAnswer(422), 31*time.Millisecond)
	s.useUp(s.broken, 15)
	for range 60 {
		s.answered(s.steady, statusAnswer(200), 870*time.Millisecond)
	}
	for range 11 {
		s.answered(s.refused, statusAnswer(200), 52*time.Millisecond)
	}
	s.answered(s.refused, delivery.Answer{Kind: delivery.TimedOut}, 10*time.Second)
	s.clock.advance(6 * time.Second)
	s.answered(s.refused, statusAnswer(401), 27*time.Millisecond)
	s.useUp(s.shaky, 2)
	s.db.MustExec(`UPDATE queues SET hook_allowed = false WHERE bot_id = $1`, s.off)
	s.clock.advance(-s.clock.Shift()) // all that was a while ago; from here on, now is the browser's now
	s.db.MustExec(`UPDATE queues SET due_at = $2::timestamptz + interval '42 seconds' WHERE bot_id = $1`, s.broken, s.clock.Now())
	s.db.MustExec(`UPDATE queues SET due_at = $2::timestamptz + interval '17 seconds' WHERE bot_id = $1`, s.shaky, s.clock.Now())
}

// talk fills the test chat of the shop's bot.
func (s *scene) talk() {
	ctx, by := s.t.Context(), chat.Person{ID: s.anna.id, DisplayName: "anna"}
	s.must(s.chats.Write(ctx, s.shop, by, "Where is my order 1047?"))
	s.anna.reply(s.shop, "It left the warehouse this morning.\nWhat would you like to do?",
		[]chat.Button{{Text: "Follow the parcel", Data: "follow"}, {Text: "Change the address", Data: "address"}}, []chat.Button{{Text: "Talk to a person", Data: "person"}})
	s.must(s.chats.Press(ctx, chat.Bot{ID: s.shop, Username: "order_helper_bot", Name: "Order helper"}, by, 2, 0, 0))
	s.db.MustExec(`UPDATE callbacks SET answered_at = $2, answer = 'It arrives tomorrow before noon.' WHERE bot_id = $1`, s.shop, s.clock.Now())
	s.must(s.chats.Write(ctx, s.shop, by, "Thanks! And the <b>invoice</b>?\nhttps://example.org/a-very-long-address/that-has/no-spaces-in-it/and-goes-on/and-on/and-on?with=a&query=too"))
	s.must(s.chats.Write(ctx, s.shop, by, "Hello?"))
	s.db.MustExec(`UPDATE messages SET state = 'refused', refused = 'QUEUE_FULL' WHERE bot_id = $1 AND message_id = 4`, s.shop)
	s.must(s.chats.SetAccess(ctx, s.shop, by, chat.Stopped))
	s.must(s.chats.SetAccess(ctx, s.shop, by, chat.Allowed))
	s.must(s.chats.Write(ctx, s.shop, by, "My card is 2200 0000 0000 0000"))
	s.must(s.chats.Delete(ctx, s.shop, by, 5))
	s.must(s.chats.Attach(ctx, s.shop, by, "receipt-of-a-very-long-name-without-a-single-space-in-it-1047.pdf"))
	s.must(s.chats.Check(ctx, s.shop, by, 6, chat.Infected))
	s.must(s.chats.Write(ctx, s.shop, by, "It came, but the parcel is open."))
	s.must(s.chats.Edit(ctx, s.shop, by, 7, "It came, but the parcel was open."))
	s.must(s.chats.Attach(ctx, s.shop, by, "parcel.jpg"))
}
