// Package words holds everything the pages say, in English and Russian
// (UI-01). Each room of the pages has its own pair of catalogs, for example
// frame.en.toml and frame.ru.toml; all of them are read.
package words

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"reflect"

	"github.com/BurntSushi/toml"
	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

// The languages of the pages.
const (
	English = "en"
	Russian = "ru"
)

//go:embed *.toml
var catalogs embed.FS

var (
	tags    = []language.Tag{language.English, language.Russian} // the first is the one for everybody else
	matcher = language.NewMatcher(tags)
	spoken  = speakers()
)

// speaker turns keys into one language.
type speaker struct {
	messages *i18n.Localizer
	numbers  *message.Printer
}

// speakers reads the catalogs; a broken one stops the program at its start.
func speakers() map[string]speaker {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("toml", toml.Unmarshal)
	names, err := fs.Glob(catalogs, "*.toml")
	if err != nil {
		panic(fmt.Errorf("list the catalogs: %w", err))
	}
	for _, name := range names {
		if _, err := bundle.LoadMessageFileFS(catalogs, name); err != nil {
			panic(fmt.Errorf("read the catalog %s: %w", name, err))
		}
	}
	all := map[string]speaker{}
	for _, tag := range tags {
		all[tag.String()] = speaker{i18n.NewLocalizer(bundle, tag.String()), message.NewPrinter(tag)}
	}
	return all
}

type langKey struct{}

// With returns a context whose pages speak lang; what isn't one of the two
// languages becomes English.
func With(ctx context.Context, lang string) context.Context {
	if _, ok := spoken[lang]; !ok {
		lang = English
	}
	return context.WithValue(ctx, langKey{}, lang)
}

// Lang returns the language of the context, English if it has none.
func Lang(ctx context.Context) string {
	if lang, ok := ctx.Value(langKey{}).(string); ok {
		return lang
	}
	return English
}

// Known reports whether lang is one of the languages.
func Known(lang string) bool {
	_, ok := spoken[lang]
	return ok
}

// Match finds the reader's language: the one they chose in their settings, else
// the cookie's, else the best of the browser's Accept-Language (UI-01).
func Match(choice, cookie, acceptLanguage string) string {
	if Known(choice) {
		return choice
	}
	if Known(cookie) {
		return cookie
	}
	wanted, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil || len(wanted) == 0 {
		return English
	}
	_, i, _ := matcher.Match(wanted...)
	return tags[i].String()
}

// T returns the message of that key. kv are the names and values of its
// placeholders: T(ctx, "bots.limit", "Limit", 10000); whole numbers are grouped
// for the language. A key that is in no catalog comes back as it is, and the
// package's test finds it in the sources.
func T(ctx context.Context, key string, kv ...any) string {
	s := spoken[Lang(ctx)]
	return s.say(key, i18n.LocalizeConfig{MessageID: key, TemplateData: s.data(kv)})
}

// N is T for messages with plural forms: the catalog has one and other, in
// Russian one, few, many and other, and says {{.Count}} where the number stands.
func N(ctx context.Context, key string, n int, kv ...any) string {
	s := spoken[Lang(ctx)]
	data := s.data(kv)
	data["Count"] = s.number(int64(n))
	return s.say(key, i18n.LocalizeConfig{MessageID: key, TemplateData: data, PluralCount: n})
}

// Number groups n for the language: 10,000 or 10 000 (with a space that doesn't break).
func Number(ctx context.Context, n int64) string { return spoken[Lang(ctx)].number(n) }

func (s speaker) number(n int64) string { return s.numbers.Sprint(number.Decimal(n)) }

// say returns the key itself for a message that no catalog has. The error of
// Localize is not looked at: it also comes with the other language's words,
// which are better than a key, and the tests compare the catalogs.
func (s speaker) say(key string, c i18n.LocalizeConfig) string {
	text, _ := s.messages.Localize(&c)
	if text == "" {
		return key
	}
	return text
}

// data makes the template's data out of names and values.
func (s speaker) data(kv []any) map[string]any {
	data := make(map[string]any, len(kv)/2+1)
	for i := 0; i+1 < len(kv); i += 2 {
		name, ok := kv[i].(string)
		if !ok {
			panic(fmt.Sprintf("words: placeholder name %v is no string", kv[i]))
		}
		data[name] = kv[i+1]
		if v := reflect.ValueOf(kv[i+1]); v.IsValid() && v.CanInt() {
			data[name] = s.number(v.Int())
		}
	}
	return data
}
