package owner

import (
	"context"

	"mybots/delivery"
	"mybots/delivery/queue"
	views "mybots/views/owner"
	"mybots/views/ui"
	"mybots/views/words"
)

// state is how a bot that receives by long polling is, in one word. Every page
// and card takes it from here.
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

// stateOf judges a bot's queue at the moment of the look.
func stateOf(s queue.Status) state {
	active := s.Active(s.At)
	switch {
	case s.Maintenance:
		return maintenance
	case s.Disabled:
		return disabled
	case s.Paused:
		return paused
	case full(s) && active:
		return queueFullBusy
	case full(s):
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

// full tells whether the queue takes no ordinary message any more.
func full(s queue.Status) bool {
	return s.Waiting >= delivery.MaxWaiting || s.WaitingBytes >= delivery.MaxWaitingBytes
}

// code is the state as data-state carries it: what differs only in the advice
// has one code.
func (s state) code() string {
	switch s {
	case queueFullBusy:
		return string(queueFull)
	case receivingBusy:
		return string(receiving)
	}
	return string(s)
}

func (s state) kind() ui.Kind {
	switch s {
	case receiving, receivingBusy:
		return ui.Fine
	case queueFull, queueFullBusy, noReceiver:
		return ui.Trouble
	case disabled, paused:
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
	case receiving, receivingBusy:
		return views.DoWrite
	}
	return views.DoNothing
}

// say puts the state into the reader's words.
func (s state) say(ctx context.Context, status queue.Status) views.State {
	key := "state." + string(s)
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
