package main_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// marker stands in all that an endpoint says; it must turn up nowhere.
const marker = "ENDPOINT-SAYS-7f3a"

// marked answers with a status whose words, headers and body hold the marker.
func marked(status string, headers ...string) script {
	return func(v *visit) {
		conn, out, err := v.w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		v.answered = true
		body := `{"error":"` + marker + `","description":"` + marker + `"}`
		fmt.Fprintf(out, "HTTP/1.1 %s %s\r\nContent-Length: %d\r\nContent-Type: application/json\r\nServer: %s\r\nX-Request-Id: %s\r\nSet-Cookie: a=%s\r\n%s\r\n\r\n%s",
			status, marker, len(body), marker, marker, marker, strings.Join(append(headers, "X-Last: 1"), "\r\n"), body)
		_ = out.Flush() // the other side may have gone
	}
}

// babbles is no HTTP answer.
func babbles(v *visit) {
	conn, out, err := v.w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	v.answered = true
	fmt.Fprintf(out, "%s %s\r\n%s\r\n\r\n", marker, marker, marker)
	_ = out.Flush() // the other side may have gone
}

func TestWebhookSecrets(t *testing.T) {
	t.Parallel()
	w, e := newHookWorld(t, "MYBOTS_LOG_LEVEL=debug")
	s := w.serve(t, "MYBOTS_ADMIN_ADDR=127.0.0.1:0")
	o := s.signIn(t)
	w.secret(marker) // each server's log is searched for it at the end
	answers := map[string]script{
		"200": marked("200"), "422": marked("422"), "401": marked("401"), "500": marked("500"), "429": marked("429", "Retry-After: "+marker),
		"302": marked("302", "Location: https://"+marker+".example.test/"+marker), "700": marked("700"), "no HTTP": babbles,
	}
	stands := map[string]string{
		"200": "active, 0 waiting, 0 failed, at 2", "422": "active HTTP_422, 0 waiting, 1 failed, at 2", "401": "paused HTTP_401, 1 waiting, 0 failed, at 1",
		"500": "retrying HTTP_500, 1 waiting, 0 failed, at 1", "429": "retrying HTTP_429, 1 waiting, 0 failed, at 1", "302": "paused REDIRECT_NOT_FOLLOWED, 1 waiting, 0 failed, at 1",
		"700": "paused HTTP_700, 1 waiting, 0 failed, at 1", "no HTTP": "retrying CONNECTION_LOST, 1 waiting, 0 failed, at 1", "a certificate": "paused TLS_CERTIFICATE_ERROR, 1 waiting, 0 failed, at 1",
	}
	hooks := map[string]*hooked{}
	add := func(name string) *hooked {
		h := o.hooked(t, e)
		hooks[name] = h
		return h
	}
	for name, does := range answers {
		add(name).does(does)
	}
	subject := pkix.Name{CommonName: marker, Organization: []string{marker}}
	e.present(add("a certificate").sink, certificate(tls.Certificate{}, &x509.Certificate{Subject: subject, DNSNames: []string{marker + ".test"}, NotAfter: time.Now().Add(time.Hour)}))
	for name, h := range hooks {
		s.sends(t, h.bot, 1)
		s.stands(t, h.bot, stands[name])
	}

	t.Run("W-08 N-09 nothing that an endpoint said stands in a page, an answer or a metric", func(t *testing.T) {
		look := func(what, text string) {
			t.Helper()
			if i := strings.Index(text, marker); i >= 0 {
				t.Errorf("%s holds what the endpoint said: …%s…", what, text[max(0, i-200):i])
			}
		}
		for name, h := range hooks {
			look(name+": the page after a test request", func() string {
				_, body := o.get(t, o.act(t, h.bot, "connection/test"))
				return body
			}())
			for _, path := range []string{"connection", "failed", "chat", "settings"} {
				_, body := o.get(t, "/bots/"+h.id+"/"+path)
				look(name+": /"+path, body)
				for _, secret := range []string{h.secret, h.token} {
					if strings.Contains(body, secret) {
						t.Errorf("%s: /%s shows a secret", name, path)
					}
				}
			}
			for _, method := range []string{"getWebhookInfo", "getDeliveryInfo", "getMe"} {
				body := string(s.call(t, h.bot, method, "{}").body)
				look(name+": "+method, body)
				if strings.Contains(body, h.secret) {
					t.Errorf("%s: %s tells the secret", name, method)
				}
			}
		}
		_, body := o.get(t, "/bots")
		look("/bots", body)
		for line := range strings.Lines(s.log.String()) {
			if _, rest, ok := strings.Cut(line, `"msg":"metrics and profiles","addr":"`); ok {
				address, _, _ := strings.Cut(rest, `"`)
				_, body := page(t, "http://"+address+"/metrics")
				look("/metrics", body)
				w.checkSecrets(t, "/metrics", body)
			}
		}
	})
	t.Run("W-08 M-04 A-03 nor in the database, where no secret stands in clear either", func(t *testing.T) {
		db := w.db(t)
		var tables []string
		if err := db.Select(&tables, `SELECT quote_ident(table_name) FROM information_schema.tables WHERE table_schema = 'public'`); err != nil || len(tables) < 10 {
			t.Fatalf("got the tables %v, %v", tables, err)
		}
		h := hooks["200"]
		held := map[string]string{}
		for what, text := range map[string]string{"the address's token": h.query, "what the endpoint said": marker, "the webhook's secret": h.secret, "the API token": h.token} {
			for _, table := range tables {
				for _, form := range []string{text, hex.EncodeToString([]byte(text))} { // as text and as bytea shows it
					var n int
					if err := db.Get(&n, `SELECT count(*) FROM `+table+` t WHERE strpos(t::text, $1) > 0`, form); err != nil {
						t.Fatal(err)
					}
					if n > 0 {
						held[what] += table
					}
				}
			}
		}
		if len(held) != 1 || held["the address's token"] != "webhooks" {
			t.Errorf("got %v, want the address alone, and only where it is kept", held)
		}
	})
	t.Run("W-07 M-04 A-03 neither secret nor the token in an address stands in the log, and each attempt does", func(t *testing.T) {
		text := s.log.String()
		w.checkSecrets(t, "the log", text)
		for name, h := range hooks {
			if name != "200" && !strings.Contains(text, `"msg":"webhook attempt","bot_id":`+h.id+`,`) {
				t.Errorf("%s: the log has no line for its attempt", name)
			}
			if strings.Contains(text, h.host) {
				t.Errorf("%s: the log names the endpoint", name)
			}
		}
	})
}
