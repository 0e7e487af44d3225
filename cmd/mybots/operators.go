package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"mybots/delivery"
	"mybots/delivery/bots"
	"mybots/delivery/queue"
)

// The operators' commands (G-01, G-08): each opens the database, does one thing
// and prints what came of it, with --json as one JSON object.

// withStore runs do on the stores of the configured database.
func withStore(ctx context.Context, w world, do func(*bots.Store) error) (err error) {
	c, err := readConfig(w.environ)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(w.stderr, &slog.HandlerOptions{Level: max(c.logLevel, slog.LevelWarn)}))
	db, err := openForCommand(ctx, c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	clock, err := startClock(ctx, c, db.DB)
	if err != nil {
		return err
	}
	q := queue.New(db.DB, clock, func(int64) {})
	defer q.Close()
	// Nothing that these commands do is sealed.
	return do(bots.New(db.DB, clock, q, nil))
}

// print writes the result: JSON, or a line a field.
func printResult(w io.Writer, asJSON bool, fields ...[2]string) error {
	if !asJSON {
		for _, f := range fields {
			if _, err := fmt.Fprintf(w, "%s: %s\n", f[0], f[1]); err != nil {
				return err
			}
		}
		return nil
	}
	object := map[string]string{}
	for _, f := range fields {
		object[f[0]] = f[1]
	}
	return json.NewEncoder(w).Encode(object)
}

func spaceAdd(ctx context.Context, w world, args []string) error {
	var name string
	var asJSON bool
	err := parse(w, "space add", args, func(f *flag.FlagSet) {
		f.StringVar(&name, "name", "", "the space's name")
		f.BoolVar(&asJSON, "json", false, "print JSON")
	})
	if err != nil {
		return err
	}
	return withStore(ctx, w, func(s *bots.Store) error {
		id, err := s.AddSpace(ctx, name)
		if err != nil {
			return flagError("space add", err)
		}
		return printResult(w.stdout, asJSON, [2]string{"space_id", strconv.FormatInt(id, 10)})
	})
}

func userAdd(ctx context.Context, w world, args []string) error {
	var n bots.NewPerson
	var space, rights string
	var fromStdin, asJSON bool
	err := parse(w, "user add", args, func(f *flag.FlagSet) {
		f.StringVar(&n.Email, "email", "", "the person's address, which signs in")
		f.StringVar(&space, "space", "", "the space's id")
		f.StringVar(&n.Role, "role", "", "owner, support or admin")
		f.StringVar(&rights, "rights", "", "what a support person may do: look, act, unmask, separated by commas; default look,act")
		f.BoolVar(&fromStdin, "password-stdin", false, "read the password, one line, from standard input")
		f.BoolVar(&asJSON, "json", false, "print JSON")
	})
	if err != nil {
		return err
	}
	if n.Password, err = readPassword("user add", w, fromStdin); err != nil {
		return err
	}
	if n.SpaceID, err = idFlag("user add", "space", space); err != nil {
		return err
	}
	if rights == "" && n.Role == "support" {
		rights = "look,act"
	}
	if rights != "" {
		n.Rights = strings.Split(rights, ",")
	}
	return withStore(ctx, w, func(s *bots.Store) error {
		id, err := s.AddPerson(ctx, n)
		if err != nil {
			return flagError("user add", err)
		}
		return printResult(w.stdout, asJSON, [2]string{"user_id", strconv.FormatInt(id, 10)})
	})
}

func botAdd(ctx context.Context, w world, args []string) error {
	var n bots.NewBot
	var space, owner string
	var asJSON bool
	err := parse(w, "bot add", args, func(f *flag.FlagSet) {
		f.StringVar(&space, "space", "", "the space's id")
		f.StringVar(&owner, "owner", "", "the owner's address")
		f.StringVar(&n.Username, "username", "", "the bot's username")
		f.StringVar(&n.Name, "name", "", "the bot's name")
		f.BoolVar(&asJSON, "json", false, "print JSON")
	})
	if err != nil {
		return err
	}
	if n.SpaceID, err = idFlag("bot add", "space", space); err != nil {
		return err
	}
	return withStore(ctx, w, func(s *bots.Store) error {
		p, err := s.PersonByEmail(ctx, owner)
		if err != nil {
			return flagError("bot add: --owner", err)
		}
		n.OwnerID = p.ID
		b, token, err := s.Create(ctx, n)
		if err != nil {
			return flagError("bot add", err)
		}
		return printResult(w.stdout, asJSON, [2]string{"bot_id", strconv.FormatInt(b.ID, 10)}, [2]string{"token", string(token)})
	})
}

func keyAdd(ctx context.Context, w world, args []string) error {
	var name string
	var asJSON bool
	err := parse(w, "key add", args, func(f *flag.FlagSet) {
		f.StringVar(&name, "name", "", "what the key is for")
		f.BoolVar(&asJSON, "json", false, "print JSON")
	})
	if err != nil {
		return err
	}
	return withStore(ctx, w, func(s *bots.Store) error {
		key, err := s.AddKey(ctx, name)
		if err != nil {
			return flagError("key add", err)
		}
		return printResult(w.stdout, asJSON, [2]string{"key", string(key)})
	})
}

// flagError names the flag whose value breaks its rule.
func flagError(command string, err error) error {
	var invalid *delivery.Invalid
	if errors.As(err, &invalid) {
		return fmt.Errorf("%s: --%s %s", command, invalid.Field, invalid.Rule)
	}
	return fmt.Errorf("%s: %w", command, err)
}

func idFlag(command, name, value string) (int64, error) {
	id, ok := delivery.ParseID(value)
	if !ok {
		return 0, fmt.Errorf("%s: --%s must be an id, decimal digits", command, name)
	}
	return id, nil
}

func userRights(ctx context.Context, w world, args []string) error {
	var email, rights string
	err := parse(w, "user rights", args, func(f *flag.FlagSet) {
		f.StringVar(&email, "email", "", "the person's address")
		f.StringVar(&rights, "rights", "", "look, act, unmask, separated by commas: these and no others; looking is always allowed")
	})
	if err != nil {
		return err
	}
	if rights == "" {
		return errors.New("user rights: --rights is needed: some of look,act,unmask")
	}
	return withStore(ctx, w, func(s *bots.Store) error {
		if err := s.SetRights(ctx, email, strings.Split(rights, ",")); err != nil {
			return flagError("user rights", err)
		}
		_, err := fmt.Fprintln(w.stdout, "the rights are changed")
		return err
	})
}

func userPassword(ctx context.Context, w world, args []string) error {
	var email string
	var fromStdin bool
	err := parse(w, "user password", args, func(f *flag.FlagSet) {
		f.StringVar(&email, "email", "", "the person's address")
		f.BoolVar(&fromStdin, "password-stdin", false, "read the password, one line, from standard input")
	})
	if err != nil {
		return err
	}
	password, err := readPassword("user password", w, fromStdin)
	if err != nil {
		return err
	}
	return withStore(ctx, w, func(s *bots.Store) error {
		p, err := s.PersonByEmail(ctx, email)
		if err != nil {
			return flagError("user password: --email", err)
		}
		if err := s.SetPassword(ctx, p.ID, password); err != nil {
			return flagError("user password", err)
		}
		_, err = fmt.Fprintln(w.stdout, "the password is changed; the person is signed out everywhere")
		return err
	})
}

// readPassword reads a line from standard input.
func readPassword(command string, w world, fromStdin bool) (delivery.Secret, error) {
	if !fromStdin {
		return "", errors.New(command + ": --password-stdin is needed: a password in the command line could be read by others")
	}
	line, err := bufio.NewReader(io.LimitReader(w.stdin, bots.MaxPassword+2)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: read the password: %w", command, err)
	}
	return delivery.Secret(strings.TrimRight(line, "\r\n")), nil
}

func keyRemove(ctx context.Context, w world, args []string) error {
	var name string
	err := parse(w, "key remove", args, func(f *flag.FlagSet) { f.StringVar(&name, "name", "", "the name that the key was made with") })
	if err != nil {
		return err
	}
	return withStore(ctx, w, func(s *bots.Store) error {
		n, err := s.RemoveKeys(ctx, name)
		if err != nil {
			return flagError("key remove", err)
		}
		_, err = fmt.Fprintf(w.stdout, "%d keys removed\n", n)
		return err
	})
}
