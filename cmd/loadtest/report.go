package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
	"time"
)

// report is all results. Its JSON is the machine's copy.
type report struct {
	At         time.Time  `json:"at"`
	CPUs       int        `json:"cpus"`
	Go         string     `json:"go"`
	PostgreSQL string     `json:"postgresql"`
	Rounds     int        `json:"rounds"`
	SliceMS    int64      `json:"slice_ms"`
	Seconds    float64    `json:"seconds"`      // of the whole run
	Load       string     `json:"load_average"` // when it began: what else kept the machine busy
	Rates      []rate     `json:"rates"`
	WakeUps    []wakeUp   `json:"wake_ups"`
	HookRates  []hookRate `json:"webhook_rates"`
	HookTimes  []hookTime `json:"webhook_times"`
	Notes      []string   `json:"notes"`
}

// rate is a line of the throughput table: medians over the rounds.
type rate struct {
	Part    string   `json:"part"`
	Name    string   `json:"name"`
	Callers int      `json:"callers"`
	Rate    float64  `json:"events_per_second"`
	P50     float64  `json:"call_p50_ms"`
	P99     float64  `json:"call_p99_ms"`
	Commits *float64 `json:"commits_per_event"` // null: not known
	WAL     float64  `json:"wal_bytes_per_event"`
}

// wakeUp is a line of the wake-up table. Times are in milliseconds.
type wakeUp struct {
	Polls     int     `json:"polls"`
	Rate      int     `json:"events_per_second"`
	Events    int     `json:"events"`
	Lost      int     `json:"lost"`
	Refused   int64   `json:"refused"`     // polls that got 503 or 409 and were tried again
	WakeP50   float64 `json:"wake_p50_ms"` // from intake's answer to the poll's
	WakeP99   float64 `json:"wake_p99_ms"`
	IntakeP50 float64 `json:"intake_p50_ms"` // from sending to intake's answer
	IntakeP99 float64 `json:"intake_p99_ms"`
	WholeP50  float64 `json:"whole_p50_ms"` // from sending to the poll's answer
	WholeP99  float64 `json:"whole_p99_ms"`
	RSSKiB    float64 `json:"rss_kib_per_poll"`
	HeapKiB   float64 `json:"heap_and_stacks_kib_per_poll"`
}

func newReport(p plan) *report {
	return &report{At: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Go: runtime.Version(), Load: loadAverage(),
		Rounds: p.rounds, SliceMS: p.slice.Milliseconds(), Notes: []string{}}
}

func (r *report) add(v variant, s sample) {
	line := rate{v.part, v.name, v.callers, s.rate, milliseconds(s.p50), milliseconds(s.p99), nil, s.wal}
	if s.commits >= 0 {
		line.Commits = &s.commits
	}
	r.Rates = append(r.Rates, line)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// limit is the best rate of the plain limit.
func (r *report) limit() float64 {
	best := 0.0
	for _, line := range r.Rates {
		if line.Part == partPlain {
			best = max(best, line.Rate)
		}
	}
	return best
}

func (r *report) print(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	say := func(format string, args ...any) { fmt.Fprintf(t, format, args...) }
	if r.Load != "" {
		say("The load average was %s when it began; with other work on the machine the ratios are worth little.\n", r.Load)
	}
	say("PostgreSQL %s, fsync and synchronous_commit on, %d CPUs, %s, %.0f s\n", r.PostgreSQL, r.CPUs, r.Go, r.Seconds)
	if len(r.Rates) > 0 {
		say("Medians of %d rounds of %d ms, all lines in turn; payload %d bytes; ratio: to the best plain limit.\n", r.Rounds, r.SliceMS, payloadBytes)
		say("The hot bot changes every %d events: a queue holds 10,000, and what confirms them isn't measured here.\n", hotEvents)
		say("Queues are emptied between slices; the ids for de-duplication stay.\n")
		r.printRates(say)
	}
	if len(r.WakeUps) > 0 {
		r.printWakeUps(say)
	}
	if len(r.HookRates) > 0 {
		r.printHooks(say)
	}
	say("\n")
	for _, a := range r.aims() {
		say("%s\n", a)
	}
	for _, n := range r.Notes {
		say("Note: %s\n", n)
	}
	return t.Flush()
}

func (r *report) printRates(say func(string, ...any)) {
	limit, part := r.limit(), ""
	for _, line := range r.Rates {
		if line.Part != part {
			part = line.Part
			say("\n%s\n", part)
			say("\tcallers\tevents/s\tratio\tp50 ms\tp99 ms\tcommits/event\tWAL bytes/event\t\n")
		}
		commits := "-"
		if line.Commits != nil {
			commits = fmt.Sprintf("%.4f", *line.Commits)
		}
		say("%s\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%s\t%.0f\t\n", line.Name, line.Callers, line.Rate, line.Rate/limit, line.P50, line.P99, commits, line.WAL)
	}
}

func (r *report) printWakeUps(say func(string, ...any)) {
	say("\nwake-up: a poll a bot, real HTTP, mybots serve as a process of its own\n")
	say("polls\tevents/s\tevents\tlost\twake p50 ms\tp99\tintake p50\tp99\tsent to polled p50\tp99\tKiB a poll: RSS\theap+stacks\t\n")
	for _, w := range r.WakeUps {
		say("%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t\n", w.Polls, w.Rate, w.Events, w.Lost,
			w.WakeP50, w.WakeP99, w.IntakeP50, w.IntakeP99, w.WholeP50, w.WholeP99, w.RSSKiB, w.HeapKiB)
	}
	say("Wake: from intake's answer to the poll's. Memory: growth of the server's process after garbage collections.\n")
}

// The aims.
const (
	aimRatio = 3.5  // of intake at 256 callers to the plain limit
	aimWake  = 20.0 // ms, p99 with 1,000 polls
	aimKiB   = 40.0 // of a waiting poll
)

// aims says of each aim whether it is met. It decides nothing: machines are
// shared and noisy.
func (r *report) aims() []string {
	var list []string
	say := func(met bool, format string, args ...any) {
		word := "not met"
		if met {
			word = "met"
		}
		list = append(list, fmt.Sprintf("Aim "+word+": "+format, args...))
	}
	for _, line := range r.Rates {
		if line.Part == partQueue && line.Callers == 256 {
			ratio := line.Rate / r.limit()
			say(ratio >= aimRatio, "intake, %s, 256 callers: %.2f times the plain limit, at least %.1f wanted", line.Name, ratio, aimRatio)
		}
	}
	for _, w := range r.WakeUps {
		if w.Polls <= 1_000 {
			say(w.WakeP99 < aimWake && w.Lost == 0, "wake-up, %d polls: p99 %.1f ms, %d lost, under %.0f ms and none wanted", w.Polls, w.WakeP99, w.Lost, aimWake)
		}
		say(w.RSSKiB < aimKiB, "memory, %d polls: %.1f KiB a poll, under %.0f wanted", w.Polls, w.RSSKiB, aimKiB)
	}
	r.hookAims(say)
	return list
}
