package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
)

// greet prints what to do next.
func greet(w io.Writer, base *url.URL, secrets demoSecrets, serving bool) error {
	address := base.String()
	if host, port, err := net.SplitHostPort(base.Host); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		address = base.Scheme + "://127.0.0.1:" + port
	}
	last := "\nCtrl-C stops the server.\n"
	if !serving {
		last = "\nA server runs on this data already; it has the demo space now. Its address may be another one.\n"
	}
	_, err := fmt.Fprintf(w, `
My Bots is ready.

  Open      %[1]s
  Sign in   %[2]s
  Password  %[3]s
  Docs      %[1]s/docs

Try a bot: start the echo bot in a second terminal, then write to it in its test chat.

  SMEET_URL=%[1]s SMEET_TOKEN=%[4]s python3 examples/python/echo_bot.py
  %[1]s/bots/%[5]d/chat

Or ask for its updates yourself, while the echo bot doesn't run: one program receives
at a time, and each call takes the lease for 60 seconds.

  curl -s -X POST %[1]s/bot-api/v1/getUpdates -H 'Authorization: Bearer %[4]s' -H 'Content-Type: application/json' -d '{"consumer_id":"me","timeout":0}'

Write events as the messenger does:

  curl -s -X POST %[1]s/internal/v1/events -H 'Authorization: Bearer %[6]s' -H 'Content-Type: application/json' -d '{"events":[{"bot_id":"%[5]d","event_id":"'$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)'","type":"message","date":"'$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)'","chat_id":"550","message_id":"1","payload":{"message_id":"1","chat":{"id":"550","type":"private"},"from":{"id":"7","display_name":"Anna","is_bot":false},"date":"'$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)'","text":"Hello"}}]}'
%[7]s`, address, demoEmail, secrets.Password, secrets.Token, secrets.BotID, secrets.Key, last)
	return err
}
