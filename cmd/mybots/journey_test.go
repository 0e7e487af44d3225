package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"mybots/browsertest"
)

// reader is who makes the journey: how their browser is, and what they must read.
type reader struct {
	username string // of the bot that they make
	setup    browsertest.Setup
	language string
	signIn   string // on the sign-in button
	keep     string // on the Connection screen's button, its number in the language's own plural
	noTwice  string // on the token's page when it is opened again
}

// TestJourney is the way of somebody new, in a real browser, with the real
// server and the real Python example: from the sign-in to the bot's answer.
func TestJourney(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve(t)
	english := reader{username: "english_bot", language: "en", signIn: "Sign in", keep: "Save and keep 2 waiting updates", noTwice: "The token isn't shown again"}
	plain := english
	plain.username, plain.setup = "plain_bot", browsertest.Setup{NoScript: true, Width: 360}
	russian := reader{
		username: "russian_bot", setup: browsertest.Setup{Language: "ru", Zone: "Europe/Moscow", Dark: true},
		language: "ru", signIn: "Войти", keep: "Сохранить и оставить 2 ожидающих события", noTwice: "Токен больше не показывается",
	}
	tests := map[string]reader{
		"UI-02 UI-09 UI-11 P-02 from the sign-in to the bot's answer": english,
		"UI-01 the same without JavaScript, on a small phone":         plain,
		"UI-01 UI-05 the same in Russian, in Moscow":                  russian,
	}
	for name, who := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &journey{t: t, s: s, who: who, tab: browsertest.Open(t, who.setup)}
			j.signIn()
			j.create()
			j.copyToken()
			j.writeAhead()
			j.startBot()
			j.talk()
			j.press()
			j.times()
			j.leave()
		})
	}
}

// journey is one reader on their way.
type journey struct {
	t   *testing.T
	s   *server
	tab *browsertest.Tab
	who reader
	bot *bot
}

func (j *journey) signIn() {
	j.t.Helper()
	j.tab.Go(j.s.base + "/bots")
	j.at("/login?next=%2Fbots")
	j.reads("main form button[type=submit]", j.who.signIn)
	if got := browsertest.Eval[string](j.tab, "document.documentElement.lang"); got != j.who.language {
		j.t.Errorf("the page's language: got %q, want %q", got, j.who.language)
	}
	j.tab.Type("#email", ownerMail)
	j.tab.Type("#password", ownerPass)
	j.tab.Leave("main form button[type=submit]")
	j.at("/bots")
}

func (j *journey) create() {
	j.t.Helper()
	j.tab.Leave(`main a[href="/bots/new"]`)
	j.tab.Type("#name", "Order helper")
	j.tab.Type("#username", j.who.username)
	j.tab.Leave("main form button[type=submit]")
	j.bot = &bot{w: j.s.w, name: j.who.username}
	if _, err := fmt.Sscanf(j.tab.Path(), "/bots/%s", &j.bot.id); err != nil {
		j.t.Fatalf("UI-02: the page after creating: got %s, want the token's: %v", j.tab.Path(), err)
	}
	j.bot.id = strings.TrimSuffix(j.bot.id, "/token")
	j.at("/bots/" + j.bot.id + "/token")
}

// copyToken takes the token from the page and sees to it that this was the only look.
func (j *journey) copyToken() {
	j.t.Helper()
	j.bot.token = browsertest.Eval[string](j.tab, `document.querySelector("#token").value`)
	if !strings.HasPrefix(j.bot.token, "sbt1_") {
		j.t.Fatalf("UI-02: got token %q, want sbt1_…", j.bot.token)
	}
	j.s.w.secret(j.bot.token)
	j.s.ok(j.t, j.bot, "getMe", "{}")
	j.tab.Do(chromedp.Reload())
	j.at("/bots/" + j.bot.id + "/token")
	j.reads("[data-testid=token-gone] h2", j.who.noTwice)
	if html := browsertest.Eval[string](j.tab, "document.documentElement.outerHTML"); strings.Contains(html, j.bot.token) {
		j.t.Error("UI-02: the page still holds the token after reloading")
	}
}

// writeAhead writes two messages while no program runs: they wait.
func (j *journey) writeAhead() {
	j.t.Helper()
	j.tab.Leave(".tabs a[href$='/chat']")
	j.send("first")
	j.send("second")
	j.tab.Leave(".tabs a[href$='/connection']")
	j.reads("#mode-form button[value=keep]", j.who.keep)
}

// startBot starts the Python example with the token that the page gave.
func (j *journey) startBot() {
	j.t.Helper()
	script, err := filepath.Abs("../../examples/python/echo_bot.py")
	if err != nil {
		j.t.Fatal(err)
	}
	var said lockedBuffer
	cmd := exec.Command("python3", "-B", script)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "SMEET_URL=" + j.s.base, "SMEET_TOKEN=" + j.bot.token,
		"SMEET_CONSUMER_ID=journey", "SMEET_STATE=" + filepath.Join(j.t.TempDir(), "state.json"),
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.WaitDelay = &said, &said, childAttr(), 5*time.Second
	if err := cmd.Start(); err != nil {
		j.t.Fatalf("start the echo bot: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process
	j.t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			j.t.Errorf("the echo bot ended by itself: %v", err)
		} else if err := receive(j.t, 20*time.Second, "the echo bot ends after SIGTERM", ended); err != nil {
			j.t.Errorf("the echo bot: got %v, want exit code 0", err)
		}
		j.s.w.checkSecrets(j.t, "the echo bot's log", said.String())
		if j.t.Failed() {
			j.t.Logf("the echo bot said:\n%s", said.String())
		}
	})
	j.awaitPoll()
}

// awaitPoll waits until the bot waits for updates and has only just begun to.
func (j *journey) awaitPoll() {
	j.t.Helper()
	eventually(j.t, 40*time.Second, "the bot waits for updates", func() bool {
		lease := j.s.info(j.t, j.bot).Lease
		// 25 s of waiting and 60 s of lease: it began less than 5 s ago.
		return lease != nil && lease.Waiting && time.Until(lease.ExpiresAt) > 80*time.Second
	})
}

// talk writes a message and finds the bot's answer on the page: by itself where
// the page has scripts, else after Refresh.
func (j *journey) talk() {
	j.t.Helper()
	j.tab.Leave(".tabs a[href$='/chat']")
	j.at("/bots/" + j.bot.id + "/chat")
	browsertest.Eval[int](j.tab, "window.same = 1")
	const text = "Привет, bot! 👋"
	const answers = `[...document.querySelectorAll(".from-bot .text")].map(e => e.innerText).join("|")`
	j.answered(answers, "first|second") // what waited, in order
	j.awaitPoll()
	began := time.Now()
	j.send(text)
	j.answered(answers, "first|second|"+text)
	if took := time.Since(began); took > 18*time.Second {
		j.t.Errorf("P-02: the answer took %v, want it long before the waiting poll's end", took)
	}
}

// press presses a button under the bot's message (UI-09).
func (j *journey) press() {
	j.t.Helper()
	j.send("/buttons")
	j.answered(`[...document.querySelectorAll(".from-bot .keys button")].map(e => e.innerText).join("|")`, "Yes|No")
	if j.who.setup.NoScript {
		j.tab.Leave(".from-bot .keys button")
	} else {
		j.tab.Click(".from-bot .keys button")
	}
	j.answered(`[...document.querySelectorAll(".from-bot .text")].pop().innerText`, "You chose: yes")
	j.reads(".from-bot .answer bdi", "Got it")
	if same := browsertest.Eval[bool](j.tab, "window.same === 1"); same == j.who.setup.NoScript {
		j.t.Errorf("the page stayed the same: got %v, want %v", same, !j.who.setup.NoScript)
	}
}

func (j *journey) send(text string) {
	j.t.Helper()
	j.tab.Type("#text", text)
	if j.who.setup.NoScript {
		j.tab.Leave("#compose button[type=submit]")
		return
	}
	j.tab.Click("#compose button[type=submit]")
	j.tab.Until(`document.querySelector("#text").value === ""`)
}

// answered waits until the expression has the value in the page.
func (j *journey) answered(expression, want string) {
	j.t.Helper()
	if !j.who.setup.NoScript {
		j.tab.Until(fmt.Sprintf("(%s) === %q", expression, want))
		return
	}
	// The echo bot confirms an update only after it has answered it.
	eventually(j.t, 30*time.Second, "the bot has answered", func() bool { return j.s.info(j.t, j.bot).Pending == 0 })
	j.tab.Leave("#compose a")
	if got := browsertest.Eval[string](j.tab, expression); got != want {
		j.t.Errorf("UI-09: after Refresh: got %q, want %q", got, want)
	}
}

// times checks that a time is in the reader's zone and its exact UTC on hover (UI-05).
func (j *journey) times() {
	j.t.Helper()
	j.tab.Leave(".tabs a[href$='/settings']")
	const one = `document.querySelector("main time")`
	exact := browsertest.Eval[string](j.tab, one+".title")
	at, err := time.Parse("2006-01-02 15:04:05 UTC", exact)
	if err != nil {
		j.t.Fatalf("UI-05: on hover: got %q, want the exact UTC: %v", exact, err)
	}
	got := browsertest.Eval[string](j.tab, one+".innerText")
	switch {
	case j.who.setup.NoScript && got != exact:
		j.t.Errorf("UI-05: without JavaScript: got %q, want %q", got, exact)
	case j.who.language == "ru":
		if want := at.Add(3*time.Hour).Format("15:04:05") + " GMT+3"; !strings.Contains(got, want) || !strings.Contains(got, "назад") && !strings.Contains(got, "сейчас") {
			j.t.Errorf("UI-05: in Moscow: got %q, want how long ago and %q", got, want)
		}
	}
}

// leave signs out; the page is closed then (UI-11).
func (j *journey) leave() {
	j.t.Helper()
	j.tab.Fits()
	j.tab.Leave(`form[action="/logout"] button`)
	j.tab.Go(j.s.base + "/bots/" + j.bot.id + "/chat")
	if got := j.tab.Path(); !strings.HasPrefix(got, "/login") {
		j.t.Errorf("after signing out: got %s, want the sign-in", got)
	}
}

func (j *journey) at(path string) {
	j.t.Helper()
	if got := j.tab.Path(); got != path {
		j.t.Fatalf("the address: got %s, want %s", got, path)
	}
}

func (j *journey) reads(css, want string) {
	j.t.Helper()
	if got := strings.TrimSpace(j.tab.Text(css)); got != want {
		j.t.Errorf("%s: got %q, want %q", css, got, want)
	}
}

// lockedBuffer takes what a process says.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
