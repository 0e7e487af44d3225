package botkit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// SignatureHeader is the header of a webhook request that signs it.
const SignatureHeader = "X-SMeet-Signature"

const tolerance = 5 * time.Minute

// VerifySignature tells whether SignatureHeader, t=<unix seconds>,v1=<hex>, was
// made for this very body with one of the secrets, as they were shown: never
// decode them. body is what came over the wire, before any JSON parsing. A t more
// than five minutes away from now is refused; of several v1 any may match; the
// comparison takes the same time wherever the first difference is (K-07).
func VerifySignature(secrets []Secret, header string, body []byte, now time.Time) bool {
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
	if err != nil || now.Unix()-t > int64(tolerance/time.Second) || t-now.Unix() > int64(tolerance/time.Second) {
		return false // somebody may be sending an old request again
	}
	match := false
	for _, secret := range secrets {
		if secret == "" {
			continue // anybody can sign with nothing
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(times[0] + "."))
		mac.Write(body)
		expected := []byte(hex.EncodeToString(mac.Sum(nil)))
		for _, v1 := range signatures {
			match = hmac.Equal(expected, []byte(v1)) || match
		}
	}
	return match
}
