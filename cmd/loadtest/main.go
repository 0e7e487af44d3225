// Command loadtest measures the product against this machine's own limit, all
// in one run and on one PostgreSQL that it starts for itself with fsync on:
//
//   - the plain limit: single-row INSERT commits a second
//   - intake through queue.Append, one event a call, for one hot bot and for 1,000
//   - the same over HTTP, through a child process `mybots serve`
//   - the time from intake's answer to the waiting poll's answer
//   - the memory that a waiting poll takes in the server
//   - delivery to webhooks, beside what the same client reaches with no database
//   - the time from intake to the webhook's endpoint
//
// The rates are those of this machine at this moment; the ratios are the message.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once: the first one gives it back to the system.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "loadtest: "+err.Error())
		os.Exit(1)
	}
}

// plan is how much is measured.
type plan struct {
	rounds int           // of all variants of the throughput part, in turn
	slice  time.Duration // of one variant in one round
	polls  []int         // how many polls wait, one part each
	wake   time.Duration // of one wake-up part
	rate   int           // events a second of the wake-up parts
	hooks  int           // rounds of the webhook parts

	json   string // the file for the machine's copy; "" for none
	dir    string // where the folder of the run goes
	binary string // of mybots; "" to build it
}

func readPlan(args []string, errs io.Writer) (plan, error) {
	p := plan{rounds: 5, slice: 1200 * time.Millisecond, polls: []int{1_000, 10_000}, wake: 15 * time.Second, rate: 200, hooks: 5}
	var quick, chosen bool
	f := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	f.SetOutput(errs)
	f.BoolVar(&quick, "quick", false, "about a minute: fewer and shorter rounds, 1,000 polls only")
	f.IntVar(&p.rounds, "rounds", p.rounds, "rounds of the throughput part; 0 leaves it out")
	f.IntVar(&p.hooks, "hooks", p.hooks, "rounds of the webhook parts; 0 leaves them out")
	f.Func("polls", "how many polls wait, `numbers` with commas between, a part each; none: leave it out (default 1000,10000)", func(v string) error {
		list, err := numbers(v)
		p.polls, chosen = list, true
		return err
	})
	f.StringVar(&p.json, "json", "", "also write the results to this `file`")
	f.StringVar(&p.dir, "dir", os.TempDir(), "where the run's `folder` is made; it must be on a real disk")
	f.StringVar(&p.binary, "mybots", "", "the `binary` to measure; default: build it")
	if err := f.Parse(args); err != nil {
		return plan{}, err
	}
	if f.NArg() > 0 {
		return plan{}, fmt.Errorf("what is %q?", f.Arg(0))
	}
	if quick {
		p.rounds, p.slice, p.wake, p.hooks = min(p.rounds, 2), 400*time.Millisecond, 5*time.Second, min(p.hooks, 1)
		if !chosen {
			p.polls = p.polls[:1]
		}
	}
	return p, nil
}

func numbers(text string) ([]int, error) {
	var list []int
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number of polls", word)
		}
		list = append(list, n)
	}
	return list, nil
}

func run(ctx context.Context, args []string, out, errs io.Writer) (err error) {
	p, err := readPlan(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	uuid.EnableRandPool() // what makes events is to cost little
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(errs, "%5.1fs  "+format+"\n", append([]any{time.Since(began).Seconds()}, args...)...)
	}
	r := newReport(p)
	if err := measure(ctx, p, r, say); err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	if p.json != "" {
		if err := r.write(p.json); err != nil {
			return err
		}
	}
	return r.print(out)
}

// measure runs all parts on one site.
func measure(ctx context.Context, p plan, r *report, say func(string, ...any)) (err error) {
	s, err := newSite(ctx, p, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r.PostgreSQL, r.Notes = s.version, append(r.Notes, s.notes...)
	if p.rounds > 0 {
		if err := s.throughput(ctx, p, r); err != nil {
			return err
		}
	}
	s.stopQueue() // from here on the child alone uses the database
	for _, n := range p.polls {
		if err := s.wakeUp(ctx, p, n, r); err != nil {
			return err
		}
	}
	if p.hooks > 0 {
		if err := s.webhooks(ctx, p, r); err != nil {
			return err
		}
	}
	return ctx.Err()
}
