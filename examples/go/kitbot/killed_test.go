package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

// The test's own program is the bot when this is set.
const asBot = "KITBOT_TEST_AS_BOT"

func TestMain(m *testing.M) {
	if os.Getenv(asBot) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Killed with -9 again and again, the bot answers every message once, in order
// in each chat.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := bottest.New(t)
	server.Unlimited()
	store := filepath.Join(t.TempDir(), "kitbot.db")
	want := map[botkit.ID][]string{}
	push := func(from, to int) {
		for n := from; n < to; n++ {
			chat, text := botkit.ID(fmt.Sprint(550+n%5)), fmt.Sprint("message ", n)
			want[chat] = append(want[chat], text)
			server.Message(chat, text)
		}
	}
	start := func() *exec.Cmd {
		bot := exec.Command(os.Args[0])
		bot.Env = append(os.Environ(), asBot+"=1", "SMEET_URL="+server.URL(), "SMEET_TOKEN="+string(bottest.Token), "SMEET_CONSUMER_ID=test", "SMEET_STORE="+store)
		bot.Stderr = t.Output()
		if err := bot.Start(); err != nil {
			t.Fatal(err)
		}
		return bot
	}
	kill := func(bot *exec.Cmd) {
		if err := bot.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = bot.Wait() // it was killed
		server.Reset() // else the next one waits for the lease of this one
	}
	push(0, 150)
	for _, n := range []int{1, 7, 60, 120} {
		bot := start()
		server.WaitSent(n)
		kill(bot)
	}
	// Killed in the middle of a call: before it is done, and after.
	for _, fault := range []bottest.Fault{{LoseRequest: true}, {LoseAnswer: true}} {
		for _, method := range []string{"getUpdates", "sendMessage"} {
			reached := make(chan struct{})
			fault.Do = func() { close(reached) }
			server.Fault(method, fault)
			push(len(server.Calls())+1000, len(server.Calls())+1010)
			bot := start()
			<-reached
			kill(bot)
		}
	}
	bot := start()
	total := 0
	for _, texts := range want {
		total += len(texts)
	}
	server.WaitSent(total)
	server.WaitConfirmed(botkit.ID(fmt.Sprint(total + 1)))
	if err := bot.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := bot.Wait(); err != nil {
		t.Errorf("asked to end, it ended with %v", err)
	}
	got := map[botkit.ID][]string{}
	for _, m := range server.Sent() {
		got[m.ChatID] = append(got[m.ChatID], m.Text)
	}
	for chat := range want {
		if !slices.Equal(got[chat], want[chat]) {
			t.Errorf("K-01 K-06 chat %s:\n got %q\nwant %q", chat, got[chat], want[chat])
		}
	}
}
