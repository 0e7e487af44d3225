package queue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maskLines is how much of a payload's shape is shown.
const maskLines = 500

// Mask returns the shape of a JSON text, indented: its keys, its objects and
// arrays, true, false and null. Of each text and number it tells the class of its
// length alone: "…11–50" is a text of 11 to 50 characters, #4–9 a number of 4 to
// 9 digits. What is longer than a few hundred lines ends with "…".
func Mask(payload []byte) string {
	m := masker{in: json.NewDecoder(bytes.NewReader(payload))}
	m.in.UseNumber()
	if err := m.value(0); err != nil {
		return "…" // stored payloads are JSON; whatever this is, nothing of it is shown
	}
	return m.out.String()
}

type masker struct {
	in    *json.Decoder
	out   strings.Builder
	lines int
}

// full tells whether enough is shown; the rest is read on without a word.
func (m *masker) full() bool { return m.lines >= maskLines }

func (m *masker) write(text string) {
	if !m.full() {
		m.out.WriteString(text)
	}
}

func (m *masker) line(depth int) {
	if m.full() {
		return
	}
	if m.lines++; m.full() {
		m.out.WriteString("\n…")
		return
	}
	m.out.WriteString("\n" + strings.Repeat("  ", depth))
}

func (m *masker) value(depth int) error {
	token, err := m.in.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		return m.list(t, depth)
	case string:
		m.write(strconv.Quote(maskText(utf8.RuneCountInString(t))))
	case json.Number:
		m.write(maskNumber(t.String()))
	default: // true, false, null
		if t == nil {
			t = "null"
		}
		m.write(fmt.Sprint(t))
	}
	return nil
}

// list masks an object or an array, whose opening was read.
func (m *masker) list(open json.Delim, depth int) error {
	m.write(open.String())
	empty := true
	for m.in.More() {
		if !empty {
			m.write(",")
		}
		empty = false
		m.line(depth + 1)
		if open == '{' {
			key, err := m.in.Token()
			if err != nil {
				return err
			}
			m.write(strconv.Quote(fmt.Sprint(key)) + ": ")
		}
		if err := m.value(depth + 1); err != nil {
			return err
		}
	}
	closing, err := m.in.Token()
	if err != nil {
		return err
	}
	if !empty {
		m.line(depth)
	}
	m.write(fmt.Sprint(closing))
	return nil
}

// maskText tells the class of a text's length.
func maskText(runes int) string {
	switch {
	case runes == 0:
		return ""
	case runes <= 10:
		return "…1–10"
	case runes <= 50:
		return "…11–50"
	case runes <= 200:
		return "…51–200"
	case runes <= 1000:
		return "…201–1000"
	}
	return "…1001+"
}

// maskNumber tells the class of a number's digits.
func maskNumber(text string) string {
	digits := 0
	for _, c := range text {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	switch {
	case digits <= 3:
		return "#1–3"
	case digits <= 9:
		return "#4–9"
	}
	return "#10+"
}
