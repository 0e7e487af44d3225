package reference_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mybots/delivery"
	"mybots/delivery/webhook"
)

// received is a request as an endpoint got it.
type received struct {
	header http.Header
	body   []byte
}

// deliver sends an update to an endpoint of the test's own and returns what came.
func deliver(t *testing.T, u delivery.Update) received {
	t.Helper()
	came := make(chan received, 1)
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		came <- received{r.Header, body}
	}))
	t.Cleanup(endpoint.Close)
	at, err := url.Parse(endpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(endpoint.Certificate())
	guard := webhook.NewGuard(webhook.GuardOptions{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowPorts: []uint16{uint16(port)}, Roots: roots})
	sender := webhook.NewSender(guard, delivery.NewClock(0))
	t.Cleanup(sender.Close)
	answer := sender.Send(t.Context(), webhook.Request{BotID: 7, Version: 1, URL: endpoint.URL, Secret: "swh1_of-the-test", Update: u, Attempt: 2})
	if answer.Kind != delivery.Answered || answer.Status != http.StatusOK {
		t.Fatalf("got %+v, want 200", answer)
	}
	return <-came
}

func TestWebhookRequest(t *testing.T) {
	t.Parallel()
	doc, err := load(t)
	if err != nil {
		t.Fatal(err)
	}
	op := doc.Webhooks["update"].Post
	got := deliver(t, delivery.Update{
		UpdateID: 42, EventID: "7d3f7a52-4f0e-4b64-9d2a-2c1f8e5b6a10", Type: "message_deleted", Date: time.Now(),
		Payload: []byte(`{"message_id":"7301","chat":{"id":"550","type":"private"}}`),
	})
	t.Run("UI-10 W-06 the request's headers are those of the document, and no others", func(t *testing.T) {
		t.Parallel()
		documented := map[string]bool{"Content-Type": true}
		if want := got.header.Get("Content-Type"); op.RequestBody.Value.Content[want] == nil {
			t.Errorf("got the Content-Type %q, which isn't in the document", want)
		}
		for i, p := range op.Parameters {
			name := http.CanonicalHeaderKey(p.Value.Name)
			documented[name] = true
			var value any = got.header.Get(name)
			if p.Value.Schema.Value.Type.Is("integer") {
				value = json.Number(got.header.Get(name))
			}
			if err := compile(t, "#/webhooks/update/post/parameters/"+strconv.Itoa(i)+"/schema").Validate(value); err != nil {
				t.Errorf("%s: %v: %v", name, value, err)
			}
		}
		for name := range got.header {
			if !documented[name] {
				t.Errorf("got the header %s, which isn't in the document", name)
			}
		}
	})
	t.Run("UI-10 W-05 the body is the document's update", func(t *testing.T) {
		t.Parallel()
		body, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.body))
		if err != nil {
			t.Fatal(err)
		}
		if err := compile(t, "#/components/schemas/Update").Validate(body); err != nil {
			t.Error(err)
		}
	})
	t.Run("UI-10 W-09 the document's answers are taken as it says", func(t *testing.T) {
		t.Parallel()
		says := map[delivery.Verdict]string{
			delivery.VerdictConfirmed: "Confirmed", delivery.VerdictFailed: "FAILED at once", delivery.VerdictPause: "Delivery pauses",
			delivery.VerdictBudget: "Charges the budget", delivery.VerdictWait: "Tried again after",
		}
		for status := 200; status < 600; status++ {
			a := delivery.Answer{Kind: delivery.Answered, Status: status}
			r := op.Responses.Value(strconv.Itoa(status))
			for _, other := range []string{strconv.Itoa(status/100) + "XX", "default"} {
				if r == nil {
					r = op.Responses.Value(other)
				}
			}
			text := *r.Value.Description
			if !strings.HasPrefix(text, says[a.Verdict()]) {
				t.Errorf("%d: got %q, want %q", status, text, says[a.Verdict()])
			}
			if v := a.Verdict(); (v == delivery.VerdictPause || v == delivery.VerdictFailed) && !strings.Contains(strings.ReplaceAll(text, "HTTP_<status>", a.Code()), a.Code()) {
				t.Errorf("%d: got %q, want the code %s in it", status, text, a.Code())
			}
		}
	})
}
