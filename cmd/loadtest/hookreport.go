package main

import (
	"fmt"
	"slices"
)

// hookRate is a line of the table of delivery to webhooks: medians over the rounds.
type hookRate struct {
	Name    string   `json:"name"`
	Bots    int      `json:"bots"`
	Updates int      `json:"updates_per_bot"`
	Alone   float64  `json:"client_alone_per_second"` // the same requests with no database
	Rate    float64  `json:"deliveries_per_second"`
	Ratio   float64  `json:"ratio"` // median of the rounds' ratios
	Trips   float64  `json:"transactions_per_delivery"`
	Commits *float64 `json:"commits_per_delivery"` // of those that wrote; null: not known
	WAL     float64  `json:"wal_bytes_per_delivery"`
	Faults  faults   `json:"faults"` // of all rounds
}

// hookTime is a line of the table from intake to the webhook: medians over the
// rounds. Times are in milliseconds, from the beginning of intake's call.
type hookTime struct {
	Side      string  `json:"side"`
	Name      string  `json:"name"`
	Pace      int     `json:"paced_per_second"` // 0: as fast as it goes
	Bots      int     `json:"bots"`
	Producers int     `json:"producers"`
	Events    int     `json:"events"` // of all rounds
	Accepted  float64 `json:"accepted_per_second"`
	Delivered float64 `json:"delivered_per_second"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
	Faults    faults  `json:"faults"` // of all rounds
}

func (f faults) String() string {
	if f.sum() == 0 {
		return "none"
	}
	return fmt.Sprintf("%d inverted, %d repeated, %d at a time, %d lost, %d refused", f.Inverted, f.Repeated, f.Overlaps, f.Lost, f.Refused)
}

func (r *report) printHooks(say func(string, ...any)) {
	say("\ndelivery to webhooks: %d bots, %d updates each, queued beforehand; the client alone sends the same with no database\n", hookBots, hookUpdates)
	say("\tclient alone/s\tdelivered/s\tratio\ttrips/delivery\tcommits/delivery\tWAL bytes/delivery\tfaults\t\n")
	for _, h := range r.HookRates {
		commits := "-"
		if h.Commits != nil {
			commits = fmt.Sprintf("%.4f", *h.Commits)
		}
		say("%s\t%.0f\t%.0f\t%.2f\t%.4f\t%s\t%.0f\t%s\t\n", h.Name, h.Alone, h.Rate, h.Ratio, h.Trips, commits, h.WAL, h.Faults)
	}
	say("\nfrom intake to the webhook: %d bots, %d producers, %d events a round, payload %d bytes; plain HTTP in one process, TLS by mybots serve\n",
		liveBots, liveProducers, liveEvents, hookBytes)
	say("\taccepted/s\tdelivered/s\tcall to webhook p50 ms\tp95\tp99\tfaults\t\n")
	for _, h := range r.HookTimes {
		say("%s, %s\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t%s\t\n", h.Side, h.Name, h.Accepted, h.Delivered, h.P50, h.P95, h.P99, h.Faults)
	}
	say("Ratio: median of the rounds' ratios. Faults of all rounds: out of order, twice, two requests of a bot at a time, lost, 503 of intake.\n")
}

// The aims of webhooks.
const (
	aimHookRatio = 0.7     // of deliveries to the client's own rate
	aimHookRate  = 5_000.0 // events a second from intake to the webhook
	aimHookTime  = 30.0    // ms, p95 of the paced events
	aimPace      = 0.95    // how much of the pace must be kept for that
)

// hookAims says of each aim whether it is met.
func (r *report) hookAims(say func(met bool, format string, args ...any)) {
	for _, h := range r.HookRates {
		say(h.Ratio >= aimHookRatio && h.Faults.sum() == 0, "webhooks, %s: %.2f times the client's own rate, faults: %s; at least %.1f and none wanted", h.Name, h.Ratio, h.Faults, aimHookRatio)
	}
	var sides []string
	best := map[string]float64{}
	for _, h := range r.HookTimes {
		if !slices.Contains(sides, h.Side) {
			sides = append(sides, h.Side)
		}
		if h.Pace == 0 {
			best[h.Side] = max(best[h.Side], h.Delivered)
			continue
		}
		kept := h.Accepted >= aimPace*float64(h.Pace)
		say(kept && h.P95 <= aimHookTime && h.Faults.sum() == 0, "intake to webhook, %s, paced: p95 %.1f ms at %.0f of %d a second, faults: %s; at most %.0f ms and none wanted",
			h.Side, h.P95, h.Accepted, h.Pace, h.Faults, aimHookTime)
	}
	for _, side := range sides {
		say(best[side] >= aimHookRate, "intake to webhook, %s, as fast as it goes: %.0f a second, at least %.0f wanted", side, best[side], aimHookRate)
	}
}
