package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	views "mybots/views/reference"
	"mybots/views/words"
)

// fields lists the fields of an object in the order of the document, those of
// the objects within it behind their own, as "lease.epoch" and "skipped[].reason".
// What has a page of its own is led to instead.
func (a *api) fields(ctx context.Context, s *schema) []views.Field {
	var list []views.Field
	a.addFields(ctx, &list, "", s)
	return list
}

func (a *api) addFields(ctx context.Context, list *[]views.Field, prefix string, s *schema) {
	s = a.resolve(s)
	for _, p := range s.Properties {
		v := a.resolve(p.Value)
		f := views.Field{Name: prefix + p.Key, Type: a.typeWords(ctx, v), Limits: a.limits(ctx, v), Text: v.in(words.Lang(ctx)), Required: slices.Contains(s.Required, p.Key)}
		for _, k := range v.Values {
			f.Values = append(f.Values, views.Value{Value: k.Value, Text: k.in(words.Lang(ctx))})
		}
		inner, name := v, f.Name
		for inner.Items != nil {
			inner, name = a.resolve(inner.Items), name+"[]"
		}
		f.LinkURL, f.LinkText = a.described(ctx, p.Value)
		*list = append(*list, f)
		if f.LinkURL == "" && len(inner.Properties) > 0 {
			a.addFields(ctx, list, name+".", inner)
		}
	}
}

// described is where a field's own fields are told, "" where they follow.
func (a *api) described(ctx context.Context, s *schema) (url, text string) {
	for s.Items != nil {
		s = s.Items
	}
	to := a.resolve(s)
	switch {
	case to.Page == "":
		return "", ""
	case last(s.Ref) == "Update":
		return "/docs/" + to.Page, words.T(ctx, "reference.see_updates")
	}
	return "/docs/" + to.Page + "#message-object", words.T(ctx, "reference.see_message")
}

// typeWords says what a value is: "string of digits", "list of objects".
func (a *api) typeWords(ctx context.Context, s *schema) string {
	text := ""
	switch kind := s.Type[0]; {
	case kind == "array":
		inner := a.resolve(s.Items)
		if inner.Type[0] == "array" {
			text = words.T(ctx, "reference.type_rows")
		} else {
			text = words.T(ctx, "reference.type_list")
		}
	case kind == "object":
		text = words.T(ctx, "reference.type_object")
	case kind == "boolean":
		text = words.T(ctx, "reference.type_boolean")
	case kind == "integer":
		text = words.T(ctx, "reference.type_integer")
	case s.Format == "date-time":
		text = words.T(ctx, "reference.type_date")
	case s.Format == "uuid":
		text = words.T(ctx, "reference.type_uuid")
	case s.isID(a):
		text = words.T(ctx, "reference.type_id")
	default:
		text = words.T(ctx, "reference.type_string")
	}
	if slices.Contains(s.Type, "null") {
		return words.T(ctx, "reference.or_null", "Type", text)
	}
	return text
}

// isID tells whether the schema is that of all ids.
func (s *schema) isID(a *api) bool {
	id, ok := a.Components.Schemas.get("Id")
	return ok && s.Pattern == id.Pattern
}

// limits says what a value may be; "" for no limit.
func (a *api) limits(ctx context.Context, s *schema) string {
	var list []string
	switch {
	case s.Maximum != nil && s.Minimum != nil:
		list = append(list, words.T(ctx, "reference.from_to", "From", *s.Minimum, "To", *s.Maximum))
	case s.Minimum != nil && *s.Minimum > 0:
		list = append(list, words.T(ctx, "reference.at_least", "From", *s.Minimum))
	case s.MaxLength > 0 && s.MinLength > 0:
		list = append(list, words.T(ctx, "reference.length", "From", s.MinLength, "To", s.MaxLength))
	case s.MaxLength > 0:
		list = append(list, words.T(ctx, "reference.length_to", "To", s.MaxLength))
	}
	if s.Default != nil {
		list = append(list, words.T(ctx, "reference.default", "Value", string(s.Default)))
	}
	return strings.Join(list, ", ")
}

// pretty writes JSON over several lines, its numbers and texts as they are.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		panic("reference: an example isn't JSON: " + err.Error()) // a test checks them
	}
	return b.String()
}
