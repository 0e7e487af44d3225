package bottest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mybots/botkit"
)

// CheckInbox tests that an inbox keeps what botkit.Inbox promises. open opens the
// same inbox, empty at first, and again after close has closed it; an inbox that
// isn't durable gives the same value again.
func CheckInbox(t *testing.T, open func(t *testing.T) (inbox botkit.Inbox, closeIt func())) {
	t.Helper()
	in, closeIt := open(t)
	ctx, now := t.Context(), time.Date(2026, 9, 26, 10, 0, 0, 0, time.UTC)
	again := func() {
		closeIt()
		in, closeIt = open(t)
	}
	defer func() { closeIt() }()
	item := func(n int, key string) botkit.Item {
		return botkit.Item{EventID: fmt.Sprint("event-", n), UpdateID: id(int64(n)), Key: key, Raw: fmt.Appendf(nil, `{"n":%d}`, n), Received: now}
	}
	heads := func(at time.Time, limit int) string {
		t.Helper()
		list, err := in.Heads(ctx, at, limit)
		if err != nil {
			t.Fatalf("Heads: %v", err)
		}
		var names []string
		for _, i := range list {
			names = append(names, strings.TrimPrefix(i.EventID, "event-"))
		}
		return strings.Join(names, " ")
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	put := func(want int, p *botkit.Position, items ...botkit.Item) {
		t.Helper()
		if added, err := in.Put(ctx, items, p); err != nil || added != want {
			t.Errorf("Put added %d, %v; want %d, nil", added, err, want)
		}
	}
	settle := func(n int, s botkit.Settlement) {
		t.Helper()
		if err := in.Settle(ctx, fmt.Sprint("event-", n), s); err != nil {
			t.Errorf("Settle event-%d: %v", n, err)
		}
	}
	counts := func(waiting, parked int) {
		t.Helper()
		if c, err := in.Counts(ctx); err != nil || c != (botkit.InboxCounts{Waiting: waiting, Parked: parked}) {
			t.Errorf("Counts: got %+v, %v; want %d waiting, %d parked", c, err, waiting, parked)
		}
	}

	if p, err := in.Load(ctx); err != nil || p != (botkit.Position{}) {
		t.Errorf("Load of an empty inbox: got %+v, %v; want the zero Position", p, err)
	}
	expect("heads of an empty inbox", heads(now, 10), "")
	position := botkit.Position{Bot: "b", Epoch: "7", Offset: "18446744073709551615"}
	put(4, &position, item(1, "a"), item(2, "b"), item(3, "a"), item(4, ""))
	put(1, nil, item(2, "b"), item(5, "c"), item(5, "c"))
	again()
	if p, err := in.Load(ctx); err != nil || p != position {
		t.Errorf("Load: got %+v, %v; want %+v", p, err, position)
	}
	counts(5, 0)
	expect("one of each key, oldest first", heads(now, 10), "1 2 4 5")
	expect("at most limit", heads(now, 2), "1 2")
	list, err := in.Heads(ctx, now, 1)
	if err != nil || len(list) != 1 || list[0].UpdateID != "1" || list[0].Key != "a" || string(list[0].Raw) != `{"n":1}` || !list[0].Received.Equal(now) || list[0].Failures != 0 {
		t.Errorf("the first item: got %+v, %v", list, err)
	}

	// A failed one holds up its key only, and comes again when it is due.
	settle(1, botkit.Settlement{State: botkit.ItemWaiting, Due: now.Add(time.Minute), Note: "why"})
	settle(2, botkit.Settlement{State: botkit.ItemWaiting, Due: now.Add(30 * time.Second)})
	again()
	expect("those due come first, then the soonest", heads(now, 10), "4 5 2 1")
	expect("all due: the oldest first", heads(now.Add(time.Hour), 10), "1 2 4 5")
	if list, err = in.Heads(ctx, now.Add(time.Hour), 1); err != nil || len(list) != 1 || list[0].Failures != 1 || list[0].Note != "why" || !list[0].Due.Equal(now.Add(time.Minute)) {
		t.Errorf("the failed item: got %+v, %v; want 1 failure and when it is due", list, err)
	}

	settle(1, botkit.Settlement{State: botkit.ItemParked, Note: "given up"})
	settle(4, botkit.Settlement{State: botkit.ItemHandled})
	again()
	expect("parked and handled ones are none", heads(now, 10), "3 5 2")
	counts(3, 1)
	put(0, nil, item(1, "a"), item(4, ""))
	if err := in.Settle(ctx, "event-4", botkit.Settlement{State: botkit.ItemHandled}); err == nil {
		t.Error("settled twice: got no error, want one")
	}
	if err := in.Settle(ctx, "no such event", botkit.Settlement{State: botkit.ItemHandled}); err == nil {
		t.Error("settled an unknown event: got no error, want one")
	}
	if err := in.Purge(ctx, now); err != nil {
		t.Errorf("Purge: %v", err)
	}
	put(0, nil, item(4, ""))
	if err := in.Purge(ctx, now.Add(time.Second)); err != nil {
		t.Errorf("Purge: %v", err)
	}
	put(0, nil, item(1, "a")) // parked ones stay
	put(1, nil, item(4, ""))  // handled ones are forgotten
	counts(4, 1)

	var many []botkit.Item
	for n := range 300 {
		many = append(many, item(1000+n, "many"))
	}
	put(300, nil, many...)
	for n := range 300 {
		expect("in order", heads(now, 100)[len("3 5 4 "):][:4], fmt.Sprint(1000+n))
		settle(1000+n, botkit.Settlement{State: botkit.ItemHandled})
	}
	if list, err := in.Heads(ctx, now, 100); err != nil || slices.ContainsFunc(list, func(i botkit.Item) bool { return i.Key == "many" }) {
		t.Errorf("after all: got %d heads, %v", len(list), err)
	}
}
