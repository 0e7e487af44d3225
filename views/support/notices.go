package support

import (
	"context"
	"time"

	"mybots/views/ui"
	"mybots/views/words"
)

// Way is a route that notices go by.
type Way struct {
	Code, Name string
	Stopped    bool
	Since      time.Time
	Reason     string // of the stop
	Portion    string // how many still go out before it stops again; "" for no such limit
	URL        string
}

// NoticeRow is a notice to an owner.
type NoticeRow struct {
	URL, ID         string
	Code            string // of the state
	Kind            ui.Kind
	State, What     string
	Bot, BotURL     string
	Route, To       string
	EventAt, SentAt time.Time
	NextAt          time.Time // of the next try; zero: none
	Tries           int64
	HTTPCode        string
	MessageID       string
	Key             string
	Reason          string
	Held            string // how many were held back; "" for none
}

// Notices lists notices.
type Notices struct {
	Ways   []Way
	May    bool
	States []ui.Option
	Routes []ui.Option
	Bot    string
	AllURL string // to all of them; "": these are all
	Total  string
	Rows   []NoticeRow
	Pages  Pages
	Back   Link
}

// Refused is a decision that was refused, with what was typed; the zero Refused is none.
type Refused struct {
	Deed      string // retry, readdress or close
	Code, Bad string // what is wrong
	Field     string // that it is wrong with
	Recipient string
	Reason    string
}

// wrong is what stands at the form's field, if that is what was refused.
func (f Refused) wrong(field string) string {
	if f.Field != field {
		return ""
	}
	return f.Bad
}

// why is the field for the reason of a deed.
func (f Refused) why(deed string, p ui.FieldProps) ui.FieldProps {
	p.ID, p.Name, p.MaxLength = deed+"-reason", "reason", 500
	if f.Deed == deed {
		p.Value, p.Error = f.Reason, f.wrong("reason")
	}
	return p
}

// NoticesCard is what a bot's page says of notices.
type NoticesCard struct {
	Rows   []NoticeRow
	AllURL string
	Nobody bool // the owner gets none: there is no way to them
}

// NoticesHome is what the first page says of notices.
type NoticesHome struct {
	Stopped []Way
	Persons string // how many wait for a person; "" for none
	URL     string
	AllURL  string
}

// Notice is one notice.
type Notice struct {
	Row       NoticeRow
	Facts     []Fact
	QueuedAt  time.Time
	TriedAt   time.Time
	Text      string
	Lang      string
	May       bool
	Open      bool // it can be closed, or sent to somebody else
	ForPerson bool // it can be sent again
	Maybe     bool // it may have arrived
	Routes    []ui.Option
	Refused   Refused
	Back      Link
}

// portions are how many notices a route may send before it stops again.
func portions(ctx context.Context) []ui.Option {
	return []ui.Option{
		{Value: "10", Label: words.T(ctx, "notices.portion_n", "N", 10), Selected: true},
		{Value: "100", Label: words.T(ctx, "notices.portion_n", "N", 100)},
		{Value: "0", Label: words.T(ctx, "notices.portion_all")},
	}
}
