package main

// snippet: verify
import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

// VerifySignature tells whether X-SMeet-Signature (t=<unix seconds>,v1=<hex>)
// was made for this very body. The secret is the webhook secret as it was shown:
// never decode it. The body is what came over the wire, before any JSON parsing.
func VerifySignature(secret []byte, header string, body []byte, now time.Time) bool {
	var times, signatures []string
	for item := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(item), "="); name {
		case "t":
			times = append(times, value)
		case "v1":
			signatures = append(signatures, value)
		}
	}
	if len(times) != 1 || len(times[0]) > 12 || strings.Trim(times[0], "0123456789") != "" {
		return false
	}
	t, err := strconv.ParseInt(times[0], 10, 64)
	if err != nil || now.Sub(time.Unix(t, 0)).Abs() > tolerance {
		return false // somebody may be sending an old request again
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(times[0] + "."))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	// There may be more than one v1, and any of them may match. hmac.Equal takes
	// the same time wherever the first difference is.
	match := false
	for _, v1 := range signatures {
		match = hmac.Equal(expected, []byte(v1)) || match
	}
	return match
}

// snippet end
