package handlers

import (
	"net/http"

	"mybots/web"
)

// Site is the whole public side.
type Site struct {
	http.Handler
	Pages []Route // of the browser side, all of them
}

// Route is one address that people use, and what they must be allowed for it.
type Route struct {
	Pattern string // as the mux takes it: "GET /bots/{id}/connection"
	Right   web.Right
}

// table is the browser side's mux. Nothing gets into it but through page, so
// that no address is without its right.
type table struct {
	mux   *http.ServeMux
	front *web.Front
	list  []Route
}

func newTable(front *web.Front) *table { return &table{mux: http.NewServeMux(), front: front} }

// page serves pattern for those who have the right.
func (t *table) page(pattern string, right web.Right, h http.HandlerFunc) {
	t.mux.Handle(pattern, t.front.Require(right, h))
	t.list = append(t.list, Route{pattern, right})
}

// handler is the browser side with all that is around every page.
func (t *table) handler() http.Handler { return t.front.Browser(web.Pages(t.mux)) }
