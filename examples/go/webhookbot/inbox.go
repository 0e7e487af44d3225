package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// keptFor is how long handled events are remembered: one can come again for 7 days.
const keptFor = 8 * 24 * time.Hour

// The states of an update in the inbox.
const (
	waiting  = "waiting"
	handled  = "handled"
	setAside = "set aside"
)

// record is a line of the inbox's file: an update, or what became of it.
type record struct {
	EventID string    `json:"event_id"`
	Taken   time.Time `json:"taken,omitzero"`
	State   string    `json:"state"`
	Body    string    `json:"body,omitempty"` // until it is handled
}

// inbox keeps the updates that were taken in a file that is only appended to.
// What store returned nil for survives a power cut. One process uses a file.
type inbox struct {
	path string
	mu   sync.Mutex
	file *os.File
	size int64 // of what is known to be on the disk

	known map[string]*record
	order []*record // all of them, in the order of arrival
	done  int       // of order: so many at its beginning don't wait
}

// openInbox reads the file at path and writes it anew without what is too old.
func openInbox(path string, now time.Time) (*inbox, error) {
	in := &inbox{path: path, known: map[string]*record{}}
	file, err := os.Open(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		err = in.read(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
	return in, in.tidy(now)
}

func (in *inbox) read(file io.Reader) error {
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF { // a line without an end was cut by a crash: it was never answered with 200
			return nil
		}
		if err != nil {
			return err
		}
		var r record
		if json.Unmarshal(line, &r) != nil {
			return fmt.Errorf("line %d of %s isn't what this program writes", n, in.path)
		}
		in.apply(r)
	}
}

func (in *inbox) apply(r record) {
	if old := in.known[r.EventID]; old != nil {
		if old.State = r.State; r.State == handled {
			old.Body = ""
		}
		return
	}
	in.known[r.EventID] = &r
	in.order = append(in.order, &r)
}

// append writes a record so that it is on the disk when it returns.
func (in *inbox) append(r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	_, err = in.file.WriteAt(line, in.size)
	if err == nil {
		err = in.file.Sync()
	}
	if err != nil { // half a line would spoil the next one
		return errors.Join(err, in.file.Truncate(in.size))
	}
	in.size += int64(len(line))
	in.apply(r)
	return nil
}

// store keeps an update once; isNew tells whether it was unknown.
func (in *inbox) store(eventID string, body []byte, now time.Time) (isNew bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.known[eventID] != nil {
		return false, nil
	}
	return true, in.append(record{EventID: eventID, Taken: now, State: waiting, Body: string(body)})
}

// first returns the update that waits longest; ok is false if none does.
func (in *inbox) first() (r record, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for ; in.done < len(in.order); in.done++ {
		if r := in.order[in.done]; r.State == waiting {
			return *r, true
		}
	}
	return record{}, false
}

// settle says what became of an update: handled, or setAside for a person to look at.
func (in *inbox) settle(eventID, state string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.append(record{EventID: eventID, State: state})
}

// tidy writes the file anew without what was handled and is too old to come again.
func (in *inbox) tidy(now time.Time) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var kept []*record
	var text bytes.Buffer
	known := map[string]*record{}
	for _, r := range in.order {
		if r.State == handled && now.Sub(r.Taken) > keptFor {
			continue
		}
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
		kept, known[r.EventID] = append(kept, r), r
	}
	// Only its owner may read it: it holds what people wrote.
	file, err := os.OpenFile(in.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(text.Bytes()); err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(in.path+".new", in.path)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if in.file != nil {
		err = in.file.Close()
	}
	in.file, in.size, in.order, in.known, in.done = file, int64(text.Len()), kept, known, 0
	folder, openErr := os.Open(filepath.Dir(in.path)) // the new name has to reach the disk as well
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	return errors.Join(err, folder.Sync(), folder.Close())
}
