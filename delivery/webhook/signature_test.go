package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"mybots/delivery"
)

// signatureVectors is the file that the tests of all languages share.
type signatureVectors struct {
	Secret string `json:"secret"`
	Time   int64  `json:"t"`
	Body   string `json:"body"`
	Digest string `json:"v1"`
	Header string `json:"header"`
	Cases  []struct {
		Name   string `json:"name"`
		Secret string `json:"secret"`
		Header string `json:"header"`
		Body   string `json:"body"`
		Now    int64  `json:"now"`
		Valid  bool   `json:"valid"`
	} `json:"cases"`
}

func readVectors(t *testing.T) signatureVectors {
	t.Helper()
	text, err := os.ReadFile("../../examples/testdata/signature.json")
	if err != nil {
		t.Fatal(err)
	}
	var v signatureVectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSign(t *testing.T) {
	t.Parallel()
	v := readVectors(t)

	t.Run("W-07 the shared vector", func(t *testing.T) {
		t.Parallel()
		if got := Sign(delivery.Secret(v.Secret), v.Time, []byte(v.Body)); got != v.Header {
			t.Errorf("got %s, want %s", got, v.Header)
		}
	})
	t.Run("W-06 W-07 made step by step", func(t *testing.T) {
		t.Parallel()
		secret := delivery.NewSecret(delivery.WebhookSecretPrefix)
		mac := hmac.New(sha256.New, []byte(string(secret)))
		mac.Write([]byte("17." + `{"text":"é"}`))
		want := "t=17,v1=" + hex.EncodeToString(mac.Sum(nil))
		if got := Sign(secret, 17, []byte(`{"text":"é"}`)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
