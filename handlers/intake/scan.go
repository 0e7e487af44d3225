package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Splitting JSON without recursion. A payload may nest as deep as its bytes
// allow; the library's readers stop at a depth of 10,000, and would refuse the
// whole batch for one such event (I-01). So the text is only cut into its parts
// here, and each part is then judged by the library.

// maxDepth is what the library's readers take.
const maxDepth = 10_000

var errSyntax = errors.New("its syntax is wrong")

// valid tells whether a body is JSON, as far as that can be told of one that
// nests too deep.
func valid(body []byte) bool {
	return json.Valid(body) || depth(body) >= maxDepth
}

// depth is how deep a text nests.
func depth(b []byte) int {
	now, deepest := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i) - 1
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// stringEnd returns the place behind the string that begins at i; the text's
// end when it isn't closed.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// valueEnd returns the place behind the value that begins at i.
func valueEnd(b []byte, i int) int {
	open := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i) - 1
			if open == 0 {
				return i + 1
			}
		case '{', '[':
			open++
		case '}', ']':
			if open == 0 {
				return i // of a scalar, at the end of what it stands in
			}
			if open--; open == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if open == 0 {
				return i
			}
		}
	}
	return i
}

// cut walks over what stands between brackets: it calls member at the beginning
// of each and goes on where that says. Nothing may follow the last bracket.
func cut(b []byte, first, last byte, member func(i int) (end int, err error)) error {
	i := space(b, 0)
	if i == len(b) || b[i] != first {
		return errSyntax
	}
	for i = space(b, i+1); i < len(b) && b[i] != last; {
		end, err := member(i)
		if err != nil {
			return err
		}
		if i = space(b, end); i < len(b) && b[i] == ',' {
			if i = space(b, i+1); i < len(b) && b[i] == last {
				return errSyntax
			}
		} else if i == len(b) || b[i] != last {
			return errSyntax
		}
	}
	if i == len(b) || space(b, i+1) != len(b) {
		return errSyntax
	}
	return nil
}

func space(b []byte, i int) int {
	return len(b) - len(bytes.TrimLeft(b[i:], " \t\r\n"))
}

// elements cuts an array into its values.
func elements(array []byte) (list []jsontext.Value, err error) {
	err = cut(array, '[', ']', func(i int) (int, error) {
		end := valueEnd(array, i)
		list = append(list, array[i:end])
		return end, nil
	})
	return list, err
}

// object cuts an object into its fields. No key may come twice. The fields but
// the one that is named are checked for their syntax; that one is its reader's.
func object(text []byte, unchecked string) (map[string]jsontext.Value, error) {
	fields := map[string]jsontext.Value{}
	err := cut(text, '{', '}', func(i int) (int, error) {
		if text[i] != '"' {
			return 0, errSyntax
		}
		end := stringEnd(text, i)
		name, err := jsontext.AppendUnquote(nil, text[i:end])
		if err != nil {
			return 0, errSyntax
		}
		key := string(name)
		if _, twice := fields[key]; twice {
			return 0, fmt.Errorf("the key %.40q comes twice", key)
		}
		i = space(text, end)
		if i == len(text) || text[i] != ':' {
			return 0, errSyntax
		}
		i = space(text, i+1)
		end = valueEnd(text, i)
		if key != unchecked && !json.Valid(text[i:end]) {
			return 0, errSyntax
		}
		fields[key] = text[i:end]
		return end, nil
	})
	return fields, err
}
