package webhook

import (
	"crypto/tls"
	"errors"
	"os"
	"time"

	"mybots/delivery"
)

// link is a connection to a bot's endpoint. One at a time uses it: an exchange, or
// the watch while it is kept.
type link struct {
	conn    *tls.Conn
	botID   int64
	version int64     // of the settings that it was made under
	host    string    // the authority that it was made for
	made    time.Time // on the product's clock, before the name was looked up

	watched chan bool     // gets the watch's end: whether the connection is still good
	over    chan struct{} // closed by whoever takes the link out of the books
}

// end is when the link is too old to be used (W-02).
func (l *link) end() time.Time { return l.made.Add(delivery.KeepAliveTime) }

// drop closes the connection at once, without a word to a peer that may not be
// listening: tls.Conn's Close would wait for it.
func (l *link) drop() {
	// An error means that it is closed already.
	_ = l.conn.NetConn().Close()
}

// watch reads from a kept connection until it is claimed. A good one says nothing
// meanwhile; one that speaks out of turn or closes is closed, after gone was called.
func (l *link) watch(gone func()) {
	l.watched = make(chan bool, 1)
	go func() { // ends with claim, leave or the peer
		var b [1]byte
		n, err := l.conn.Read(b[:])
		good := n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
		if !good {
			gone()
			l.drop()
		}
		l.watched <- good
	}()
}

// claim ends the watch and tells whether the connection is still good. A peer can
// have closed it all the same: that shows in the exchange.
func (l *link) claim() bool {
	close(l.over)
	if l.conn.SetReadDeadline(longAgo) != nil || !<-l.watched || l.conn.SetReadDeadline(time.Time{}) != nil {
		l.drop()
		return false
	}
	return true
}

// leave ends the watch and closes the connection in order.
func (l *link) leave() {
	if l.claim() {
		// The farewell fits into any buffer; an error means that the peer was faster.
		_ = l.conn.Close()
	}
}
