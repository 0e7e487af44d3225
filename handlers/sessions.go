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
		Person:  web.Person{ID: p.ID, Email: p.Email, Role: p.Role, SpaceID: p.SpaceID, SpaceName: p.SpaceName, Language: p.Language},
		Created: row.Created, Seen: row.Seen, Flash: row.Flash,
	}, nil
}
