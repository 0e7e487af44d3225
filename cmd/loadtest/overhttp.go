package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

const eventsPath = "/internal/v1/events"

// httpVariant sends requests of each events to the child's intake, each event
// for any of the many bots.
func (s *site) httpVariant(c *child, each int) variant {
	name := "single events"
	if each > 1 {
		name = "batches of " + strconv.Itoa(each)
	}
	return variant{part: partHTTP, name: name, callers: 64, each: each,
		start: func(ctx context.Context) (func() error, func() error, error) {
			conn, err := dial(ctx, c.address, 4<<10)
			if err != nil {
				return nil, nil, err
			}
			var body []byte
			call := func() error {
				body = appendBody(body[:0], each, s.anyBot)
				return s.send(conn, body)
			}
			return call, conn.Close, nil
		}}
}

// errBusy is a 503 of the server.
var errBusy = errors.New("intake answers 503")

// send gives intake a request and wants all its events to be taken.
func (s *site) send(conn *client, body []byte) error {
	status, answer, err := conn.post(eventsPath, s.key, body)
	if err != nil {
		return err
	}
	if status == http.StatusServiceUnavailable {
		return errBusy
	}
	if status != http.StatusOK || bytes.Contains(answer, []byte(`"error"`)) {
		return fmt.Errorf("intake answers %d %.300s", status, answer)
	}
	return nil
}
