package botkit_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"mybots/botkit"
	"mybots/botkit/bottest"
)

// Anybody can sign with no secret.
func TestEmptySecret(t *testing.T) {
	t.Parallel()
	now := time.Now()
	if botkit.VerifySignature([]botkit.Secret{""}, bottest.Sign("", []byte("{}"), now), []byte("{}"), now) {
		t.Error("K-07: a request signed with an empty secret is taken")
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../examples/testdata/signature.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Cases []struct {
			Name, Header, Body string
			Secret             string
			Now                int64
			Valid              bool
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Cases) < 40 {
		t.Fatalf("%d cases, %v; want 40 or more", len(vectors.Cases), err)
	}
	for _, c := range vectors.Cases {
		t.Run("K-07 "+c.Name, func(t *testing.T) {
			t.Parallel()
			for name, s := range map[string]struct {
				secrets []botkit.Secret
				want    bool
			}{
				"the secret":           {[]botkit.Secret{botkit.Secret(c.Secret)}, c.Valid},
				"the old and the new":  {[]botkit.Secret{"swh1_old", botkit.Secret(c.Secret)}, c.Valid},
				"the new and the old":  {[]botkit.Secret{botkit.Secret(c.Secret), "swh1_old"}, c.Valid},
				"others":               {[]botkit.Secret{"swh1_old"}, false},
				"none":                 {nil, false},
				"an empty one":         {[]botkit.Secret{""}, false},
				"an empty one besides": {[]botkit.Secret{"", botkit.Secret(c.Secret)}, c.Valid},
			} {
				if got := botkit.VerifySignature(s.secrets, c.Header, []byte(c.Body), time.Unix(c.Now, 0)); got != s.want {
					t.Errorf("%s: got %t, want %t", name, got, s.want)
				}
			}
		})
	}
}
