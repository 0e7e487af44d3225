package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"mybots/delivery"
)

// client is one HTTP/1.1 connection that is kept. It costs less than net/http's,
// so that more of the machine is left for what is measured, and knows no more
// than the server's own answers need.
type client struct {
	net.Conn
	host   string
	in     *bufio.Reader
	out    []byte
	answer []byte
}

func dial(ctx context.Context, address string, buffer int) (*client, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{Conn: c, host: address, in: bufio.NewReaderSize(c, buffer)}, nil
}

// post sends a JSON body and returns the answer, which holds until the next call.
func (c *client) post(path string, token delivery.Secret, body []byte) (status int, answer []byte, err error) {
	b := append(c.out[:0], "POST "+path+" HTTP/1.1\r\nHost: "+c.host+"\r\nAuthorization: Bearer "+string(token)+
		"\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	c.out = append(b, body...)
	if _, err := c.Write(c.out); err != nil {
		return 0, nil, err
	}
	return c.read()
}

func (c *client) read() (status int, answer []byte, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, nil, fmt.Errorf("the server answers %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, fmt.Errorf("the server answers %q", line)
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, nil, fmt.Errorf("the server's answer has the length %q", value)
			}
		}
	}
	if length < 0 {
		return 0, nil, fmt.Errorf("the server's answer says no length")
	}
	if cap(c.answer) < length {
		c.answer = make([]byte, length)
	}
	c.answer = c.answer[:length]
	_, err = io.ReadFull(c.in, c.answer)
	return status, c.answer, err
}
