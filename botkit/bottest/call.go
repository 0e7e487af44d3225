package bottest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"mybots/botkit"
)

// call does a method; the checks come in the order of A-04.
func (s *Server) call(r *http.Request, method string, fields map[string]any) (string, *refusal) {
	if r.Method != http.MethodPost {
		return "", refuse(botkit.MethodNotAllowed, "only POST", 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revoked || r.Header.Get("Authorization") != "Bearer "+string(Token) {
		return "", refuse(botkit.Unauthorized, "the token is missing, unknown or revoked", 0)
	}
	switch method {
	case "getMe":
		return `{"id":"7","username":"test_bot","display_name":"Test bot","is_bot":true}`, nil
	case "getUpdates":
		return s.getUpdates(r.Context(), fields)
	case "getDeliveryInfo":
		return s.deliveryInfo(), nil
	case "getWebhookInfo":
		return s.webhookInfo(), nil
	case "rejectUpdate":
		return s.keyed(r, method, fields, s.rejectUpdate)
	case "sendMessage":
		return s.keyed(r, method, fields, s.sendMessage)
	case "answerCallbackQuery":
		return s.keyed(r, method, fields, s.answerCallbackQuery)
	}
	return "", refuse(botkit.MethodNotFound, "there is no method "+method, 0)
}

// keyed does a write once for each Idempotency-Key.
func (s *Server) keyed(r *http.Request, method string, fields map[string]any, do func(key string, fields map[string]any) (string, *refusal)) (string, *refusal) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		return "", refuse(botkit.IdempotencyKeyRequired, "this method needs an Idempotency-Key", 0)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return "", invalid(err.Error())
	}
	if old, ok := s.once[key]; ok {
		if old.method != method || old.fields != string(text) {
			return "", refuse(botkit.IdempotencyKeyReused, "the key was used for another call", 0)
		}
		return old.result, nil
	}
	if s.halted != nil {
		return "", s.halted
	}
	result, refused := do(key, fields)
	if refused == nil {
		s.once[key] = stored{method, string(text), result}
		s.tell()
	}
	return result, refused
}

func (s *Server) sendMessage(key string, fields map[string]any) (string, *refusal) {
	var m botkit.Outgoing
	if !into(fields, &m) || m.ChatID == "" || m.Text == "" {
		return "", invalid("chat_id and text are required, as texts")
	}
	if !s.knows(m.ChatID) {
		return "", refuse(botkit.ChatNotFound, "this bot has had no event from this chat", 0)
	}
	s.sent = append(s.sent, Sent{key, m})
	return encode(botkit.Message{
		MessageID: botkit.ID(strconv.Itoa(90000 + len(s.sent))), Chat: botkit.Chat{ID: m.ChatID, Type: "private"},
		From: botkit.Sender{ID: "7", DisplayName: "Test bot", IsBot: true}, Date: time.Now().UTC().Format(time.RFC3339),
		Text: m.Text, ReplyToMessageID: m.ReplyToMessageID, Buttons: m.Buttons,
	}), nil
}

// knows tells whether an update of the chat was ever written.
func (s *Server) knows(chat botkit.ID) bool {
	for _, e := range s.queue {
		if u, err := botkit.ParseUpdate(e.raw); err == nil && u.ChatID() == chat {
			return true
		}
	}
	return false
}

func (s *Server) answerCallbackQuery(key string, fields map[string]any) (string, *refusal) {
	id, _ := fields["callback_query_id"].(string)
	text, _ := fields["text"].(string)
	if id == "" {
		return "", invalid("callback_query_id is required, as a text")
	}
	s.answered = append(s.answered, Answered{key, id, text})
	return encode(map[string]string{"callback_query_id": id, "text": text}), nil
}

func (s *Server) deliveryInfo() string {
	waiting, failed := 0, 0
	for _, e := range s.queue {
		switch {
		case e.failed:
			failed++
		case e.id >= s.position && e.skipped == "":
			waiting++
		}
	}
	mode := "polling"
	if s.webhook {
		mode = "webhook"
	}
	return encode(map[string]any{
		"mode": mode, "pending_update_count": waiting, "failed_update_count": failed, "lease": nil,
		"confirmed_offset": id(s.position), "max_issued_update_id": id(s.issued),
		"limits": map[string]int{"updates": 10000, "bytes": 52428800},
	})
}

func (s *Server) webhookInfo() string {
	state := "off"
	if s.webhook {
		state = "active"
	}
	return encode(map[string]any{"url": "", "state": state})
}

// into reads fields as a struct.
func into(fields map[string]any, to any) bool {
	text, err := json.Marshal(fields)
	return err == nil && json.Unmarshal(text, to) == nil
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("bottest: %v", err)) // these always encode
	}
	return string(text)
}

func id(n int64) botkit.ID { return botkit.ID(strconv.FormatInt(n, 10)) }
