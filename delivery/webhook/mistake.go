package webhook

import (
	"bytes"
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"mybots/delivery"
)

// What Diagnose reads at most; a paste that is longer is MistakeTooLong.
const (
	MaxPastedHeader = 4 << 10
	MaxPastedBody   = (256 + 2) << 10 // an update: its payload and what stands around it
	maxPastedSecret = 1 << 10
	maxPastedV1     = 16 // of a header; the rest is not looked at
)

// Paste is what somebody has at hand whose program refuses, or would refuse, a
// request: the secret that the program has, the header's value, the body as the
// program got it. v1 may also be one that the program has computed itself.
type Paste struct {
	Secret delivery.Secret
	Header string
	Body   []byte
	Now    time.Time
}

// Mistake is what keeps a signature from being valid.
type Mistake string

// The mistakes. Finding.Details says more about some of them.
const (
	MistakeNone     Mistake = "none"      // the signature is valid
	MistakeTooLong  Mistake = "too_long"  // longer than any request; not looked at
	MistakeNoSecret Mistake = "no_secret" // the secret is empty
	MistakeHeader   Mistake = "header"    // no X-SMeet-Signature, or a spoiled one; see Details
	MistakeOld      Mistake = "old"       // the signature matches; t is more than Tolerance ago
	MistakeFuture   Mistake = "future"    // the signature matches; t is more than Tolerance ahead
	MistakeEncoding Mistake = "encoding"  // the right digest, not in lower-case hex; see Details
	MistakeKey      Mistake = "key"       // made with something else than the secret as shown; see Details
	MistakeMessage  Mistake = "message"   // made of something else than <t>.<body>; see Details
	MistakeBody     Mistake = "body"      // made of the same JSON, written differently; see Details
	MistakeOther    Mistake = "other"     // another secret, or another body
)

// Detail says more about a mistake.
type Detail string

// Of MistakeHeader.
const (
	DetailEmpty    Detail = "empty"      // nothing was pasted
	DetailForeign  Detail = "foreign"    // another product's header: sha256=…
	DetailOnlyHex  Detail = "only_hex"   // the digits alone
	DetailNoTime   Detail = "no_t"       // t is missing
	DetailNoDigest Detail = "no_v1"      // v1 is missing
	DetailTwoTimes Detail = "two_t"      // t stands there more than once
	DetailBadTime  Detail = "bad_t"      // t isn't 1 to 12 digits: a sign, a space, milliseconds …
	DetailBadV1    Detail = "bad_v1"     // no v1 is a SHA-256 in any encoding: too short, cut, no hex …
	DetailShape    Detail = "bad_fields" // neither t= nor v1=
)

// Of MistakeEncoding.
const (
	DetailUpperCase Detail = "upper_case"
	DetailBase64    Detail = "base64"
)

// Finding is what Diagnose found. Nothing of the paste is in it but t.
type Finding struct {
	Mistake Mistake
	Details []Detail
	Time    time.Time     // t of the header; zero if it has none that can be read
	Off     time.Duration // t minus now; more than Tolerance either way is refused, whatever else is wrong
}

// Stale tells whether the header's t alone would make a receiver refuse it.
func (f Finding) Stale() bool { return !f.Time.IsZero() && f.Off.Abs() > Tolerance }

// Diagnose finds the first mistake to fix. It tries a fixed list of what people
// do, one mistake at a time, in work bounded by the limits above: a few dozen
// digests of the body. It never fails.
func Diagnose(p Paste) Finding {
	switch {
	case len(p.Secret) > maxPastedSecret, len(p.Header) > MaxPastedHeader, len(p.Body) > MaxPastedBody:
		return Finding{Mistake: MistakeTooLong}
	case p.Secret == "":
		return Finding{Mistake: MistakeNoSecret}
	}
	h, detail := parseHeader(p.Header)
	if detail != "" {
		return Finding{Mistake: MistakeHeader, Details: []Detail{detail}}
	}
	f := Finding{Time: time.Unix(h.unix, 0).UTC()}
	f.Off = f.Time.Sub(p.Now)
	f.Mistake, f.Details = h.compare([]byte(p.Secret), p.Body)
	if f.Mistake == MistakeNone && f.Stale() {
		f.Mistake = MistakeOld
		if f.Off > 0 {
			f.Mistake = MistakeFuture
		}
	}
	return f
}

// pastedHeader is a signature header whose t can be read and that has a v1 of the
// size of a SHA-256.
type pastedHeader struct {
	t    string // as it stands there, since that is what was signed
	unix int64
	v1   []pastedDigest
}

type pastedDigest struct {
	sum      []byte
	encoding Detail // "" for the right one, lower-case hex
}

// parseHeader takes the header's value, or the whole line; a Detail other than
// "" says what is wrong with it.
func parseHeader(s string) (pastedHeader, Detail) {
	s = strings.TrimSpace(s)
	if name, value, ok := strings.Cut(s, ":"); ok && strings.EqualFold(strings.TrimSpace(name), SignatureHeader) {
		s = strings.TrimSpace(value)
	}
	var times, digests []string
	for item := range strings.SplitSeq(s, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(item), "="); name {
		case "t":
			times = append(times, value)
		case "v1":
			digests = append(digests, value)
		}
	}
	switch {
	case s == "":
		return pastedHeader{}, DetailEmpty
	case len(times) == 0 && len(digests) == 0:
		return pastedHeader{}, headerShape(s)
	case len(times) == 0:
		return pastedHeader{}, DetailNoTime
	case len(times) > 1:
		return pastedHeader{}, DetailTwoTimes
	case len(digests) == 0:
		return pastedHeader{}, DetailNoDigest
	}
	h := pastedHeader{t: times[0]}
	unix, err := strconv.ParseUint(h.t, 10, 63) // no sign, no space; base 10 takes no underscores
	if err != nil || len(h.t) > 12 {
		return pastedHeader{}, DetailBadTime
	}
	h.unix = int64(unix)
	for _, text := range digests[:min(len(digests), maxPastedV1)] {
		if sum, encoding := decodeDigest(text); sum != nil {
			h.v1 = append(h.v1, pastedDigest{sum, encoding})
		}
	}
	if len(h.v1) == 0 {
		return pastedHeader{}, DetailBadV1
	}
	return h, ""
}

// headerShape tells apart what has neither t nor v1.
func headerShape(s string) Detail {
	name, _, _ := strings.Cut(s, "=")
	if sum, _ := decodeDigest(s); sum != nil {
		return DetailOnlyHex
	}
	if strings.EqualFold(name, "sha256") || strings.EqualFold(name, "sha1") {
		return DetailForeign
	}
	return DetailShape
}

// decodeDigest reads a SHA-256 in hex or base64 of either alphabet; encoding is
// "" for lower-case hex. A nil sum: it is none.
func decodeDigest(s string) (sum []byte, encoding Detail) {
	if sum, err := hex.DecodeString(s); err == nil && len(sum) == 32 {
		if s != strings.ToLower(s) {
			return sum, DetailUpperCase
		}
		return sum, ""
	}
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	if sum, err := base64.RawStdEncoding.DecodeString(s); err == nil && len(sum) == 32 {
		return sum, DetailBase64
	}
	return nil, ""
}

// compare looks for the digest among those that people make.
func (h pastedHeader) compare(secret, body []byte) (Mistake, []Detail) {
	prefix := []byte(h.t + ".")
	right := digest(secret, prefix, body)
	if found := h.find(right); found != nil {
		if found.encoding == "" {
			return MistakeNone, nil
		}
		return MistakeEncoding, []Detail{found.encoding}
	}
	for _, k := range wrongKeys(secret) {
		if h.find(digest(k.key, prefix, body)) != nil {
			return MistakeKey, []Detail{k.detail}
		}
	}
	for _, m := range wrongMessages(h.t, body) {
		if h.find(digest(secret, m.parts...)) != nil {
			return MistakeMessage, []Detail{m.detail}
		}
	}
	if details := h.findBody(secret, prefix, body); details != nil {
		return MistakeBody, details
	}
	return MistakeOther, nil
}

// find returns the v1 that is sum, the rightly written one first; nil: none is.
func (h pastedHeader) find(sum []byte) *pastedDigest {
	var found *pastedDigest
	for i, d := range h.v1 {
		if hmac.Equal(d.sum, sum) && (found == nil || d.encoding == "") {
			found = &h.v1[i]
		}
	}
	return found
}

// findBody looks for the digest among rewrites of the body; nil: it isn't there.
func (h pastedHeader) findBody(secret, prefix, body []byte) []Detail {
	cut := bytes.TrimSpace(body)
	for _, other := range []struct {
		body   []byte
		detail Detail
	}{
		{cut, DetailSpaceAround}, {plus(cut, "\n"), DetailNewline}, {plus(cut, "\r\n"), DetailNewline},
		{bytes.TrimPrefix(body, []byte("\ufeff")), DetailSpaceAround},
		{bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), DetailLineEnds},
		{bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n")), DetailLineEnds},
	} {
		if h.find(digest(secret, prefix, other.body)) != nil {
			return []Detail{other.detail}
		}
	}
	root, ok := parseJSON(cut)
	if !ok {
		return nil
	}
	for _, form := range bodyForms() {
		text, ok := form.write(root)
		if !ok {
			continue
		}
		if h.find(digest(secret, prefix, text)) != nil {
			return form.details()
		}
		if h.find(digest(secret, prefix, text, []byte("\n"))) != nil {
			return append(form.details(), DetailNewline)
		}
	}
	return nil
}

func plus(b []byte, end string) []byte { return append(bytes.Clone(b), end...) }
