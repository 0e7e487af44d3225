package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"mybots/delivery"
)

// SignatureHeader is the request header that carries the signature (W-06).
const SignatureHeader = "X-SMeet-Signature"

// Tolerance is how far a receiver lets t be from its own clock (K-07).
const Tolerance = 5 * time.Minute

// Sign returns the value of SignatureHeader for a body that is sent at t, in
// Unix seconds: t=<t>,v1=<64 lower-case hex digits> (W-06). The digits are the
// HMAC-SHA256 of "<t>.<body>", keyed with the secret as it was shown, in UTF-8
// (W-07). Every attempt is signed anew, with a t of its own.
func Sign(secret delivery.Secret, t int64, body []byte) string {
	at := strconv.FormatInt(t, 10)
	return "t=" + at + ",v1=" + hex.EncodeToString(digest([]byte(secret), []byte(at+"."), body))
}

// digest is the HMAC-SHA256 of all parts in a row.
func digest(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}
