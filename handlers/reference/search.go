package reference

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	views "mybots/views/reference"
	"mybots/views/words"
)

// What a search looks at and shows.
const (
	maxQuery  = 100 // characters
	maxWords  = 8
	maxFound  = 30
	excerptAt = 60 // characters before the first match
	excerpt   = 200
)

// entry is one section in both languages: people look for the English name of a
// thing in the Russian text, too.
type entry struct {
	shown map[string]shown // by language
}

type shown struct {
	views.Found
	text  string // as it is read
	title string // in lower case
	lower string // title and text, in lower case
}

// index has all sections of all pages.
type index []entry

// newIndex takes the pages in each language; they have the same sections.
func newIndex(libraries map[string]library) index {
	var x index
	for i, p := range libraries[words.English] {
		for j := range p.sections {
			e := entry{shown: map[string]shown{}}
			for lang, l := range libraries {
				p := l[i]
				to := section(p, p.sections[j])
				text := p.sections[j].text
				if p.sections[j].id == "" {
					text = p.lead + " " + text
				}
				e.shown[lang] = shown{
					Found: views.Found{URL: to.URL, Title: to.Text, Page: p.title}, text: text,
					title: strings.ToLower(to.Text), lower: strings.ToLower(to.Text + " " + text),
				}
			}
			x = append(x, e)
		}
	}
	return x
}

// find returns the sections that have every word of the query, those with it in
// the title first, in the language of the reader.
func (x index) find(lang, query string) (found []views.Found, more bool) {
	wanted := stems(query)
	if len(wanted) == 0 {
		return nil, false
	}
	var inTitle, inText []views.Found
	for _, e := range x {
		for _, l := range []string{lang, words.English, words.Russian} {
			if !hasAll(e.shown[l].lower, wanted) {
				continue
			}
			f := e.shown[lang].Found
			f.Excerpt = cut(e.shown[lang].text, wanted)
			if hasAll(e.shown[l].title, wanted) {
				inTitle = append(inTitle, f)
			} else {
				inText = append(inText, f)
			}
			break
		}
	}
	found = slices.Concat(inTitle, inText)
	return found[:min(len(found), maxFound)], len(found) > maxFound
}

// stems are the words of a query in lower case. A long Russian word loses its
// ending, so that подпись finds подписи.
func stems(query string) []string {
	var list []string
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if r := []rune(word); len(r) > 4 && unicode.Is(unicode.Cyrillic, r[len(r)-1]) {
			word = string(r[:len(r)-min(2, len(r)-4)])
		}
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
		if len(list) == maxWords {
			break
		}
	}
	return list
}

func hasAll(text string, wanted []string) bool {
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// cut returns the part of the text around the first of the words.
func cut(text string, wanted []string) string {
	runes := []rune(text)
	from := 0
	lower := strings.ToLower(text)
	for _, w := range wanted {
		if i := strings.Index(lower, w); i >= 0 {
			from = max(0, utf8.RuneCountInString(lower[:i])-excerptAt)
			break
		}
	}
	from = min(from, len(runes))
	to := min(len(runes), from+excerpt)
	if from > 0 { // at a word's beginning
		if i := strings.IndexRune(string(runes[from:to]), ' '); i >= 0 {
			from += utf8.RuneCountInString(string(runes[from:to])[:i]) + 1
		}
	}
	short := strings.TrimSpace(string(runes[from:to]))
	if from > 0 {
		short = "… " + short
	}
	if to < len(runes) { // at a word's end
		short = short[:max(strings.LastIndexByte(short, ' '), 0)] + " …"
	}
	return short
}
