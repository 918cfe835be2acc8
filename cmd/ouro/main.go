package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/ouro-run/ouro/seams"
)

// Exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitProvider = 3
	exitRefused  = 4
	exitLimit    = 5
	exitTimeout  = 124
	exitSignal   = 128 // plus the signal's number
)

// program is one invocation: what a command reads and writes.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string
	dir            string // working directory
}

// command is one word of the command line.
type command struct {
	name, args, summary string
	run                 func(ctx context.Context, p *program, args []string) int
}

func commands() []command {
	return []command{
		{"demo", "", "watch an agent write, mount, use, repair and remove its own tool; no key, no network", demo},
		{"run", "[flags] \"task\"", "run one task", run},
		{"check", "[file]", "say everything that is wrong with a composition", check},
		{"inspect", "[file]", "show the container that a composition makes", inspect},
		{"explain", "[CODE]", "say what an error code means and what to do", explain},
		{"version", "", "print the version", printVersion},
		{"help", "[command]", "print this, or a command's flags", nil},
	}
}

func main() {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ouro: the working directory cannot be read:", err)
		os.Exit(exitUsage)
	}
	p := &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Environ(), dir: dir}
	os.Exit(p.main(os.Args[1:]))
}

// main runs one command and answers the exit code. The first SIGINT or SIGTERM
// ends the command's context; a second one ends the process.
func (p *program) main(args []string) int {
	out := &checked{w: p.stdout}
	code := (&program{stdin: p.stdin, stdout: out, stderr: p.stderr, env: p.env, dir: p.dir}).command(args)
	if out.err != nil && code == exitDone {
		fmt.Fprintln(p.stderr, "ouro: the output could not be written:", out.err)
		return exitFailed
	}
	return code
}

// command runs the command that args name.
func (p *program) command(args []string) int {
	if len(args) == 0 {
		return p.help(p.stderr, exitUsage)
	}
	switch {
	case isHelp(args[0]) && len(args) > 2:
		return p.fail(tooMuch(args[2]))
	case isHelp(args[0]) && len(args) == 2 && !isHelp(args[1]):
		return p.command([]string{args[1], "-h"})
	case isHelp(args[0]):
		return p.help(p.stdout, exitDone)
	case slices.Contains([]string{"-v", "-version", "--version"}, args[0]):
		args[0] = "version"
	}
	for _, c := range commands() {
		if c.name == args[0] && c.run != nil {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			signals, done := make(chan os.Signal, 1), make(chan struct{})
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			defer close(done) // signals stays open: Stop returns at once beside another, and one may still be sent
			defer signal.Stop(signals)
			go func() {
				select {
				case s := <-signals:
					signal.Stop(signals)
					cancel(signalled{s.(syscall.Signal)})
				case <-done:
				}
			}()
			return c.run(ctx, p, args[1:])
		}
	}
	fmt.Fprintf(p.stderr, "ouro: there is no command %q; ouro help lists those there are\n", args[0])
	return exitUsage
}

// signalled is the cause of a context that a signal has ended.
type signalled struct{ sig syscall.Signal }

func (s signalled) Error() string { return "signal: " + s.sig.String() }

func (p *program) help(w io.Writer, code int) int {
	fmt.Fprint(w, "Ouro runs agents that can inspect and change their own container.\n\nusage: ouro <command>\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-22s %s\n", strings.TrimSpace(c.name+" "+c.args), c.summary)
	}
	fmt.Fprint(w, "\nexit codes: 0 done, 1 failed, 2 usage or configuration, 3 provider or credentials,\n4 refused by policy, 5 limit reached, 124 timeout, 130/143 signals\n")
	return code
}

func isHelp(word string) bool {
	return slices.Contains([]string{"help", "-h", "-help", "--help"}, word)
}

func tooMuch(arg string) error {
	return seams.Errorf(seams.InvalidArgument, "", "%q is too much; ouro help says what a command takes", arg)
}

// flags makes the flag set of a command, for parse.
func flags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet("ouro "+name, flag.ContinueOnError)
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage:", fs.Name())
		fs.PrintDefaults()
	}
	return fs
}

// parse reads flags and at most most arguments, any number if that is negative.
// done says that the command is over with code; help that was asked for stands on
// stdout then, what was wrong on stderr.
func (p *program) parse(fs *flag.FlagSet, args []string, most int) (rest []string, code int, done bool) {
	var said strings.Builder
	fs.SetOutput(&said)
	rest, err := arguments(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.stdout, &said)
		return nil, exitDone, true
	case err != nil:
		fmt.Fprint(p.stderr, &said)
		return nil, exitUsage, true
	case most >= 0 && len(rest) > most:
		return nil, p.fail(tooMuch(rest[most])), true
	}
	return rest, 0, false
}

// arguments reads flags, which may stand before and after arguments, and answers
// those.
func arguments(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for len(args) > 0 {
		if args[0] == "--" {
			return append(rest, args[1:]...), nil
		}
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if n := len(args) - fs.NArg(); n > 0 && args[n-1] == "--" {
			return append(rest, fs.Args()...), nil
		}
		args = fs.Args()
		for len(args) > 0 && (args[0] == "-" || !strings.HasPrefix(args[0], "-")) {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return rest, nil
}

// fail prints an error that kept a command from beginning and answers its exit
// code.
func (p *program) fail(err error) int { return p.failAs(err, exitUsage) }

// failAs prints an error and answers its exit code: otherwise, if its code has
// none of its own.
func (p *program) failAs(err error, otherwise int) int {
	code, cut := interrupted(err)
	if !cut {
		code = exitOf(seams.CodeOf(err), otherwise)
	}
	if code < exitSignal {
		p.complain(err.Error(), seams.CodeOf(err))
	}
	return code
}

// interrupted is the exit code of what a signal or --timeout has ended.
func interrupted(err error) (code int, ok bool) {
	var s signalled
	switch {
	case errors.As(err, &s):
		return exitSignal + int(s.sig), true
	case errors.Is(err, errTimeout):
		return exitTimeout, true
	}
	return 0, false
}

// complain prints what went wrong, its code once, and where to read on.
func (p *program) complain(text string, code seams.Code) {
	if mark := " [" + string(code) + "]"; code != seams.Unknown && !strings.Contains(text, mark) {
		text += mark
	}
	fmt.Fprintln(p.stderr, "ouro:", text)
	if _, ok := seams.Explain(code); ok && code != seams.Unknown {
		fmt.Fprintf(p.stderr, "      ouro explain %s says more\n", code)
	}
}

// checked is a writer that remembers its first failure: output that is lost is
// not a success.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// exitOf is the exit code of an error code.
func exitOf(code seams.Code, otherwise int) int {
	switch code {
	case seams.Auth, seams.MissingCredential, seams.InvalidCredential, seams.NoAdapter, seams.NoModel, seams.Quota,
		seams.RateLimit, seams.Server, seams.Transport, seams.StreamClosed, seams.MalformedResponse, seams.EmptyResponse, seams.Timeout:
		return exitProvider
	case seams.NotPermitted:
		return exitRefused
	}
	if strings.HasPrefix(string(code), "HTTP_") {
		return exitProvider
	}
	return otherwise
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "0.1.0-dev"
}

func printVersion(_ context.Context, p *program, args []string) int {
	if _, code, done := p.parse(flags("version"), args, 0); done {
		return code
	}
	fmt.Fprintln(p.stdout, "ouro", version())
	return exitDone
}

// terminal reports whether w is a terminal that may be written to at will.
func (p *program) terminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok || p.getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *program) getenv(name string) string {
	for _, kv := range p.env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}

func (p *program) environment() map[string]string {
	env := map[string]string{}
	for _, kv := range p.env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	return env
}
