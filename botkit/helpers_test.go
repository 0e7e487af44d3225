package botkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"mybots/botkit"
	"sync"
	"sync/atomic"
)

func rawJSON(text string) json.RawMessage { return json.RawMessage(text) }

// bufferLog logs everything into a buffer.
func bufferLog(to *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(&locked{to: to}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type locked struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// brokenStore is a store that fails until it works.
type brokenStore struct {
	botkit.MemoryStore
	works     atomic.Bool
	failLoads int32 // so many loads fail at first
	loads     atomic.Int32
}

func (s *brokenStore) Load(ctx context.Context) (botkit.Position, error) {
	if s.loads.Add(1) <= s.failLoads {
		return botkit.Position{}, errDisk
	}
	return s.MemoryStore.Load(ctx)
}

func (s *brokenStore) Save(ctx context.Context, p botkit.Position) error {
	if !s.works.Load() {
		return errDisk
	}
	return s.MemoryStore.Save(ctx, p)
}

// brokenInbox is an inbox that fails until it works.
type brokenInbox struct {
	*botkit.MemoryInbox
	works atomic.Bool
}

func (b *brokenInbox) Put(ctx context.Context, items []botkit.Item, p *botkit.Position) (int, error) {
	if !b.works.Load() {
		return 0, errDisk
	}
	return b.MemoryInbox.Put(ctx, items, p)
}

func (b *brokenInbox) Settle(ctx context.Context, eventID string, s botkit.Settlement) error {
	if !b.works.Load() {
		return errDisk
	}
	return b.MemoryInbox.Settle(ctx, eventID, s)
}
