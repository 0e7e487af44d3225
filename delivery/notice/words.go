package notice

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"

	"mybots/delivery"
)

// The templates stand apart from the events: one file a language (N-02).
//
//go:embed words/*.toml
var templateFiles embed.FS

// The languages of notices.
const (
	English = "en"
	Russian = "ru"
)

// template is all that notices say in one language.
type template struct {
	say     *i18n.Localizer
	version string // of the file: the beginning of its SHA-256, so that no change keeps it
}

var templates = readTemplates()

// readTemplates reads the files; a broken one stops the program at its start.
func readTemplates() map[string]template {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("toml", toml.Unmarshal)
	all := map[string]template{}
	for _, lang := range []string{English, Russian} {
		name := "words/notice." + lang + ".toml"
		content, err := templateFiles.ReadFile(name)
		if err != nil {
			panic(fmt.Errorf("read the template %s: %w", name, err))
		}
		if _, err := bundle.ParseMessageFileBytes(content, name); err != nil {
			panic(fmt.Errorf("read the template %s: %w", name, err))
		}
		// A checkout may end lines in another way.
		sum := sha256.Sum256(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")))
		all[lang] = template{i18n.NewLocalizer(bundle, lang), hex.EncodeToString(sum[:4])}
	}
	return all
}

// message is a notice as it is read.
type message struct{ text, button, template string }

// render writes a notice in a language: what happened, to what, when, what to
// do, and how many were held back before it (N-01, N-03). Of all that is known of
// the owner and the bot only the bot's name is in it (N-09).
func render(lang, botName string, t delivery.Trouble, held int) (message, error) {
	template, ok := templates[lang]
	if !ok {
		return message{}, fmt.Errorf("notices have no language %q", lang)
	}
	var failed error
	say := func(key string, count any, data map[string]any) string {
		text, err := template.say.Localize(&i18n.LocalizeConfig{MessageID: key, TemplateData: data, PluralCount: count})
		if err != nil && failed == nil {
			failed = fmt.Errorf("the notice's words %s in %s: %w", key, lang, err)
		}
		return text
	}
	kind := string(t.Kind)
	data := map[string]any{
		"Bot": botName, "Update": strconv.FormatInt(t.UpdateID, 10), "At": t.At.UTC().Format("2006-01-02 15:04:05"), "Cause": "",
	}
	cause := kind + "_cause_" + t.Code
	if status, ok := strings.CutPrefix(t.Code, "HTTP_"); ok && !known(cause) {
		data["Status"], cause = status, kind+"_cause_status"
	}
	data["Cause"] = say(cause, nil, data)
	text := say(kind, nil, data)
	if held > 0 {
		data["Count"] = held
		text += "\n" + say(kind+"_held", held, data)
	}
	return message{text: text, button: say("button", nil, nil), template: template.version}, failed
}

// causes are the codes that have words of their own.
var causes = readCauses()

func readCauses() map[string]bool {
	content, err := templateFiles.ReadFile("words/notice.en.toml")
	if err != nil {
		panic(fmt.Errorf("read the causes: %w", err))
	}
	var keys map[string]any
	if err := toml.Unmarshal(content, &keys); err != nil {
		panic(fmt.Errorf("read the causes: %w", err))
	}
	all := map[string]bool{}
	for key := range keys {
		all[key] = true
	}
	return all
}

func known(key string) bool { return causes[key] }

// windowStart writes the start of a window as it stands in a key.
func windowStart(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
