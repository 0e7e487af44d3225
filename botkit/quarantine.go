package botkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Quarantine keeps updates that can't be read as files in a folder that only
// its owner may read: they hold what people wrote. Purge what is no longer
// needed.
type Quarantine struct{ folder, bot string }

// Quarantined is the content of a quarantine's file.
type Quarantined struct {
	Bot      string    `json:"bot"`
	UpdateID ID        `json:"update_id"`
	EventID  string    `json:"event_id"`
	Type     string    `json:"type"`
	Path     string    `json:"path"`
	Problem  string    `json:"problem"`
	SHA256   string    `json:"sha256"` // of Raw
	Stored   time.Time `json:"stored"`
	Raw      []byte    `json:"raw"` // base64 in the file, so that every byte survives
}

// OpenQuarantine makes the folder if it is missing. bot names the bot whose
// updates these are, since two bots have updates with the same ids.
func OpenQuarantine(folder, bot string) (*Quarantine, error) {
	name := strings.Map(func(r rune) rune {
		if visible(string(r)) && !strings.ContainsRune(`/\:*?"<>|.`, r) {
			return r
		}
		return '_'
	}, bot)
	if name == "" {
		return nil, errors.New("the quarantine needs the bot's name")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("the quarantine: %w", err)
	}
	return &Quarantine{folder, name}, nil
}

// Policy is a DecodePolicy that stores the update and skips it.
func (q *Quarantine) Policy(_ context.Context, e *DecodeError) (Verdict, error) {
	if err := q.Put(e); err != nil {
		return Stop, err
	}
	return Skip, nil
}

// Put stores an update; when it returns nil, the bytes survive a power cut. The
// same update again changes nothing.
func (q *Quarantine) Put(e *DecodeError) error {
	sum := sha256.Sum256(e.Raw)
	hash := hex.EncodeToString(sum[:])
	path := filepath.Join(q.folder, fmt.Sprintf("%s-%s-%s.json", q.bot, e.UpdateID, hash[:16]))
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	text, err := json.MarshalIndent(Quarantined{
		Bot: q.bot, UpdateID: e.UpdateID, EventID: e.EventID, Type: e.Type, Path: e.Path, Problem: e.Problem,
		SHA256: hash, Stored: time.Now().UTC(), Raw: e.Raw,
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("quarantine update %s: %w", e.UpdateID, err)
	}
	if err := writeFile(path, append(text, '\n')); err != nil {
		return fmt.Errorf("quarantine update %s: %w", e.UpdateID, err)
	}
	return nil
}

// Purge removes what was stored before a time, and says how many files that was.
func (q *Quarantine) Purge(before time.Time) (removed int, err error) {
	paths, err := filepath.Glob(filepath.Join(q.folder, q.bot+"-*.json"))
	for _, path := range paths {
		info, statErr := os.Stat(path)
		if errors.Is(statErr, fs.ErrNotExist) || statErr == nil && !info.ModTime().Before(before) {
			continue
		}
		if removeErr := errors.Join(statErr, os.Remove(path)); removeErr != nil {
			err = errors.Join(err, removeErr)
			continue
		}
		removed++
	}
	return removed, err
}

// writeFile replaces a file, so that a crash leaves the old one or the new one,
// on the disk, never a mix. Only its owner may read it.
func writeFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	if runtime.GOOS == "windows" {
		return nil // it has no way to sync a folder
	}
	folder, err := os.Open(filepath.Dir(path)) // the new name has to reach the disk as well
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
