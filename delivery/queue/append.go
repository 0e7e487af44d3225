package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"mybots/delivery"
	"mybots/delivery/pg"
)

// Appended is what became of one event.
type Appended struct {
	UpdateID  int64
	Duplicate bool              // the event was there already: UpdateID is the first one (I-03)
	Refusal   *delivery.Refusal // why it wasn't taken; nil when it was
}

// appending is one caller's events on their way through a group.
type appending struct {
	turned  turn
	events  []delivery.Event
	places  []int // of the events among all that the caller brought
	size    int
	results []Appended
}

func (a *appending) weight() (items, bytes int) { return len(a.events), a.size }
func (a *appending) turn() *turn                { return &a.turned }

const (
	// appendWriters is how many write side by side, each for its own bots: two
	// groups with a bot in common would only wait for each other's lock.
	appendWriters = 2
	groupEvents   = 1000    // events of one group at the most
	groupBytes    = 8 << 20 // payload bytes of one group at the most

	writeTime = 20 * time.Second      // of one group's commit at the most
	busyPause = 20 * time.Millisecond // before a second look at queues that are held
)

// Append takes events in, the only way into a queue, and returns one result an
// event, in order. When it returns without an error what it accepted is durable
// (I-02); with delivery.ErrUnavailable it may be or not, and the same events may
// be given again (I-03). Events of one bot keep their order, in one call and in
// calls one after another (I-04). The events' fields must have been checked.
func (q *Queue) Append(ctx context.Context, events []delivery.Event) ([]Appended, error) {
	if len(events) == 0 {
		return nil, nil
	}
	parts := split(events)
	for i, e := range parts {
		if e == nil {
			continue
		}
		if err := q.groups[i].add(e); err != nil {
			return nil, err
		}
	}
	results := make([]Appended, len(events))
	var failed error
	for _, e := range parts {
		if e == nil {
			continue
		}
		if err := e.turned.wait(ctx); err != nil {
			failed = cmp.Or(failed, pg.Mark(err))
			continue
		}
		for i, place := range e.places {
			results[place] = e.results[i]
		}
	}
	if failed != nil {
		return nil, failed
	}
	return results, nil
}

// split gives each writer the events of its bots, in their order.
func split(events []delivery.Event) (parts [appendWriters]*appending) {
	for i, event := range events {
		e := &parts[event.BotID%appendWriters]
		if *e == nil {
			*e = &appending{turned: newTurn()}
		}
		(*e).events = append((*e).events, event)
		(*e).places = append((*e).places, i)
		(*e).size += len(event.Payload)
	}
	return parts
}

const appendSQL = `SELECT id, verdict FROM append_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

// item is one event of a group and where its result belongs.
type item struct {
	event  *delivery.Event
	result *Appended
	entry  *appending
}

// errBusy is what a caller gets whose bot's queue is held by somebody for long.
var errBusy = fmt.Errorf("%w: the queue of a bot is held by a long transaction", delivery.ErrUnavailable)

// write commits a group and rings for the bots that grew. An event that the
// database can't take harms only the caller that brought it: the group is then
// written caller by caller (I-01).
func (q *Queue) write(ctx context.Context, entries []*appending) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	err := q.writeGroup(ctx, entries)
	if err == nil || len(entries) == 1 || errors.Is(err, delivery.ErrUnavailable) {
		for _, e := range entries {
			e.turned.err = cmp.Or(e.turned.err, err)
		}
		return
	}
	for _, e := range entries {
		e.turned.err = nil
		if err := q.writeGroup(ctx, []*appending{e}); err != nil {
			e.turned.err = err
		}
	}
}

// writeGroup writes the group's events. Those for a queue that is known to be
// held for long go by themselves and don't wait for it, so that the others
// needn't either.
func (q *Queue) writeGroup(ctx context.Context, entries []*appending) error {
	var free, held []item
	for _, e := range entries {
		e.results = make([]Appended, len(e.events))
		for i := range e.events {
			it := item{&e.events[i], &e.results[i], e}
			if q.held.has(it.event.BotID) {
				held = append(held, it)
			} else {
				free = append(free, it)
			}
		}
	}
	return errors.Join(q.writeItems(ctx, free, false), q.writeItems(ctx, held, true))
}

func (q *Queue) writeItems(ctx context.Context, items []item, skip bool) error {
	if len(items) == 0 {
		return nil
	}
	// By bot for the function; stable, so that a bot's events keep their order.
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.event.BotID, b.event.BotID) })

	busy, err := q.insert(ctx, items, skip)
	if pg.State(err) == pg.CheckViolation { // no partition takes the event ids of this week
		if err = q.MakeWeeks(ctx); err == nil {
			busy, err = q.insert(ctx, items, skip)
		}
	}
	if pg.State(err) == pg.LockNotAvailable && !skip {
		return q.writeItems(ctx, items, true)
	}
	if len(busy) > 0 && err == nil {
		// A getUpdates call holds a row for a millisecond; who holds it longer is meant.
		time.Sleep(busyPause)
		busy, err = q.insert(ctx, busy, true)
	}
	if skip && err == nil {
		q.settleHeld(items, busy)
	}
	// Ring whether it failed or not: an error can hide a commit.
	for i, it := range items {
		if i == len(items)-1 || items[i+1].event.BotID != it.event.BotID {
			q.ring(it.event.BotID)
		}
	}
	return pg.Mark(err)
}

// settleHeld remembers whose queue is held by somebody for long, and fails the
// callers that brought events for it.
func (q *Queue) settleHeld(items, busy []item) {
	for _, it := range items {
		q.held.set(it.event.BotID, false)
	}
	for _, it := range busy {
		q.held.set(it.event.BotID, true)
		it.entry.turned.err = errBusy
	}
}

// insert writes the items in one statement. With skip it doesn't wait for queues
// that somebody else holds: their items come back, unwritten.
func (q *Queue) insert(ctx context.Context, items []item, skip bool) (busy []item, err error) {
	stmt, err := q.appendGroup.Get(ctx)
	if err != nil {
		return nil, err
	}
	n := len(items)
	bots, events, types := make(pg.Int8s, n), make(pg.UUIDs, n), make(pg.Texts, n)
	dates, chats, messages := make(pg.Times, n), make(pg.Int8s, n), make(pg.Int8s, n)
	payloads, sizes, fresh := make(pg.Byteas, n), make(pg.Int8s, n), make(pg.Bools, n)
	access, callbacks := make(pg.Texts, n), make(pg.Texts, n)
	for i, it := range items {
		e := it.event
		eventID, err := uuid.Parse(e.EventID)
		if err != nil {
			return nil, fmt.Errorf("event id %q: %w", e.EventID, err)
		}
		told := read(e)
		bots[i], events[i], types[i], dates[i] = e.BotID, eventID, e.Type, e.Date
		chats[i], messages[i] = told.chatID, e.MessageID
		payloads[i], sizes[i] = e.Payload, int64(len(e.Payload))
		access[i], callbacks[i] = told.access, told.callback
		fresh[i] = told.chatID > 0 && !q.chats.has(chat{e.BotID, told.chatID})
	}
	now := q.clock.Now()
	rows, err := stmt.QueryContext(ctx, now, Week(now), bots, events, types, dates, chats, messages, payloads, sizes, fresh, access, callbacks, skip)
	if err != nil {
		return nil, fmt.Errorf("append %d events: %w", n, err)
	}
	defer rows.Close()
	i := 0
	for ; rows.Next(); i++ {
		var id int64
		var verdict int
		if err := rows.Scan(&id, &verdict); err != nil {
			return nil, fmt.Errorf("append %d events: %w", n, err)
		}
		if verdict == heldVerdict {
			busy = append(busy, items[i])
			continue
		}
		*items[i].result = judged(id, verdict)
		if fresh[i] && verdict == 0 {
			q.chats.add(chat{bots[i], chats[i]})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("append %d events: %w", n, err)
	}
	if i != n {
		return nil, fmt.Errorf("append %d events: got %d results", n, i)
	}
	return busy, nil
}

// heldVerdict is that for a queue that somebody else holds.
const heldVerdict = 6

// judged turns a verdict of append_events into a result.
func judged(id int64, verdict int) Appended {
	switch verdict {
	case 0:
		return Appended{UpdateID: id}
	case 1:
		return Appended{UpdateID: id, Duplicate: true}
	case 2:
		return Appended{Refusal: delivery.Refuse(delivery.BotNotFound, "there is no bot with this bot_id")}
	case 3:
		return Appended{Refusal: delivery.Refuse(delivery.BotDisabled, "the space of this bot runs no bots at present")}
	case 4:
		return Appended{Refusal: delivery.Refuse(delivery.BotPaused, "the owner has paused this bot")}
	}
	return Appended{Refusal: delivery.Refuse(delivery.QueueFull, "this bot has too many unanswered messages; its queue takes more once its program confirms some")}
}
