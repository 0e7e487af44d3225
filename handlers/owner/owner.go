// Package owner answers for the owner's pages: their bots, each bot's
// connection, token, settings, failed updates and test chat. All of it wants an owner who is
// signed in; a bot that isn't theirs is a page that doesn't exist (UI-07).
//
// The handlers and their addresses (UI-11):
//
//	GET  /bots                                  Bots
//	GET  /bots/new                              NewBot
//	POST /bots/new                              CreateBot
//	GET  /bots/{id}/token                       Token
//	GET  /bots/{id}/connection                  Connection
//	POST /bots/{id}/connection                  SaveConnection
//	POST /bots/{id}/connection/drop             ConfirmDrop
//	GET  /bots/{id}/connection/secret           Secret
//	POST /bots/{id}/connection/resume           ResumeDelivery
//	POST /bots/{id}/connection/probe            ProbeNow
//	POST /bots/{id}/connection/test             SendTest
//	POST /bots/{id}/connection/check            CheckSignature
//	GET  /bots/{id}/connection/reset            ConfirmReset
//	POST /bots/{id}/connection/reset            Reset
//	GET  /bots/{id}/connection/emergency-reset  ConfirmEmergencyReset
//	POST /bots/{id}/connection/emergency-reset  EmergencyReset
//	POST /bots/{id}/pause                       Pause
//	GET  /bots/{id}/settings                    Settings
//	GET  /bots/{id}/delete                      ConfirmDelete
//	POST /bots/{id}/delete                      Delete
//	GET  /bots/{id}/failed                      Failed
//	POST /bots/{id}/failed/retry                Retry
//	GET  /bots/{id}/failed/skip                 ConfirmSkip
//	POST /bots/{id}/failed/skip                 Skip
//	GET  /bots/{id}/chat                        Chat
//	POST /bots/{id}/chat                        Write
//	POST /bots/{id}/chat/press                  Press
//	POST /bots/{id}/chat/again                  Again
//	POST /bots/{id}/chat/edit                   EditMessage
//	POST /bots/{id}/chat/delete                 DeleteMessage
//	POST /bots/{id}/chat/access                 ChangeAccess
//	POST /bots/{id}/chat/file                   AttachFile
//	POST /bots/{id}/chat/check                  FinishCheck
//	GET  /botfather/{space}                     BotFather
//	POST /botfather/{space}/start               StartBotFather
package owner

import (
	"context"
	"log/slog"
	"net/url"
	"strings"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/queue"
	"mybots/delivery/webhook"
)

// botStore is what the pages ask of package bots.
type botStore interface {
	Owned(ctx context.Context, ownerID, botID int64) (bots.Bot, error)
	Cards(ctx context.Context, ownerID int64) ([]bots.Card, error)
	Create(ctx context.Context, n bots.NewBot) (bots.Bot, delivery.Secret, error)
	Pause(ctx context.Context, by bots.Actor, botID int64, paused bool) error
	Reset(ctx context.Context, by bots.Actor, botID int64) error
	EmergencyReset(ctx context.Context, by bots.Actor, botID int64) (delivery.Secret, error)
	SavePolling(ctx context.Context, by bots.Actor, botID, version int64, drop bool) (cancelled int, err error)
	SaveWebhook(ctx context.Context, by bots.Actor, botID, version int64, url string, drop bool) (secret delivery.Secret, cancelled int, err error)
	ResumeWebhook(ctx context.Context, by bots.Actor, botID int64) error
	ProbeWebhook(ctx context.Context, by bots.Actor, botID int64) error
	WebhookOff(ctx context.Context, botID int64) (bots.Off, error)
	SpaceOff(ctx context.Context, spaceID int64) (bots.Off, error)
	Targets(ctx context.Context, ids []int64) (map[int64]bots.Target, error)
	Replay(ctx context.Context, by bots.Actor, botID int64, ids []int64) ([]delivery.Outcome, error)
	Skip(ctx context.Context, by bots.Actor, botID int64, ids []int64) ([]delivery.Outcome, error)
	Delete(ctx context.Context, by bots.Actor, botID int64, username string) error
	KeepToShow(ctx context.Context, session []byte, botID int64, kind string, secret delivery.Secret) error
	ShowOnce(ctx context.Context, session []byte, botID int64, kind string) (delivery.Secret, error)
}

// queueReader looks at a bot's queue and its failed updates.
type queueReader interface {
	Status(ctx context.Context, botID int64) (queue.Status, error)
	Attempts(ctx context.Context, botID int64, limit int) ([]queue.Attempt, error)
	FailedPage(ctx context.Context, botID int64, f queue.FailedFilter, after int64, limit int) ([]queue.Failed, error)
	FailedGroups(ctx context.Context, botID int64) ([]queue.FailedGroup, error)
	FailedIDs(ctx context.Context, botID int64, f queue.FailedFilter) ([]int64, error)
}

// chatStore is what the test chat asks of package chat.
type chatStore interface {
	Conversation(ctx context.Context, botID, ownerID int64, limit int) (chat.Conversation, error)
	Write(ctx context.Context, botID int64, by chat.Person, text string) error
	Attach(ctx context.Context, botID int64, by chat.Person, name string) error
	Edit(ctx context.Context, botID int64, by chat.Person, messageID int64, text string) error
	Delete(ctx context.Context, botID int64, by chat.Person, messageID int64) error
	Check(ctx context.Context, botID int64, by chat.Person, messageID int64, status string) error
	SetAccess(ctx context.Context, botID int64, by chat.Person, access string) error
	Again(ctx context.Context, botID int64, by chat.Person, messageID int64) error
	AgainDeed(ctx context.Context, botID int64, by chat.Person, deedID int64) error
	Press(ctx context.Context, bot chat.Bot, by chat.Person, messageID int64, row, place int) error
}

// Guard says which addresses webhooks may go to. It returns the address as it is
// saved, or a *webhook.ForbiddenError with the rule that it breaks (W-01).
type Guard interface {
	CheckName(ctx context.Context, address string) (canonical string, err error)
}

// Sender makes one request to a webhook, for a test (M-08).
type Sender interface {
	Send(ctx context.Context, r webhook.Request) delivery.Answer
}

// Options is what the handlers need from the program.
type Options struct {
	Log   *slog.Logger
	Bots  botStore
	Queue queueReader
	Chat  chatStore
	// Notices is the outbox of notices, with the owners' chats that it writes into.
	Notices noticeStore
	// Guard and Sender are for webhooks; without both of them, webhooks are off.
	Guard  Guard
	Sender Sender
	// WebhooksOff: the installation has no webhooks (W-03).
	WebhooksOff bool
	// BaseURL is where programs and browsers find the product; the ready
	// commands name it.
	BaseURL *url.URL
}

// Handler has a method for each page and deed of an owner.
type Handler struct {
	log     *slog.Logger
	bots    botStore
	queue   queueReader
	chat    chatStore
	notices noticeStore
	base    string // without a slash at the end

	guard       Guard
	sender      Sender
	webhooksOff bool
}

// New returns the owner's handlers.
func New(o Options) *Handler {
	return &Handler{
		log: o.Log, bots: o.Bots, queue: o.Queue, chat: o.Chat, notices: o.Notices, base: strings.TrimSuffix(o.BaseURL.String(), "/"),
		guard: o.Guard, sender: o.Sender, webhooksOff: o.WebhooksOff || o.Guard == nil || o.Sender == nil,
	}
}
