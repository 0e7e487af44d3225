package botapi

import (
	"encoding/json"
	"unicode/utf8"

	"mybots/delivery"
	"mybots/delivery/chat"
)

// The limits of a message's buttons.
const (
	maxButtonRows  = 10
	maxRowButtons  = 8
	maxButtonText  = 64  // code points
	maxButtonData  = 256 // bytes
	maxAnswerChars = 200 // of answerCallbackQuery's text, code points
	buttonsRule    = `must be rows of buttons like [[{"text":"Yes","data":"yes"}]]: at most 10 rows of 1 to 8, text 1 to 64 characters, data 1 to 256 bytes`
)

// sendMessage writes to a chat (I-06).
func (h *Handler) sendMessage(c call) (answer, error) {
	f := c.fields
	m := chat.Outgoing{ChatID: f.required("chat_id")}
	m.Text, _ = f.text("text")
	if l := utf8.RuneCountInString(m.Text); l < 1 || l > delivery.MaxText || !delivery.Storable(m.Text) {
		f.fail("text", "is required: 1 to 4096 characters, no NUL")
	}
	m.ReplyTo, _ = f.id("reply_to_message_id")
	m.Buttons = f.buttons()
	if f.err != nil {
		return answer{}, f.err
	}
	once, err := c.once(m)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := c.work()
	defer cancel()
	result, replayed, err := h.chats.Send(ctx, chat.Bot{ID: c.bot.ID, Username: c.bot.Username, Name: c.bot.Name}, once, m)
	return answer{result, replayed}, err
}

// buttons reads the rows of buttons, nil where there are none.
func (f *fields) buttons() [][]chat.Button {
	v, ok := f.get("buttons")
	if !ok {
		return nil
	}
	var rows [][]chat.Button
	if err := json.Unmarshal(v, &rows); err != nil || len(rows) > maxButtonRows {
		f.fail("buttons", buttonsRule)
		return nil
	}
	for _, row := range rows {
		good := len(row) >= 1 && len(row) <= maxRowButtons
		for _, b := range row {
			text := utf8.RuneCountInString(b.Text)
			good = good && text >= 1 && text <= maxButtonText && !delivery.HasControl(b.Text) &&
				len(b.Data) >= 1 && len(b.Data) <= maxButtonData && delivery.Storable(b.Data)
		}
		if !good {
			f.fail("buttons", buttonsRule)
			return nil
		}
	}
	return rows
}

// answerCallbackQuery answers the press of a button (I-06).
func (h *Handler) answerCallbackQuery(c call) (answer, error) {
	f := c.fields
	var a chat.CallbackAnswer
	a.CallbackQueryID, _ = f.text("callback_query_id")
	if l := len(a.CallbackQueryID); l < 1 || l > delivery.MaxCallbackID || !delivery.Storable(a.CallbackQueryID) {
		f.fail("callback_query_id", "is required: the callback_query_id of the update, 1 to 255 bytes")
	}
	a.Text, _ = f.text("text")
	if utf8.RuneCountInString(a.Text) > maxAnswerChars || !delivery.Storable(a.Text) {
		f.fail("text", "must be at most 200 characters, no NUL")
	}
	if f.err != nil {
		return answer{}, f.err
	}
	once, err := c.once(a)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := c.work()
	defer cancel()
	result, replayed, err := h.chats.Answer(ctx, chat.Bot{ID: c.bot.ID, Username: c.bot.Username, Name: c.bot.Name}, once, a)
	return answer{result, replayed}, err
}
