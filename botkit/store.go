package botkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Position is where a bot is in its queue. Epoch and offset belong together: an
// offset confirms only under the epoch that it was received with (P-06, P-07).
type Position struct {
	Bot    string `json:"bot"`    // whose position this is; not the token
	Epoch  ID     `json:"epoch"`  // of the last lease
	Offset ID     `json:"offset"` // the next update wanted; "" asks the server
}

// Store keeps the position of one bot over restarts. Save stores all of it, or
// returns an error and stores none.
type Store interface {
	// Load returns the zero Position if none was saved.
	Load(ctx context.Context) (Position, error)
	Save(ctx context.Context, p Position) error
}

// MemoryStore is a Store that forgets when the process ends: the server still
// knows what was confirmed, and after a restart the bot waits for its own former
// lease to end. The zero value is ready.
type MemoryStore struct {
	mu sync.Mutex
	p  Position
}

// Load implements Store.
func (s *MemoryStore) Load(context.Context) (Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p, nil
}

// Save implements Store.
func (s *MemoryStore) Save(_ context.Context, p Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p = p
	return nil
}

// FileStore is a Store in one small file. What Save returned nil for is on the
// disk. One process uses a file.
type FileStore struct {
	path string
	mu   sync.Mutex
}

// NewFileStore returns a store in the file at path, which may not exist yet; its
// folder must.
func NewFileStore(path string) *FileStore { return &FileStore{path: path} }

// Load implements Store. A file that holds no position is an error: mend or
// remove it; the server knows what was confirmed.
func (s *FileStore) Load(context.Context) (Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Position{}, nil
	}
	if err != nil {
		return Position{}, fmt.Errorf("load the position: %w", err)
	}
	var p Position
	if json.Unmarshal(text, &p) != nil || !p.sound() {
		return Position{}, fmt.Errorf("%s holds no position: remove it, and the bot goes on from the server's", s.path)
	}
	return p, nil
}

// Save implements Store.
func (s *FileStore) Save(_ context.Context, p Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("save the position: %w", err)
	}
	if err := writeFile(s.path, append(text, '\n')); err != nil {
		return fmt.Errorf("save the position: %w", err)
	}
	return nil
}

func (p Position) sound() bool {
	return (p.Epoch == "" || p.Epoch.Valid()) && (p.Offset == "" || p.Offset.Valid())
}
