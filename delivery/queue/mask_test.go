package queue_test

import (
	"strings"
	"testing"

	"mybots/delivery/queue"
)

func TestMask(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ payload, want string }{
		"nothing":        {`{}`, `{}`},
		"texts":          {`{"a":"","b":"hello","c":"` + strings.Repeat("я", 50) + `"}`, "{\n  \"a\": \"\",\n  \"b\": \"…1–10\",\n  \"c\": \"…11–50\"\n}"},
		"numbers":        {`{"n":-1.5,"m":12345678901234567890,"k":4321}`, "{\n  \"n\": #1–3,\n  \"m\": #10+,\n  \"k\": #4–9\n}"},
		"others":         {`{"a":true,"b":false,"c":null}`, "{\n  \"a\": true,\n  \"b\": false,\n  \"c\": null\n}"},
		"structure":      {`{"a":[{"b":"x"},[],"y"],"a":{}}`, "{\n  \"a\": [\n    {\n      \"b\": \"…1–10\"\n    },\n    [],\n    \"…1–10\"\n  ],\n  \"a\": {}\n}"},
		"odd escapes":    {`{"a":"\u0000\ud800"}`, "{\n  \"a\": \"…1–10\"\n}"},
		"long texts":     {`["` + strings.Repeat("x", 200) + `","` + strings.Repeat("x", 1000) + `","` + strings.Repeat("x", 1001) + `"]`, "[\n  \"…51–200\",\n  \"…201–1000\",\n  \"…1001+\"\n]"},
		"no JSON at all": {`MARKER`, "…"},
	}
	for name, tt := range tests {
		t.Run("UI-06 "+name, func(t *testing.T) {
			t.Parallel()
			if got := queue.Mask([]byte(tt.payload)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	t.Run("UI-06 a huge payload ends", func(t *testing.T) {
		t.Parallel()
		got := queue.Mask([]byte("[" + strings.Repeat(`"MARKER",`, 20_000) + `1]`))
		if n := strings.Count(got, "\n"); n != 500 || !strings.HasSuffix(got, "\n…") || strings.Contains(got, "MARKER") {
			t.Errorf("got %d lines, %.40q … %q", n, got, got[len(got)-20:])
		}
	})
}
