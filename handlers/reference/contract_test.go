package reference_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
)

// methods are those of A-09, each with fields that pass.
var methods = map[string]string{
	"getMe":               `{}`,
	"getUpdates":          `{"consumer_id":"a","timeout":0}`,
	"rejectUpdate":        `{"update_id":"1","reason":"r","consumer_id":"a","epoch":"1"}`,
	"getDeliveryInfo":     `{}`,
	"getWebhookInfo":      `{}`,
	"sendMessage":         `{"chat_id":"5","text":"x"}`,
	"answerCallbackQuery": `{"callback_query_id":"none"}`,
}

// keyed are those that need an Idempotency-Key, with what they answer to these fields.
var keyed = map[string]string{"rejectUpdate": "CONSUMER_CONFLICT", "sendMessage": "CHAT_NOT_FOUND", "answerCallbackQuery": "UPDATE_NOT_FOUND"}

// stoppable are those that a bot that may not run is refused.
var stoppable = []string{"getUpdates", "rejectUpdate", "sendMessage", "answerCallbackQuery"}

func key() string { return "Idempotency-Key: " + uuid.NewString() }

// One run through the Bot API in which every answer is held against the document;
// at its end the document holds nothing that wasn't answered.
func TestTheDocumentIsWhatIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.envelopes()
	r.updates()
	r.leases()
	r.states()
	r.hooks()
	r.ourFaults()
	t.Run("UI-10 A-08 every method has shown every code that the document gives it", func(t *testing.T) {
		if unseen := r.contract.UnseenCodes(); len(unseen) > 0 {
			t.Errorf("no answer has shown:\n%s", strings.Join(unseen, "\n"))
		}
	})
	t.Run("UI-10 every method, field and header of the document was in an answer", func(t *testing.T) {
		if unseen := r.contract.Unseen(); len(unseen) > 0 {
			t.Errorf("no answer has shown:\n%s", strings.Join(unseen, "\n"))
		}
	})
}

// envelopes gets from every method what all of them may answer.
func (r *rig) envelopes() {
	b := r.bot("envelope_bot")
	stranger := &bot{rig: r, token: "sbt1_unknown"}
	for method, body := range methods {
		stranger.wants("UNAUTHORIZED", method, body)
		b.wants("INVALID_REQUEST", method, "[", key())
		b.wants("REQUEST_TOO_LARGE", method, `{"x":"`+strings.Repeat("x", delivery.MaxRequestBody)+`"}`)
		b.wants("UNSUPPORTED_MEDIA_TYPE", method, body, "Content-Type: text/plain")
		if got := b.send(http.MethodGet, method, ""); got.Error.Code != "METHOD_NOT_ALLOWED" {
			r.t.Errorf("GET %s: got %q", method, got.Error.Code)
		}
	}
	for method, code := range keyed {
		b.wants("IDEMPOTENCY_KEY_REQUIRED", method, methods[method])
		b.wants(code, method, methods[method], key())
	}
	b.wants("METHOD_NOT_FOUND", "setWebhook", "{}")
	b.wants("", "getMe", "{}")
	b.wants("", "getWebhookInfo", "{}") // of long polling
}

// updates brings all types of updates through the test chat, a replay and a skipped
// range, and answers them (U-01, I-06).
func (r *rig) updates() {
	ctx, b := r.t.Context(), r.bot("chat_bot")
	anna := chat.Person{ID: r.owner, DisplayName: "Anna"}
	r.must(r.chats.Write(ctx, b.id, anna, "hello"))
	first := b.poll(`{"consumer_id":"a","timeout":0}`)
	chatID := strconv.FormatInt(chat.TestChatID(r.owner), 10)
	send := `{"chat_id":"` + chatID + `","text":"which?","reply_to_message_id":"1","buttons":[[{"text":"Tea","data":"t"}]]}`
	k := key()
	b.wants("", "sendMessage", send, k)
	if replayed := b.wants("", "sendMessage", send, k); replayed.header.Get("Idempotent-Replayed") != "true" {
		r.t.Errorf("A-06 the same call again: got %v, want the stored answer", replayed.header)
	}
	b.wants("IDEMPOTENCY_KEY_REUSED", "sendMessage", strings.Replace(send, "which?", "what?", 1), k)
	r.must(r.chats.Edit(ctx, b.id, anna, 1, "hello again"))
	r.must(r.chats.Press(ctx, chat.Bot{ID: b.id, Username: b.name, Name: "Order helper"}, anna, 2, 0, 0))
	r.must(r.chats.Attach(ctx, b.id, anna, "invoice.pdf"))
	r.must(r.chats.Check(ctx, b.id, anna, 3, chat.Clean))
	r.must(r.chats.SetAccess(ctx, b.id, anna, chat.Stopped))
	r.must(r.chats.SetAccess(ctx, b.id, anna, chat.Allowed))
	epoch := first.Lease.Epoch
	at := func(offset string) string {
		return `{"consumer_id":"a","epoch":"` + epoch + `","timeout":0,"offset":"` + offset + `"}`
	}
	batch := b.poll(at(first.NextOffset))
	r.must(r.chats.Delete(ctx, b.id, anna, 1))
	types := map[string]string{} // the last id of each
	press := ""
	for _, u := range append(batch.Updates, b.poll(at(first.NextOffset)).Updates...) {
		types[u.Type] = u.UpdateID
		if u.Callback.ID != "" {
			press = u.Callback.ID
		}
	}
	if types["message_deleted"] == "" || press == "" {
		r.t.Fatalf("got the types %v and the press %q, want all types", types, press)
	}
	answerIt := `{"callback_query_id":"` + press + `","text":"Tea it is"}`
	k = key()
	b.wants("", "answerCallbackQuery", answerIt, k)
	b.wants("IDEMPOTENCY_KEY_REUSED", "answerCallbackQuery", `{"callback_query_id":"`+press+`"}`, k)
	b.wants("", "getDeliveryInfo", "{}")
	reject := func(id string) string {
		return `{"update_id":"` + id + `","reason":"can't be read","consumer_id":"a","epoch":"` + epoch + `"}`
	}
	k = key()
	b.wants("", "rejectUpdate", reject(types["file_status_changed"]), k)
	b.wants("IDEMPOTENCY_KEY_REUSED", "rejectUpdate", reject("1"), k)
	b.wants("UPDATE_NOT_FOUND", "rejectUpdate", reject("999"), key())
	id, err := strconv.ParseInt(types["file_status_changed"], 10, 64)
	r.must(err)
	outcomes, err := r.bots.Replay(ctx, bots.Actor{UserID: r.owner}, b.id, []int64{id})
	r.must(err)
	if outcomes[0].Result != delivery.Replayed {
		r.t.Fatalf("replay: got %+v", outcomes)
	}
	if got := b.poll(at(first.NextOffset)); len(got.Skipped) == 0 {
		r.t.Error("P-13 got no skipped range, want the rejected update's")
	}
}

// leases gets the refusals of part 3.
func (r *rig) leases() {
	b := r.bot("lease_bot")
	epoch := b.poll(methods["getUpdates"]).Lease.Epoch
	b.wants("CONSUMER_CONFLICT", "getUpdates", `{"consumer_id":"b","timeout":0}`)
	b.wants("CURSOR_BEHIND", "getUpdates", `{"consumer_id":"a","timeout":0,"offset":"0","epoch":"`+epoch+`"}`)
	b.wants("OFFSET_NOT_ISSUED", "getUpdates", `{"consumer_id":"a","timeout":0,"offset":"9","epoch":"`+epoch+`"}`)
	b.wants("CONSUMER_CONFLICT", "rejectUpdate", `{"update_id":"1","reason":"r","consumer_id":"b","epoch":"`+epoch+`"}`, key())
	r.exec(`UPDATE queues SET tokens = 0, tokens_at = $2 WHERE bot_id = $1`, b.id, r.clock.Now().Add(time.Minute))
	b.wants("RATE_LIMITED", "getUpdates", methods["getUpdates"])
}

// states gets what a bot that may not run is told (P-16).
func (r *rig) states() {
	b := r.bot("state_bot")
	for _, s := range []struct{ code, on, off string }{
		{"BOT_PAUSED", `UPDATE queues SET paused = true WHERE bot_id = %d`, `UPDATE queues SET paused = false WHERE bot_id = %d`},
		{"BOT_DISABLED", `UPDATE queues SET disabled = true WHERE bot_id = %d`, `UPDATE queues SET disabled = false WHERE bot_id = %d`},
		{"MAINTENANCE", `UPDATE platform SET maintenance = true WHERE %d > 0`, `UPDATE platform SET maintenance = false WHERE %d > 0`},
	} {
		r.exec(fmt.Sprintf(s.on, b.id))
		for _, method := range stoppable {
			b.wants(s.code, method, methods[method], key())
		}
		r.exec(fmt.Sprintf(s.off, b.id))
	}
}

// hooks gets what a bot with a webhook is told (P-16, W-14).
func (r *rig) hooks() {
	ctx, b := r.t.Context(), r.bot("hook_bot")
	_, _, err := r.bots.SaveWebhook(ctx, bots.Actor{UserID: r.owner}, b.id, 1, "https://bots.example.org/smeet", false)
	r.must(err)
	for _, method := range []string{"getUpdates", "rejectUpdate"} {
		b.wants("DELIVERY_MODE_CONFLICT", method, methods[method], key())
	}
	_, err = r.queue.Append(ctx, []delivery.Event{{BotID: b.id, EventID: uuid.NewString(), Type: "message", ChatID: 550, Date: r.clock.Now(), Payload: []byte(`{"text":"hi"}`)}})
	r.must(err)
	claimed, err := r.queue.Claim(ctx, []int64{b.id}, 1)
	r.must(err)
	_, _, err = r.queue.Settle(ctx, claimed.Claims[0], delivery.Answer{Kind: delivery.Answered, Status: 503}, time.Millisecond)
	r.must(err)
	b.wants("", "getWebhookInfo", "{}")
	b.wants("", "getDeliveryInfo", "{}")
}

// ourFaults gets the answers to what no program does wrong.
func (r *rig) ourFaults() {
	lost := newRigOn(r.t, unreachable(r.t))
	lost.contract = r.contract
	b := r.bot("last_bot")
	r.exec(`ALTER TABLE bots RENAME TO bots_gone`)
	for method, body := range methods {
		(&bot{rig: lost, token: b.token}).wants("UNAVAILABLE", method, body, key())
		b.wants("INTERNAL", method, body, key())
	}
}
