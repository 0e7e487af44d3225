package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/chat"
	"mybots/delivery/notice"
	"mybots/delivery/queue"
	"mybots/migrations/localpg"
)

const (
	demoEmail = "demo@example.com"
	demoSpace = "Demo space"
	demoFile  = "demo.json" // in the data folder: what was shown, to show it again
)

// demoSecrets are what the demo prints. The database has their hashes only, so
// they are kept beside the data, readable by its owner alone.
type demoSecrets struct {
	Password string `json:"password"`
	BotID    int64  `json:"bot_id"`
	Token    string `json:"token"`
	Key      string `json:"intake_key"`
}

// demo serves with a demo space, and prints how to go on (G-01). Where a server
// runs already on the same data it fills that one and stops.
func demo(ctx context.Context, w world, args []string) error {
	roles, err := parseRoles(w, "demo", args)
	if err != nil {
		return err
	}
	c, log, err := begin(w)
	if err != nil {
		return err
	}
	db, err := openForServer(ctx, c, log)
	if errors.Is(err, localpg.ErrInUse) {
		return demoBeside(ctx, w, c)
	}
	if err != nil {
		return err
	}
	err = runServer(ctx, c, log, db, roles, func(s *server, base *url.URL) error {
		secrets, err := s.fillDemo(ctx)
		if err != nil {
			return fmt.Errorf("fill the demo space: %w", err)
		}
		return greet(w.stdout, base, secrets, true)
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; set MYBOTS_ADDR to another address, e.g. MYBOTS_ADDR=127.0.0.1:8081", err)
	}
	return err
}

// demoBeside fills the database of a server that runs (G-08).
func demoBeside(ctx context.Context, w world, c config) error {
	_, log, err := begin(w)
	if err != nil {
		return err
	}
	db, err := openForCommand(ctx, c, log)
	if err != nil {
		return err
	}
	s, err := newServer(ctx, c, log, db)
	if err != nil {
		return errors.Join(err, db.close())
	}
	secrets, err := s.fillDemo(ctx)
	s.queue.Close()
	if err = errors.Join(err, db.close()); err != nil {
		return fmt.Errorf("fill the demo space: %w", err)
	}
	return greet(w.stdout, c.baseURL, secrets, false)
}

// fillDemo makes the demo space if there is none, and sees to it that the
// secrets that are printed are the present ones.
func (s *server) fillDemo(ctx context.Context) (demoSecrets, error) {
	path := filepath.Join(s.config.dataDir, demoFile)
	secrets, err := readDemo(path)
	if err != nil {
		return secrets, err
	}
	owner, err := s.bots.PersonByEmail(ctx, demoEmail)
	switch {
	case errors.Is(err, delivery.ErrNotFound):
		secrets, err = s.makeDemo(ctx)
	case err == nil:
		secrets, err = s.renewDemo(ctx, owner, secrets)
	}
	if err != nil {
		return secrets, err
	}
	text, err := json.MarshalIndent(secrets, "", "  ")
	if err != nil {
		return secrets, err
	}
	return secrets, keepFile(path, append(text, '\n'))
}

func readDemo(path string) (demoSecrets, error) {
	var secrets demoSecrets
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return secrets, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &secrets)
	}
	if err != nil {
		return secrets, fmt.Errorf("read %s: %w; remove the file to get new secrets", path, err)
	}
	return secrets, nil
}

// makeDemo makes the space, its owner and bots in telling states.
func (s *server) makeDemo(ctx context.Context) (demoSecrets, error) {
	secrets := demoSecrets{Password: strings.ToLower(rand.Text()[:12])}
	space, err := s.bots.AddSpace(ctx, demoSpace)
	if err != nil {
		return secrets, err
	}
	ownerID, err := s.bots.AddPerson(ctx, bots.NewPerson{Email: demoEmail, SpaceID: space, Role: "owner", Password: delivery.Secret(secrets.Password)})
	if err != nil {
		return secrets, err
	}
	if err := s.notices.OpenChat(ctx, space, ownerID, notice.English); err != nil {
		return secrets, err
	}
	key, err := s.bots.AddKey(ctx, "demo")
	if err != nil {
		return secrets, err
	}
	secrets.Key = string(key)
	add := func(username, name string) (bots.Bot, delivery.Secret, error) {
		return s.bots.Create(ctx, bots.NewBot{SpaceID: space, OwnerID: ownerID, Username: username, Name: name})
	}
	echo, token, err := add("demo_echo_bot", "Echo")
	if err != nil {
		return secrets, err
	}
	secrets.BotID, secrets.Token = echo.ID, string(token)
	by := bots.Actor{UserID: ownerID}
	for _, d := range []struct {
		username, name string
		waiting        int
		then           func(bots.Bot) error
	}{
		{"demo_orders_bot", "Orders", 37, nil},
		{"demo_desk_bot", "Help desk", 3, func(b bots.Bot) error { return s.bots.Pause(ctx, by, b.ID, true) }},
		{"demo_parcel_bot", "Parcels", 4, func(b bots.Bot) error { return s.receiveAndReject(ctx, b.ID) }},
		{"demo_busy_bot", "Busy line", delivery.MaxWaiting, nil},
	} {
		b, _, err := add(d.username, d.name)
		if err != nil {
			return secrets, err
		}
		if err := s.demoEvents(ctx, b.ID, ownerID, d.waiting); err != nil {
			return secrets, err
		}
		if d.then != nil {
			if err := d.then(b); err != nil {
				return secrets, err
			}
		}
	}
	return secrets, nil
}

// demoEvents writes n messages to a bot, through intake's own way in.
func (s *server) demoEvents(ctx context.Context, botID, ownerID int64, n int) error {
	now, chatID := s.clock.Now(), strconv.FormatInt(chat.TestChatID(ownerID), 10)
	for n > 0 {
		batch := make([]delivery.Event, min(n, delivery.MaxEvents))
		for i := range batch {
			at := now.Add(-time.Duration(n-i) * time.Second)
			payload := fmt.Sprintf(`{"message_id":"%d","chat":{"id":"%s","type":"private"},"from":{"id":"%d","display_name":"Anna","is_bot":false},"date":"%s","text":"Where is order %d?"}`,
				i+1, chatID, ownerID, delivery.FormatTime(at), 1000+n-i)
			batch[i] = delivery.Event{BotID: botID, EventID: uuid.NewString(), Type: "message", Date: at, Payload: []byte(payload)}
		}
		results, err := s.queue.Append(ctx, batch)
		if err != nil {
			return err
		}
		if last := results[len(results)-1]; last.Refusal != nil {
			return last.Refusal
		}
		n -= len(batch)
	}
	return nil
}

// receiveAndReject lets a program take what waits and reject the first of it.
func (s *server) receiveAndReject(ctx context.Context, botID int64) error {
	got, err := s.queue.Receive(ctx, botID, delivery.Poll{ConsumerID: "parcels-host1", Limit: delivery.MaxBatch}, "192.0.2.7")
	if err != nil {
		return err
	}
	once := queue.Once{BotID: botID, Key: "demo", Fingerprint: []byte("demo")}
	_, _, err = s.queue.Reject(ctx, once, delivery.Rejection{
		UpdateID: got.Batch.Updates[0].UpdateID, Reason: "Cannot read the parcel number", ConsumerID: "parcels-host1", Epoch: got.Batch.Lease.Epoch})
	return err
}

// renewDemo makes sure that what the file holds still opens the doors: another
// database, or one that was restored, knows other secrets.
func (s *server) renewDemo(ctx context.Context, owner bots.Person, secrets demoSecrets) (demoSecrets, error) {
	if _, err := s.bots.SignIn(ctx, demoEmail, secrets.Password); errors.Is(err, delivery.ErrNotFound) {
		secrets.Password = strings.ToLower(rand.Text()[:12])
		if err := s.bots.SetPassword(ctx, owner.ID, delivery.Secret(secrets.Password)); err != nil {
			return secrets, err
		}
	} else if err != nil {
		return secrets, err
	}
	if err := s.bots.CheckKey(ctx, delivery.Secret(secrets.Key)); errors.Is(err, delivery.ErrNotFound) {
		key, err := s.bots.AddKey(ctx, "demo")
		if err != nil {
			return secrets, err
		}
		secrets.Key = string(key)
	} else if err != nil {
		return secrets, err
	}
	if b, err := s.bots.ByToken(ctx, delivery.Secret(secrets.Token)); err == nil {
		secrets.BotID = b.ID
		return secrets, nil
	} else if !errors.Is(err, delivery.ErrNotFound) {
		return secrets, err
	}
	return s.renewToken(ctx, owner, secrets)
}

// renewToken gives the echo bot a new token; an owner who deleted it gets another one.
func (s *server) renewToken(ctx context.Context, owner bots.Person, secrets demoSecrets) (demoSecrets, error) {
	cards, err := s.bots.Cards(ctx, owner.ID)
	if err != nil {
		return secrets, err
	}
	for _, c := range cards {
		if c.Username == "demo_echo_bot" {
			token, err := s.bots.EmergencyReset(ctx, bots.Actor{UserID: owner.ID}, c.ID)
			secrets.BotID, secrets.Token = c.ID, string(token)
			return secrets, err
		}
	}
	b, token, err := s.bots.Create(ctx, bots.NewBot{SpaceID: owner.SpaceID, OwnerID: owner.ID, Username: "demo_echo_bot", Name: "Echo"})
	secrets.BotID, secrets.Token = b.ID, string(token)
	return secrets, err
}
