package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/sandbox/compile"
)

// What may end or block a process runs in a child: this test binary again, with
// a soft memory limit and a deadline. childEnv holds what it is to do.
const childEnv = "OURO_SANDBOX_CHILD"

// children are what a child can do; each answers what it prints.
var children = map[string]func(arg string) string{
	// A body in a realm with a short turn.
	"eval": func(code string) string {
		r, err := New(context.Background(), Options{Name: "child", Budgets: Budgets{Turn: 500 * time.Millisecond}})
		if err != nil {
			return err.Error()
		}
		p, err := NewCompiler().Compile(compile.Source{Name: "child.js", Text: code, Form: compile.Body})
		if err != nil {
			return "compile: " + err.Error()
		}
		v, err := r.Eval(context.Background(), p)
		if closed := r.Close(4 * time.Second); closed != nil {
			return fmt.Sprint(v, err, closed)
		}
		return fmt.Sprint(v, err)
	},
	// A body in a realm with time and memory to spare: what ends it is neither.
	"patient": func(code string) string {
		r, err := New(context.Background(), Options{Name: "child", Budgets: Budgets{Turn: time.Hour, Minute: time.Hour, Heap: 4 << 30}})
		if err != nil {
			return err.Error()
		}
		p, err := NewCompiler().Compile(compile.Source{Name: "child.js", Text: code, Form: compile.Body})
		if err != nil {
			return "compile: " + err.Error()
		}
		v, err := r.Eval(context.Background(), p)
		return fmt.Sprint(v, err, r.Close(time.Minute))
	},
	"compile": func(text string) string {
		_, err := NewCompiler().Compile(compile.Source{Name: "child.js", Text: hostile[text](), Form: compile.Body})
		return fmt.Sprint(err)
	},
}

// runChild does what the environment asks and reports whether it asked.
func runChild() bool {
	name, arg, ok := strings.Cut(os.Getenv(childEnv), " ")
	if !ok {
		return false
	}
	debug.SetMemoryLimit(1 << 30)
	fmt.Print(children[name](arg))
	return true
}

// child runs one in a process of its own and answers what it printed. The
// process must end by itself and in time.
func child(t *testing.T, name, arg string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	if _, err := exec.LookPath("prlimit"); err == nil && !raced {
		cmd = exec.CommandContext(ctx, "prlimit", "--as=12884901888", os.Args[0])
	}
	cmd.Env = append(os.Environ(), childEnv+"="+name+" "+arg)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the process of %s %.80s ended after %v: %v\n%.2000s", name, arg, time.Since(start), err, out)
	}
	return string(out)
}

// again reports whether this process is a child that was started to run this
// very test; otherwise it starts that child, whose failure is the test's.
func again(t *testing.T) bool {
	t.Helper()
	const env = "OURO_SANDBOX_TEST"
	if os.Getenv(env) == t.Name() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a process of its own: %v\n%.4000s", err, out)
	}
	return false
}
