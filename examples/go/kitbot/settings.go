package main

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"

	"mybots/botkit"
)

// settings are what the environment and the command line say.
type settings struct {
	url        string
	token      botkit.Secret
	consumerID string
	store      string
	quarantine string
	health     string // the address of /healthz; "": none

	webhook, behindProxy bool
	secrets              []botkit.Secret
	host, port, path     string
	certificate, key     string

	parked, retry bool
}

// readSettings reports all mistakes together.
func readSettings(args []string, env func(string) string) (settings, error) {
	s := settings{
		url:        cmp.Or(env("SMEET_URL"), "http://127.0.0.1:8080"),
		token:      botkit.Secret(strings.TrimSpace(env("SMEET_TOKEN"))),
		consumerID: cmp.Or(env("SMEET_CONSUMER_ID"), hostName()),
		store:      cmp.Or(env("SMEET_STORE"), "./kitbot.db"),
		health:     env("SMEET_HEALTH_ADDR"),
		host:       env("SMEET_WEBHOOK_HOST"), port: cmp.Or(env("SMEET_WEBHOOK_PORT"), "8443"), path: cmp.Or(env("SMEET_WEBHOOK_PATH"), "/smeet"),
		certificate: env("SMEET_WEBHOOK_CERT"), key: env("SMEET_WEBHOOK_KEY"),
	}
	s.quarantine = cmp.Or(env("SMEET_QUARANTINE"), s.store+".quarantine")
	for _, one := range strings.Fields(env("SMEET_WEBHOOK_SECRET")) {
		s.secrets = append(s.secrets, botkit.Secret(one))
	}
	var mistakes []error
	wrong := func(text string) { mistakes = append(mistakes, errors.New(text)) }
	for _, a := range args {
		flag := map[string]*bool{"--webhook": &s.webhook, "--behind-proxy": &s.behindProxy, "--parked": &s.parked, "--retry": &s.retry}[a]
		if flag == nil {
			wrong(`the command line takes --webhook, --behind-proxy, --parked and --retry, not "` + a + `"`)
			continue
		}
		*flag = true
	}
	if s.parked || s.retry {
		return s, errors.Join(mistakes...)
	}
	if s.token == "" {
		wrong("set SMEET_TOKEN to the bot's token, from My bots")
	}
	if s.webhook {
		if len(s.secrets) == 0 {
			wrong("set SMEET_WEBHOOK_SECRET to the secret that the Connection screen showed")
		}
		if !s.behindProxy && (s.certificate == "" || s.key == "") {
			wrong("set SMEET_WEBHOOK_CERT and SMEET_WEBHOOK_KEY to the files of the certificate and its key, or start with --behind-proxy where a proxy does HTTPS")
		}
		if !strings.HasPrefix(s.path, "/") {
			wrong("SMEET_WEBHOOK_PATH begins with a slash")
		}
	}
	if s.host == "" && s.behindProxy {
		s.host = "127.0.0.1"
	}
	return s, errors.Join(mistakes...)
}

// hostName is this machine's name, as a consumer id can be.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "kitbot"
	}
	letters := []rune(strings.Map(func(r rune) rune {
		if r < 128 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || slices.Contains([]rune("._-"), r)) {
			return r
		}
		return '-'
	}, name))
	return cmp.Or(string(letters[:min(len(letters), 64)]), "kitbot")
}
