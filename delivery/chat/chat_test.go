package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/queue"
	"mybots/migrations/dbtest"
)

type rig struct {
	*chat.Store
	t     *testing.T
	db    *sqlx.DB
	clock *delivery.ShiftedClock
	queue *queue.Queue
	bots  *bots.Store
	bot   chat.Bot
	anna  chat.Person
	epoch int64
}

func newRig(t *testing.T, outbound bool) *rig {
	t.Helper()
	ctx := t.Context()
	r := &rig{t: t, db: dbtest.Open(t), clock: delivery.NewClock(0)}
	r.queue = queue.New(r.db, r.clock, func(int64) {})
	t.Cleanup(r.queue.Close)
	r.Store = chat.New(r.db, r.clock, r.queue, outbound)
	r.bots = bots.New(r.db, r.clock, r.queue, nil)
	space, err := r.bots.AddSpace(ctx, "Space")
	if err != nil {
		t.Fatal(err)
	}
	r.anna.DisplayName = "Anna"
	if r.anna.ID, err = r.bots.AddPerson(ctx, bots.NewPerson{Email: "anna@example.com", SpaceID: space, Role: "owner", Password: "long enough"}); err != nil {
		t.Fatal(err)
	}
	b, _, err := r.bots.Create(ctx, bots.NewBot{SpaceID: space, OwnerID: r.anna.ID, Username: "robot", Name: "Robot"})
	if err != nil {
		t.Fatal(err)
	}
	r.bot = chat.Bot{ID: b.ID, Username: b.Username, Name: b.Name}
	return r
}

// receive takes the bot's updates and confirms them. A second passes, so that
// it can be done any number of times.
func (r *rig) receive() []delivery.Update {
	r.t.Helper()
	r.clock.SetShift(r.clock.Shift() + time.Second)
	got, err := r.queue.Receive(r.t.Context(), r.bot.ID, delivery.Poll{ConsumerID: "a", Limit: 100, HasEpoch: r.epoch > 0, Epoch: r.epoch}, "")
	if err != nil {
		r.t.Fatal(err)
	}
	r.epoch = got.Batch.Lease.Epoch
	confirm := delivery.Poll{ConsumerID: "a", Limit: 100, HasEpoch: true, Epoch: r.epoch, HasOffset: true, Offset: got.Batch.NextOffset}
	if _, err := r.queue.Receive(r.t.Context(), r.bot.ID, confirm, ""); err != nil {
		r.t.Fatal(err)
	}
	return got.Batch.Updates
}

// entries are the messages of anna's test chat.
func (r *rig) entries() ([]chat.Entry, error) {
	c, err := r.Conversation(r.t.Context(), r.bot.ID, r.anna.ID, 10)
	return c.Entries, err
}

func once(bot int64, key string) queue.Once {
	return queue.Once{BotID: bot, Key: key, Fingerprint: []byte(key)}
}

func code(err error) delivery.Code {
	var refusal *delivery.Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

func TestConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	ctx := t.Context()
	if err := r.Write(ctx, r.bot.ID, r.anna, "Hello\r\n<b>there</b>"); err != nil {
		t.Fatal(err)
	}
	updates := r.receive()
	var in chat.Message
	t.Run("UI-09 what the owner writes comes to the bot as a message", func(t *testing.T) {
		if len(updates) != 1 || updates[0].Type != "message" {
			t.Fatalf("got %+v", updates)
		}
		if err := json.Unmarshal(updates[0].Payload, &in); err != nil {
			t.Fatal(err)
		}
		want := chat.Message{MessageID: "1", Chat: chat.Chat{ID: fmt.Sprint(chat.TestChatID(r.anna.ID)), Type: "private"},
			From: chat.Sender{ID: fmt.Sprint(r.anna.ID), DisplayName: "Anna"}, Date: in.Date, Text: "Hello\n<b>there</b>"}
		if fmt.Sprint(in) != fmt.Sprint(want) {
			t.Errorf("got %+v, want %+v", in, want)
		}
		if !strings.Contains(string(updates[0].Payload), "<b>there</b>") {
			t.Errorf("got %s, want the text as it was written", updates[0].Payload)
		}
	})
	chatID := chat.TestChatID(r.anna.ID)
	outgoing := chat.Outgoing{ChatID: chatID, Text: "Sure?", ReplyTo: 1, Buttons: [][]chat.Button{{{Text: "Yes", Data: "yes"}, {Text: "No", Data: "no"}}}}
	t.Run("I-06 sendMessage gives the message back and shows it in the chat, once for a key", func(t *testing.T) {
		first, replayed, err := r.Send(ctx, r.bot, once(r.bot.ID, "k1"), outgoing)
		if err != nil || replayed {
			t.Fatalf("got %v %v", replayed, err)
		}
		again, replayed, err := r.Send(ctx, r.bot, once(r.bot.ID, "k1"), outgoing)
		if err != nil || !replayed || string(again) != string(first) {
			t.Errorf("got %s %v %v for the same key, want %s", again, replayed, err, first)
		}
		var m chat.Message
		if err := json.Unmarshal(first, &m); err != nil || m.MessageID != "2" || m.Text != "Sure?" || !m.From.IsBot || m.ReplyToMessageID != "1" || len(m.Buttons) != 1 {
			t.Errorf("got %s %v", first, err)
		}
		entries, err := r.entries()
		if err != nil || len(entries) != 2 || entries[0].FromBot || !entries[1].FromBot || entries[1].Text != "Sure?" || entries[0].State != "sent" {
			t.Errorf("got %+v %v", entries, err)
		}
	})
	t.Run("I-06 UI-09 a press comes as callback_query, and can be answered", func(t *testing.T) {
		if err := r.Press(ctx, r.bot, r.anna, 2, 0, 1); err != nil {
			t.Fatal(err)
		}
		for _, place := range [][3]int64{{2, 0, 2}, {2, 1, 0}, {2, -1, 0}, {1, 0, 0}, {99, 0, 0}} {
			if err := r.Press(ctx, r.bot, r.anna, place[0], int(place[1]), int(place[2])); !errors.Is(err, delivery.ErrNotFound) {
				t.Errorf("button %v: got %v, want not found", place, err)
			}
		}
		updates := r.receive()
		if len(updates) != 1 || updates[0].Type != "callback_query" {
			t.Fatalf("got %+v", updates)
		}
		var q struct {
			CallbackQueryID string `json:"callback_query_id"`
			Data            string
			Message         chat.Message
			From            chat.Sender
		}
		if err := json.Unmarshal(updates[0].Payload, &q); err != nil || q.Data != "no" || q.Message.Text != "Sure?" || q.From.DisplayName != "Anna" {
			t.Fatalf("got %s %v", updates[0].Payload, err)
		}
		answer, _, err := r.Answer(ctx, r.bot, once(r.bot.ID, "k2"), chat.CallbackAnswer{CallbackQueryID: q.CallbackQueryID, Text: "Noted"})
		if err != nil || !strings.Contains(string(answer), `"message":{"message_id":"2"`) || !strings.Contains(string(answer), `"text":"Noted"`) {
			t.Errorf("got %s %v", answer, err)
		}
		entries, err := r.entries()
		if err != nil || entries[1].Answer != "Noted" {
			t.Errorf("got %+v %v, want the answer under the message", entries, err)
		}
		if _, _, err := r.Answer(ctx, r.bot, once(r.bot.ID, "k3"), chat.CallbackAnswer{CallbackQueryID: "nobody"}); code(err) != delivery.UpdateNotFound {
			t.Errorf("got %v for an unknown press", err)
		}
	})
	t.Run("I-06 CHAT_NOT_FOUND for a chat that no event named; an event makes it known", func(t *testing.T) {
		to := chat.Outgoing{ChatID: 550, Text: "Hi"}
		if _, _, err := r.Send(ctx, r.bot, once(r.bot.ID, "k4"), to); code(err) != delivery.ChatNotFound {
			t.Errorf("got %v", err)
		}
		e := delivery.Event{BotID: r.bot.ID, EventID: "7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10", Type: "message", Date: time.Now(), Payload: []byte(`{"chat":{"id":"550"}}`)}
		if _, err := r.queue.Append(ctx, []delivery.Event{e}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Send(ctx, r.bot, once(r.bot.ID, "k4"), to); err != nil {
			t.Errorf("got %v after the chat wrote", err)
		}
	})
	t.Run("I-05 chat_access_changed is kept, the later of two holds", func(t *testing.T) {
		change := func(id, access string) delivery.Event {
			return delivery.Event{BotID: r.bot.ID, EventID: "7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a" + id, Type: "chat_access_changed", Date: time.Now(),
				Payload: fmt.Appendf(nil, `{"chat":{"id":"550"},"access":%q}`, access)}
		}
		if _, err := r.queue.Append(ctx, []delivery.Event{change("11", "stopped"), change("12", "allowed"), change("13", "blocked"), change("14", "nonsense")}); err != nil {
			t.Fatal(err)
		}
		var access string
		if err := r.db.Get(&access, `SELECT access FROM chats WHERE bot_id = $1 AND chat_id = 550`, r.bot.ID); err != nil || access != "blocked" {
			t.Errorf("got %q %v, want blocked", access, err)
		}
	})
}

func TestRefusedInTheChat(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	ctx := t.Context()
	by := bots.Actor{UserID: r.anna.ID}
	if err := r.bots.Pause(ctx, by, r.bot.ID, true); err != nil {
		t.Fatal(err)
	}
	t.Run("Q-02 UI-09 a refused message stands there as not sent, and can be sent again, once", func(t *testing.T) {
		if err := r.Write(ctx, r.bot.ID, r.anna, "Anybody?"); code(err) != delivery.BotPaused {
			t.Fatalf("got %v", err)
		}
		entries, err := r.entries()
		if err != nil || len(entries) != 1 || entries[0].State != "refused" || entries[0].Refused != delivery.BotPaused {
			t.Fatalf("got %+v %v", entries, err)
		}
		if _, _, err := r.Send(ctx, r.bot, once(r.bot.ID, "k"), chat.Outgoing{ChatID: chat.TestChatID(r.anna.ID), Text: "x"}); code(err) != delivery.BotPaused {
			t.Errorf("got %v for a paused bot's message", err)
		}
		if err := r.bots.Pause(ctx, by, r.bot.ID, false); err != nil {
			t.Fatal(err)
		}
		if err := r.Again(ctx, r.bot.ID, r.anna, entries[0].MessageID); err != nil {
			t.Fatal(err)
		}
		if err := r.Again(ctx, r.bot.ID, r.anna, entries[0].MessageID); !errors.Is(err, delivery.ErrNotFound) {
			t.Errorf("got %v for one that is sent, want not found", err)
		}
		// Its way was cut off after intake had it: the event keeps its id.
		r.db.MustExec(`UPDATE messages SET state = 'sending' WHERE bot_id = $1`, r.bot.ID)
		if err := r.Again(ctx, r.bot.ID, r.anna, entries[0].MessageID); err != nil {
			t.Fatal(err)
		}
		if updates := r.receive(); len(updates) != 1 {
			t.Errorf("got %d updates, want one", len(updates))
		}
	})
	t.Run("I-06 a text that can't be kept is refused", func(t *testing.T) {
		for _, text := range []string{"", " \n", "a\x00b", "a\xff", strings.Repeat("я", 4097)} {
			if err := r.Write(ctx, r.bot.ID, r.anna, text); !errors.Is(err, delivery.ErrInvalid) {
				t.Errorf("%.10q: got %v, want invalid", text, err)
			}
		}
		if err := r.Write(ctx, r.bot.ID, r.anna, strings.Repeat("я", 4096)); err != nil {
			t.Errorf("4096 characters: got %v", err)
		}
	})
}
