package notice

import (
	"testing"
	"time"
)

func TestClasses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]Class{
		200: ClassSent, 201: ClassSent, 204: ClassSent, 299: ClassSent,
		401: ClassAuthorisation,
		429: ClassTemporary, 500: ClassTemporary, 502: ClassTemporary, 503: ClassTemporary, 599: ClassTemporary,
		301: ClassPermanent, 302: ClassPermanent, 400: ClassPermanent, 403: ClassPermanent, 404: ClassPermanent, 413: ClassPermanent, 600: ClassPermanent, 199: ClassPermanent,
	} {
		if got := classOf(status); got != want {
			t.Errorf("N-04 %d: got %s, want %s", status, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	temporary := Result{Class: ClassTemporary, Reason: WhyStatus}
	t.Run("N-04 growing pauses, at most 8 tries", func(t *testing.T) {
		t.Parallel()
		now, last := since, time.Duration(0)
		for left := MaxTries - 1; left > 0; left-- {
			o := judge(temporary, left, since, now)
			pause := o.due.Sub(now)
			if o.state != Retrying || pause <= last {
				t.Fatalf("with %d tries left: %s after %s (last %s), want it retried after a longer pause", left, o.state, pause, last)
			}
			now, last = o.due, pause
		}
		if o := judge(temporary, 0, since, now); o.state != Dead || o.reason == "" {
			t.Errorf("after the last try: %+v, want it dead", o)
		}
		if now.Sub(since) >= MaxAge {
			t.Errorf("eight tries take %s, want less than the 24 h", now.Sub(since))
		}
	})
	rows := map[string]struct {
		result Result
		left   int
		age    time.Duration
		want   outcome
	}{
		"N-04 sent":                             {Result{Class: ClassSent}, 7, 0, outcome{state: Sent}},
		"N-04 permanent":                        {Result{Class: ClassPermanent, Reason: "no"}, 7, 0, outcome{state: Dead, reason: "no"}},
		"N-04 authorisation":                    {Result{Class: ClassAuthorisation, Reason: "no"}, 7, 0, outcome{state: Blocked, reason: "no"}},
		"N-04 unknown":                          {Result{Class: ClassUnknown, Reason: "lost"}, 0, 0, outcome{state: Uncertain, reason: "lost"}},
		"N-04 unknown, at the last try too":     {Result{Class: ClassUnknown, Reason: "lost"}, 7, 0, outcome{state: Uncertain, reason: "lost"}},
		"N-04 Retry-After that is longer":       {Result{Class: ClassTemporary, Reason: "429", RetryAfter: time.Minute}, 7, 0, outcome{Retrying, since.Add(time.Minute), "429"}},
		"N-04 Retry-After that is shorter":      {Result{Class: ClassTemporary, Reason: "429", RetryAfter: time.Second}, 7, 0, outcome{Retrying, since.Add(5 * time.Second), "429"}},
		"N-04 the next try just within 24 h":    {temporary, 7, MaxAge - 5*time.Second - 1, outcome{Retrying, since.Add(MaxAge - 1), WhyStatus}},
		"N-04 the next try would be after 24 h": {temporary, 7, MaxAge - 5*time.Second, outcome{state: Dead, reason: "status no_time"}},
	}
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := judge(c.result, c.left, since, since.Add(c.age)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
