package handlers

import (
	"context"

	"mybots/delivery/bots"
	"mybots/web"
)

// sessionRows gives web the sessions in its own words.
type sessionRows struct{ *bots.Store }

// Session returns a session with its person; delivery.ErrNotFound when there is none.
func (s sessionRows) Session(ctx context.Context, hash []byte) (web.Session, error) {
	row, err := s.Store.Session(ctx, hash)
	if err != nil {
		return web.Session{}, err
	}
	p := row.Person
	return web.Session{
		Person:  web.Person{ID: p.ID, Email: p.Email, Role: p.Role, SpaceID: p.SpaceID, SpaceName: p.SpaceName, Language: p.Language, Zone: p.Zone, MayAct: p.MayAct, MayUnmask: p.MayUnmask},
		Created: row.Created, Seen: row.Seen, Flash: row.Flash,
	}, nil
}

// platformState gives web the platform's maintenance in its own words.
type platformState struct{ *bots.Store }

// Maintenance tells what is said about maintenance now.
func (p platformState) Maintenance(ctx context.Context) (web.Maintenance, error) {
	m, err := p.Store.Maintenance(ctx)
	return web.Maintenance{On: m.On, Text: m.Text, TextRU: m.TextRU, Since: m.Since}, err
}
