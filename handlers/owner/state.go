package owner

import (
	"context"

	"mybots/delivery"
	"mybots/delivery/queue"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
)

// state is how a bot is, in one word. Every page and card takes it from here.
type state string

// The states, the gravest first: where several hold, the first one is said.
const (
	maintenance   state = "maintenance"     // the platform's
	disabled      state = "disabled"        // its space runs no bots
	paused        state = "paused"          // by its owner
	queueFull     state = "queue_full"      // and nobody takes anything
	queueFullBusy state = "queue_full_busy" // a program takes, but doesn't keep up
	receiving     state = "receiving"       // a call waits for updates
	receivingBusy state = "receiving_busy"  // a program holds the lease between two calls
	noReceiver    state = "no_receiver"     // updates wait, nobody asks
	idle          state = "idle"            // nothing waits, nobody asks
)

// The states of a bot that receives by webhook, in the same order; the first
// three above come before them, but for a platform that has switched it off.
const (
	hookOff        state = "hook_off"        // webhooks are off, for the bot or the installation (W-03)
	hookPaused     state = "hook_paused"     // by an answer (W-11)
	hookOpen       state = "hook_open"       // the breaker (W-12)
	hookConnecting state = "hook_connecting" // the last attempt didn't connect
	hookAsked      state = "hook_asked"      // the last answer was 429
	hookRetrying   state = "hook_retrying"   // the last attempt was charged
	hookFull       state = "hook_full"       // it goes out, but not fast enough
	hookDelivering state = "hook_delivering" // something waits
	hookReady      state = "hook_ready"      // nothing waits
	hookNew        state = "hook_new"        // nothing waits, and nothing was delivered yet
)

// stateOf judges a bot's queue at the moment of the look.
func stateOf(s queue.Status) state {
	active := s.Active(s.At)
	switch {
	case s.Maintenance:
		return maintenance
	case s.Disabled:
		return disabled
	case s.Mode == delivery.Webhook && !s.HookAllowed:
		return hookOff
	case s.Paused:
		return paused
	case s.Mode == delivery.Webhook:
		return hookStateOf(s)
	case s.Full() && active:
		return queueFullBusy
	case s.Full():
		return queueFull
	case active && s.Connection.Waiting(s.At):
		return receiving
	case active:
		return receivingBusy
	case s.Waiting > 0:
		return noReceiver
	}
	return idle
}

// code is the state as data-state carries it: what differs only in the advice
// has one code.
func (s state) code() string {
	switch s {
	case queueFullBusy:
		return string(queueFull)
	case receivingBusy:
		return string(receiving)
	case hookOff:
		return delivery.HookDisabled
	case hookPaused:
		return delivery.HookPaused
	case hookOpen:
		return delivery.HookOpen
	case hookConnecting, hookAsked, hookRetrying:
		return delivery.HookRetrying
	case hookFull:
		return string(queueFull)
	case hookDelivering, hookReady, hookNew:
		return delivery.HookActive
	}
	return string(s)
}

func (s state) kind() ui.Kind {
	switch s {
	case receiving, receivingBusy, hookDelivering, hookReady:
		return ui.Fine
	case queueFull, queueFullBusy, noReceiver, hookPaused, hookOpen, hookConnecting, hookFull:
		return ui.Trouble
	case disabled, paused, hookOff:
		return ui.Off
	}
	return ui.Waiting
}

// do is the one thing that an owner would want to do now.
func (s state) do() string {
	switch s {
	case paused:
		return views.DoResume
	case queueFull, noReceiver, idle:
		return views.DoStart
	case receiving, receivingBusy, hookDelivering, hookReady:
		return views.DoWrite
	case hookOff:
		return views.DoSwitch
	case hookPaused:
		return views.DoResumeDelivery
	case hookOpen, hookConnecting:
		return views.DoProbe
	case hookNew:
		return views.DoTest
	}
	return views.DoNothing
}

// say puts the state into the reader's words.
func (s state) say(ctx context.Context, status queue.Status) views.State {
	key := "state." + string(s)
	if s.hook() {
		return s.sayHook(ctx, status)
	}
	v := views.State{Code: s.code(), Kind: s.kind(), Word: words.T(ctx, key+"_word")}
	switch s {
	case paused, noReceiver:
		v.Means = words.N(ctx, key+"_means", status.Waiting)
	default:
		v.Means = words.T(ctx, key+"_means")
	}
	if s != receiving && s != receivingBusy {
		v.Act = words.T(ctx, key+"_act")
	}
	return v
}
