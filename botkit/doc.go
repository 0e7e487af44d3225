// Package botkit is a kit for SMeet bots. It needs the standard library only.
//
// A bot has one Handler, usually a Router, whichever way updates come:
//
//	client, err := botkit.NewClient(address, token)
//	bot, err := botkit.New(client, handler, botkit.Options{ConsumerID: "my-host"})
//	err = bot.Poll(ctx)               // long polling, or
//	http.Handle("/smeet", bot.Webhook(secret)) // by webhook
//
// # What is guaranteed
//
// An update is confirmed only after a good outcome: no route is for it, a
// middleware stopped it on purpose, the handler succeeded, or an error handler
// said Handled. After everything else it comes again: an error that nobody
// handled, a panic, a middleware or an error handler that failed. So nothing is
// lost, and an update can come more than once: give every action a key of the
// event, u.Key("reply"), and it happens once.
//
// With Options.Inbox (package botkit/sqlitestore has one) an update is stored
// first, in one transaction with the position in the queue, confirmed then, and
// handled from there: in order in each chat, chats side by side, each event once
// over repeats, restarts and switches of the delivery mode. One that keeps
// failing is parked, and the health turns red.
//
// # Updates that can't be read
//
// A type that this version doesn't know is no error: its Raw is there, and a
// route for its name gets it. For a known type of another shape a DecodePolicy
// decides: Stop, the default, Retry, Reject, or Skip once the bytes are stored,
// which Quarantine does. The kit never logs what is in an update.
//
// # Health
//
// Bot.Healthy is false when the bot is deaf: no answer for the time of a poll and
// 30 s, stopped, stuck on an update, a store that fails. Bot.HealthHandler gives
// it to whoever watches.
//
// Package botkit/bottest is a server to test a bot against.
package botkit
