// Command mybots is the product in one binary: the server, its migrations, the
// demo, and the operators' commands. `mybots help` lists them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once: the first one gives it back to the system.
	context.AfterFunc(ctx, stop)
	err := run(ctx, world{args: os.Args[1:], environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mybots: "+err.Error())
		os.Exit(1)
	}
}

// world is what the program needs of its surroundings.
type world struct {
	args           []string
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// command is one of the program's commands.
type command struct {
	name string // as it is typed, one word or two
	help string
	run  func(ctx context.Context, w world, args []string) error
}

func commands() []command {
	return []command{
		{"serve", "run the server: pages, Bot API, intake (--roles picks some)", serve},
		{"demo", "serve, with a demo space whose sign-in and token are printed", demo},
		{"migrate", "bring the database's schema up to date and stop", migrate},
		{"space add", "add a space: --name N", spaceAdd},
		{"user add", "add a person: --email E --space ID --role owner|support|admin --password-stdin; for support --rights, some of look,act,unmask (default look,act)", userAdd},
		{"bot add", "add a bot: --space ID --owner EMAIL --username U --name N", botAdd},
		{"user password", "change a person's password: --email E --password-stdin", userPassword},
		{"user rights", "change what a support person may do: --email E --rights look,act,unmask", userRights},
		{"key add", "make an intake key: --name N", keyAdd},
		{"key remove", "take intake keys back: --name N", keyRemove},
		{"config", "list the settings, all of them environment variables", configHelp},
		{"version", "print the version", version},
	}
}

func run(ctx context.Context, w world) error {
	err := dispatch(ctx, w)
	if errors.Is(err, flag.ErrHelp) { // it was asked for, and has been printed
		return nil
	}
	return err
}

func dispatch(ctx context.Context, w world) error {
	line := strings.Join(w.args, " ") + " "
	for _, c := range commands() {
		if strings.HasPrefix(line, c.name+" ") {
			return c.run(ctx, w, w.args[len(strings.Fields(c.name)):])
		}
	}
	var list strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&list, "  %-14s %s\n", c.name, c.help)
	}
	if len(w.args) == 1 && (w.args[0] == "help" || w.args[0] == "--help" || w.args[0] == "-h") {
		fmt.Fprint(w.stdout, "usage: mybots COMMAND [flags]\n\n", list.String())
		return nil
	}
	fmt.Fprint(w.stderr, "usage: mybots COMMAND [flags]\n\n", list.String(), "\n")
	if len(w.args) == 0 {
		return errors.New("which command?")
	}
	return fmt.Errorf("there is no command %q", strings.Join(w.args, " "))
}

// parse reads a command's flags; nothing else may stand behind them.
func parse(w world, name string, args []string, define func(*flag.FlagSet)) error {
	f := flag.NewFlagSet("mybots "+name, flag.ContinueOnError)
	f.SetOutput(w.stderr)
	define(f)
	if err := f.Parse(args); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%s: what is %q?", name, f.Arg(0))
	}
	return nil
}
