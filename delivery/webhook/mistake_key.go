package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// Of MistakeKey.
const (
	DetailKeySpace    Detail = "space"        // white space or a newline around the secret
	DetailKeyPrefix   Detail = "no_prefix"    // the secret without its prefix
	DetailKeyBase64   Detail = "base64_key"   // the secret, decoded from base64
	DetailKeyHex      Detail = "hex_key"      // the secret, decoded from hex
	DetailKeyEncoded  Detail = "encoded_key"  // the secret, encoded in base64 or hex once more
	DetailKeyCase     Detail = "key_case"     // the secret in another case
	DetailKeyQuoted   Detail = "quoted_key"   // quotation marks around the secret, as from a settings file
	DetailKeyHash     Detail = "hashed_key"   // the secret's SHA-256
	DetailKeyNone     Detail = "empty_key"    // an empty key: the setting isn't read, or decoding left nothing
	DetailBodyAlone   Detail = "body_alone"   // signed the body without t
	DetailJoined      Detail = "joined"       // t and body joined otherwise than by a full stop
	DetailEmptyBody   Detail = "empty_body"   // the body was read before, so nothing was left to sign
	DetailMillisecond Detail = "milliseconds" // t in milliseconds
	DetailBytesText   Detail = "bytes_text"   // the text that a language shows for bytes: b'…'
	DetailObjectText  Detail = "object_text"  // the text that JavaScript shows for an object
)

type wrongKey struct {
	key    []byte
	detail Detail
}

// wrongKeys are what people key the HMAC with instead of the secret as shown;
// or, where the secret was pasted with the mistake, the secret without it.
func wrongKeys(secret []byte) []wrongKey {
	trimmed := bytes.TrimSpace(secret)
	text := string(trimmed)
	_, bare, prefixed := strings.Cut(text, "_")
	keys := []wrongKey{
		{nil, DetailKeyNone}, // first, since decoding from hex may leave nothing too
		{trimmed, DetailKeySpace}, {plus(trimmed, "\n"), DetailKeySpace}, {plus(trimmed, "\r\n"), DetailKeySpace},
		{plus(trimmed, " "), DetailKeySpace}, {[]byte(" " + text), DetailKeySpace},
		{[]byte(strings.Trim(text, `"'`)), DetailKeyQuoted}, {[]byte(`"` + text + `"`), DetailKeyQuoted},
		{[]byte("'" + text + "'"), DetailKeyQuoted},
		{[]byte(strings.ToUpper(text)), DetailKeyCase}, {[]byte(strings.ToLower(text)), DetailKeyCase},
		{fromBase64(text, false), DetailKeyBase64}, {fromBase64(text, true), DetailKeyBase64}, {fromHex(text), DetailKeyHex},
		{[]byte(base64.StdEncoding.EncodeToString(trimmed)), DetailKeyEncoded},
		{[]byte(hex.EncodeToString(trimmed)), DetailKeyEncoded},
	}
	sum := sha256.Sum256(trimmed)
	keys = append(keys, wrongKey{sum[:], DetailKeyHash}, wrongKey{[]byte(hex.EncodeToString(sum[:])), DetailKeyHash})
	if prefixed {
		keys = append(keys, wrongKey{[]byte(bare), DetailKeyPrefix}, wrongKey{fromBase64(bare, false), DetailKeyBase64},
			wrongKey{fromHex(bare), DetailKeyHex})
	} else { // pasted without it
		keys = append(keys, wrongKey{[]byte("swh1_" + text), DetailKeyPrefix})
	}
	return keys
}

// fromBase64 decodes as the forgiving decoders do: letters outside the alphabet
// are passed over, and so is what is left at the end. With urlSafe, - and _
// belong to the alphabet.
func fromBase64(s string, urlSafe bool) []byte {
	s = strings.Map(func(r rune) rune {
		switch {
		case urlSafe && r == '-':
			return '+'
		case urlSafe && r == '_':
			return '/'
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '+', r == '/':
			return r
		}
		return -1
	}, s)
	if len(s)%4 == 1 {
		s = s[:len(s)-1]
	}
	out, _ := base64.RawStdEncoding.DecodeString(s) // can't fail: only its alphabet is left
	return out
}

// fromHex decodes up to the first letter that is no hex digit, as Node.js does.
func fromHex(s string) []byte {
	end := 0
	for end < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[end]) >= 0 {
		end++
	}
	out, _ := hex.DecodeString(s[:end&^1]) // can't fail: an even number of digits
	return out
}

type wrongMessage struct {
	parts  [][]byte
	detail Detail
}

// wrongMessages are what people sign instead of <t>.<body>.
func wrongMessages(t string, body []byte) []wrongMessage {
	at := []byte(t)
	dot := []byte(".")
	messages := []wrongMessage{
		{[][]byte{body}, DetailBodyAlone},
		{[][]byte{at, body}, DetailJoined},
		{[][]byte{body, at}, DetailJoined},
		{[][]byte{body, dot, at}, DetailJoined},
		{[][]byte{[]byte("t="), at, dot, body}, DetailJoined},
		{[][]byte{at, dot}, DetailEmptyBody},
		{[][]byte{at, []byte("000."), body}, DetailMillisecond},
		{[][]byte{at, dot, pythonBytes(body)}, DetailBytesText},
		{[][]byte{at, dot, []byte("[object Object]")}, DetailObjectText},
		{[][]byte{at, dot, []byte("{}")}, DetailEmptyBody},
	}
	for _, between := range []string{":", ",", "\n", " ", "|", "-", "_", ". "} {
		messages = append(messages, wrongMessage{[][]byte{at, []byte(between), body}, DetailJoined})
	}
	return messages
}

// pythonBytes is what Python shows for bytes, and puts into an f-string.
func pythonBytes(body []byte) []byte {
	quote := byte('\'')
	if bytes.IndexByte(body, '\'') >= 0 && bytes.IndexByte(body, '"') < 0 {
		quote = '"'
	}
	out := append(make([]byte, 0, len(body)+len(body)/4+3), 'b', quote)
	for _, c := range body {
		switch {
		case c == quote || c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\r':
			out = append(out, `\r`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c < ' ' || c > '~':
			out = fmt.Appendf(out, `\x%02x`, c)
		default:
			out = append(out, c)
		}
	}
	return append(out, quote)
}
