package webhook

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"mybots/delivery"
)

// maxHead are the bytes of an answer before its body, the 1xx ones included.
const maxHead = 16 << 10

// writeGrace is how long the end of a request may take once its answer is there.
const writeGrace = 50 * time.Millisecond

// errTooLong ends an answer that is longer than what is read of one.
var errTooLong = errors.New("the answer is too long")

// errNoAnswer: what came is no HTTP answer.
var errNoAnswer = errors.New("no HTTP answer")

// longAgo is a deadline that ends what is going on.
var longAgo = time.Unix(1, 0)

// reply is what one exchange came to.
type reply struct {
	status     int    // of the final status line
	final      bool   // whether there was one
	retryAfter string // the header, if the head came whole
	read       int    // bytes that came
	clean      bool   // the exchange ended as it should; the connection can carry another
}

// exchange writes a request and reads its answer, at most delivery.MaxAnswer bytes
// of it, until it is whole, the connection breaks or ctx ends. The answer is read
// while the request is written: it can come early.
//
// It speaks HTTP/1.1 itself rather than by http.Transport. That one has no way to
// tell a status line before the whole head is there (W-08), dials on after a request
// has ended, and prints what a server says out of turn to the log.
func (l *link) exchange(ctx context.Context, request []byte) reply {
	uncut := context.AfterFunc(ctx, func() {
		// An error means that the connection is closed, and so is what it would end.
		_ = l.conn.SetDeadline(longAgo)
	})
	wrote := make(chan struct{})
	var writeErr error // once wrote is closed
	go func() {        // ends when all is written, at the deadline, or with the connection
		defer close(wrote)
		_, writeErr = l.conn.Write(request)
	}()

	in := &tap{from: l.conn, left: maxHead}
	r := in.reply()
	if r.clean {
		// A server may answer before it has read all, and then read the rest. It gets a
		// moment; a connection that isn't read isn't worth waiting for.
		moment := time.NewTimer(writeGrace)
		defer moment.Stop()
		select {
		case <-wrote:
			if r.clean = writeErr == nil && uncut(); r.clean {
				return r
			}
		case <-moment.C:
			r.clean = false
		}
	}
	uncut()
	l.drop()
	<-wrote
	return r
}

// tap reads an answer and never more of it than it may.
type tap struct {
	from io.Reader
	left int // bytes that may still be read
	read int
}

// Read implements io.Reader.
func (t *tap) Read(p []byte) (int, error) {
	if t.left == 0 {
		return 0, errTooLong
	}
	n, err := t.from.Read(p[:min(len(p), t.left)])
	t.left -= n
	t.read += n
	return n, err
}

// reply reads the answer. Once a final status line came, that status counts,
// whatever becomes of the rest (W-08); so errors behind it only mean that the
// connection isn't used again.
func (t *tap) reply() (r reply) {
	defer func() { r.read = t.read }()
	b := bufio.NewReader(t)
	status, err := finalStatus(b)
	if err != nil {
		return r
	}
	r.status, r.final = status.code, true
	// The rest is the standard library's: it knows where a body ends. It sees the
	// status line without the words behind, which mean nothing and can be anything.
	rest := bufio.NewReader(io.MultiReader(strings.NewReader(status.line()), b))
	answer, err := http.ReadResponse(rest, &http.Request{Method: http.MethodPost})
	if err != nil {
		return r
	}
	r.retryAfter = answer.Header.Get("Retry-After")
	t.left += delivery.MaxAnswer - maxHead
	// Body.Close would only read on.
	_, err = io.Copy(io.Discard, answer.Body)
	r.clean = err == nil && !answer.Close && status.code != http.StatusSwitchingProtocols &&
		b.Buffered() == 0 && rest.Buffered() == 0
	return r
}

// statusLine is the part of a status line that means something.
type statusLine struct {
	version string // HTTP/1.1 or HTTP/1.0
	digits  string
	code    int
}

func (s statusLine) line() string { return s.version + " " + s.digits + " \r\n" }

// interim tells whether another answer follows. 101 is none of those: nobody asked
// for another protocol.
func (s statusLine) interim() bool {
	return s.code/100 == 1 && s.code != http.StatusSwitchingProtocols
}

// finalStatus reads up to the end of the first status line that isn't an interim
// one. Half a line is none.
func finalStatus(b *bufio.Reader) (statusLine, error) {
	for {
		line, err := readLine(b)
		if err != nil {
			return statusLine{}, err
		}
		status, ok := parseStatus(line)
		if !ok {
			return statusLine{}, errNoAnswer
		}
		if !status.interim() {
			return status, nil
		}
		for line != "" { // the headers of an interim answer
			if line, err = readLine(b); err != nil {
				return statusLine{}, err
			}
		}
	}
}

// readLine returns a line without its end. The tap bounds its length.
func readLine(b *bufio.Reader) (string, error) {
	line, err := b.ReadString('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}

// parseStatus reads "HTTP/1.x ddd", with or without words behind.
func parseStatus(line string) (s statusLine, ok bool) {
	version, rest, ok := strings.Cut(line, " ")
	if !ok || version != "HTTP/1.1" && version != "HTTP/1.0" {
		return s, false
	}
	digits, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if len(digits) != 3 || strings.Trim(digits, "0123456789") != "" {
		return s, false
	}
	code := int(digits[0]-'0')*100 + int(digits[1]-'0')*10 + int(digits[2]-'0')
	return statusLine{version: version, digits: digits, code: code}, true
}
