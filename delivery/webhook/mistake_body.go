package webhook

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Of MistakeBody: how the JSON was written that the signature is of.
const (
	DetailSpaceAround Detail = "space_around" // without the white space around the body
	DetailNewline     Detail = "newline"      // with a newline at the end
	DetailLineEnds    Detail = "line_ends"    // with other line ends
	DetailCompact     Detail = "compact"      // with no white space
	DetailSpaced      Detail = "spaced"       // with a space after every comma and colon, as Python's json.dumps
	DetailIndented    Detail = "indented"     // on many lines
	DetailSorted      Detail = "sorted"       // the keys in order
	DetailASCII       Detail = "ascii"        // letters outside ASCII as \uXXXX
	DetailUnescaped   Detail = "unescaped"    // letters outside ASCII as they are
	DetailHTML        Detail = "html"         // < > & as \uXXXX, as Go's encoding/json
	DetailSlashes     Detail = "slashes"      // / as \/, as PHP's json_encode
)

// maxRewritten bounds one rewrite of a body: indents of deep nesting grow it.
const maxRewritten = 1 << 20

// bodyForm is a way to write JSON.
type bodyForm struct {
	comma, colon string // what stands between
	indent       string // of each level; "": all on one line
	spacing      Detail
	sorted       bool
	letters      Detail // "": strings stay as they are
}

// bodyForms are the ways that the usual libraries and tools write JSON.
func bodyForms() []bodyForm {
	var forms []bodyForm
	for _, sorted := range []bool{false, true} {
		for _, letters := range []Detail{"", DetailUnescaped, DetailASCII, DetailHTML, DetailSlashes} {
			forms = append(forms,
				bodyForm{",", ":", "", DetailCompact, sorted, letters},
				bodyForm{", ", ": ", "", DetailSpaced, sorted, letters},
				bodyForm{",", ": ", "  ", DetailIndented, sorted, letters},
				bodyForm{",", ": ", "    ", DetailIndented, sorted, letters},
			)
		}
	}
	return append(forms, bodyForm{",", ": ", "\t", DetailIndented, false, ""})
}

func (f bodyForm) details() []Detail {
	details := []Detail{f.spacing}
	if f.letters != "" {
		details = append(details, f.letters)
	}
	if f.sorted {
		details = append(details, DetailSorted)
	}
	return details
}

// jsonValue is JSON that keeps its scalars, and its keys, as they were written.
type jsonValue struct {
	text   []byte      // of a scalar: as it stands there
	open   byte        // '{' or '[' of what has items
	keys   []jsonValue // of an object
	values []jsonValue
}

// parseJSON reads text; false: it isn't JSON, or nested deeper than 10,000.
func parseJSON(text []byte) (jsonValue, bool) {
	if !json.Valid(text) {
		return jsonValue{}, false
	}
	v, _ := parseJSONValue(skipSpace(text))
	return v, true
}

// parseJSONValue reads one value of valid JSON and returns what follows it, without
// the white space before that.
func parseJSONValue(s []byte) (v jsonValue, rest []byte) {
	switch s[0] {
	case '{', '[':
		v.open = s[0]
		s = skipSpace(s[1:])
		for s[0] != '}' && s[0] != ']' {
			var item jsonValue
			if v.open == '{' {
				item, s = parseJSONValue(s)
				v.keys = append(v.keys, item)
				s = skipSpace(s[1:]) // the colon
			}
			item, s = parseJSONValue(s)
			v.values = append(v.values, item)
			if s[0] == ',' {
				s = skipSpace(s[1:])
			}
		}
		return v, skipSpace(s[1:])
	case '"':
		end := 1
		for s[end] != '"' {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		return jsonValue{text: s[:end+1]}, skipSpace(s[end+1:])
	}
	end := bytes.IndexAny(s, ",]} \t\r\n")
	if end < 0 {
		end = len(s)
	}
	return jsonValue{text: s[:end]}, skipSpace(s[end:])
}

func skipSpace(s []byte) []byte { return bytes.TrimLeft(s, " \t\r\n") }

// write returns the JSON in this form; false: it would be longer than
// maxRewritten.
func (f bodyForm) write(v jsonValue) (text []byte, ok bool) {
	text = f.append(nil, v, 0)
	return text, len(text) <= maxRewritten
}

// append stops adding where the text has passed the limit.
func (f bodyForm) append(out []byte, v jsonValue, depth int) []byte {
	if len(out) > maxRewritten {
		return out
	}
	if v.open == 0 {
		return f.appendScalar(out, v.text)
	}
	out = append(out, v.open)
	for n, i := range f.order(v) {
		if n > 0 {
			out = append(out, f.comma...)
		}
		out = f.newLine(out, depth+1)
		if v.open == '{' {
			out = append(f.appendScalar(out, v.keys[i].text), f.colon...)
		}
		out = f.append(out, v.values[i], depth+1)
	}
	if len(v.values) > 0 {
		out = f.newLine(out, depth)
	}
	return append(out, v.open+2) // in ASCII the closing ones are two further on
}

// order returns the places of v's items in the order to write them.
func (f bodyForm) order(v jsonValue) []int {
	places := make([]int, len(v.values))
	for i := range places {
		places[i] = i
	}
	if f.sorted && v.open == '{' {
		names := make([][]byte, len(v.keys))
		for i, key := range v.keys {
			names[i] = appendLetters(nil, key.text, DetailUnescaped)
		}
		slices.SortStableFunc(places, func(a, b int) int { return bytes.Compare(names[a], names[b]) })
	}
	return places
}

func (f bodyForm) newLine(out []byte, depth int) []byte {
	if f.indent == "" || len(out) > maxRewritten {
		return out
	}
	out = append(out, '\n')
	for range depth {
		out = append(out, f.indent...)
	}
	return out
}

func (f bodyForm) appendScalar(out, text []byte) []byte {
	if f.letters == "" || text[0] != '"' {
		return append(out, text...)
	}
	return appendLetters(out, text, f.letters)
}

// appendLetters writes a JSON string anew in a library's way.
func appendLetters(out, quoted []byte, way Detail) []byte {
	out = append(out, '"')
	for s := quoted[1 : len(quoted)-1]; len(s) > 0; {
		var r rune
		var size int
		if s[0] == '\\' {
			r, size = readEscape(s)
		} else if r, size = utf8.DecodeRune(s); r == utf8.RuneError && size == 1 {
			r = -1 // no UTF-8: the byte stays
		}
		if r < 0 {
			out = append(out, s[:size]...)
		} else {
			out = appendLetter(out, r, way)
		}
		s = s[size:]
	}
	return append(out, '"')
}

// readEscape reads the escape at the beginning of s; a pair of surrogates is one
// letter, one that stands alone comes as it is.
func readEscape(s []byte) (r rune, size int) {
	if s[1] != 'u' {
		if i := bytes.IndexByte([]byte(shortNames), s[1]); i >= 0 {
			return rune(shortLetters[i]), 2
		}
		return rune(s[1]), 2 // " \ /
	}
	r = escapedUnit(s)
	if utf16.IsSurrogate(r) && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if pair := utf16.DecodeRune(r, escapedUnit(s[6:])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6
}

// escapedUnit reads the four digits of \uXXXX.
func escapedUnit(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[2:6]), 16, 16) // can't fail: the JSON is valid
	return rune(n)
}

// The short escapes: \b is the letter 8, and so on.
const (
	shortNames   = "bfnrt"
	shortLetters = "\b\f\n\r\t"
)

func appendLetter(out []byte, r rune, way Detail) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(out, '\\', byte(r))
	case r == '/' && way == DetailSlashes:
		return append(out, `\/`...)
	case r < ' ':
		if i := bytes.IndexRune([]byte(shortLetters), r); i >= 0 {
			return append(out, '\\', shortNames[i])
		}
		return appendUnit(out, r)
	case utf16.IsSurrogate(r):
		return appendUnit(out, r)
	case way == DetailHTML && (r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029'):
		return appendUnit(out, r)
	case r > '~' && (way == DetailASCII || way == DetailSlashes):
		if r == 0x7f { // neither Python nor PHP escapes it
			return append(out, 0x7f)
		}
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			return appendUnit(appendUnit(out, hi), lo)
		}
		return appendUnit(out, r)
	}
	return utf8.AppendRune(out, r)
}

func appendUnit(out []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
