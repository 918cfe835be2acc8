package fs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/builtins/fs"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// folder opens a folder "in" beside a file "secret" that lies outside of it.
func folder(t testing.TB, write bool) (*fs.Folder, string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(dir, "in")
	if err := os.MkdirAll(filepath.Join(in, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(in, write)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, in
}

// What is written is read back, whatever the text.
func TestWriteThenRead(t *testing.T) {
	f, _ := folder(t, true)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		name := rapid.StringMatching(`[a-z]{1,3}(/[a-z]{1,3}){0,2}\.txt`).Draw(t, "name")
		if err := f.WriteText(name, text); err != nil {
			t.Fatal(err)
		}
		got, err := f.ReadText(name)
		if err != nil || got != text {
			t.Fatalf("read %q, %v; wrote %q", got, err, text)
		}
		if info, err := f.Stat(name); err != nil || info.Size != int64(len(text)) || info.Type != fs.File {
			t.Fatalf("%+v, %v", info, err)
		}
	})
}

// No path leads out of the folder.
func FuzzStaysInside(f *testing.F) {
	for _, p := range []string{"../secret", "a/../../secret", "/etc/passwd", `..\secret`, "sub/../../secret", "out", "out/secret", "\x00", "C:\\x", "", ".", "sub"} {
		f.Add(p)
	}
	box, in := folder(f, true)
	if err := os.Symlink(filepath.Dir(in), filepath.Join(in, "out")); err != nil {
		f.Skip(err)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if text, err := box.ReadText(p); err == nil && text == "secret" {
			t.Errorf("%q leads out", p)
		}
		_, _ = box.Stat(p)
		_, _ = box.List(p)
		if err := box.WriteText(p, "written"); err == nil {
			_ = box.Remove(p)
		}
		if text, err := os.ReadFile(filepath.Join(filepath.Dir(in), "secret")); err != nil || string(text) != "secret" {
			t.Fatalf("%q reached outside: %q %v", p, text, err)
		}
	})
}

func TestRefused(t *testing.T) {
	f, in := folder(t, true)
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(in, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("binary", []byte{0xff, 0xfe})
	write("big", make([]byte, fs.MaxFile+1))
	if err := syscall.Mkfifo(filepath.Join(in, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		do   func() error
		code seams.Code
	}{
		{"absent", func() error { _, err := f.ReadText("nosuch"); return err }, seams.NotFound},
		{"outside", func() error { _, err := f.ReadText("../secret"); return err }, seams.AccessDenied},
		{"absolute", func() error { _, err := f.ReadText("/etc/passwd"); return err }, seams.AccessDenied},
		{"folder", func() error { _, err := f.ReadText("sub"); return err }, seams.InvalidArgument},
		{"binary", func() error { _, err := f.ReadText("binary"); return err }, seams.InvalidArgument},
		{"big", func() error { _, err := f.ReadText("big"); return err }, seams.TooLarge},
		{"big text", func() error { return f.WriteText("x", strings.Repeat("x", fs.MaxFile+1)) }, seams.TooLarge},
		{"over a folder", func() error { return f.WriteText("sub", "x") }, seams.InvalidArgument},
		{"the folder itself", func() error { return f.Remove(".") }, seams.AccessDenied},
		{"remove absent", func() error { return f.Remove("nosuch") }, seams.NotFound},
		{"list a file", func() error { _, err := f.List("binary"); return err }, seams.InvalidArgument},
		{"list absent", func() error { _, err := f.List("nosuch"); return err }, seams.NotFound},
		{"list a pipe", func() error { _, err := f.List("pipe"); return err }, seams.InvalidArgument},
		{"read a pipe", func() error { _, err := f.ReadText("pipe"); return err }, seams.InvalidArgument},
	} {
		if err := c.do(); !errors.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", c.what, err, c.code)
		} else if strings.Contains(err.Error(), in) {
			t.Errorf("%s: the message shows the operator's path: %v", c.what, err)
		}
	}
}

func TestReadOnly(t *testing.T) {
	f, _ := folder(t, false)
	for _, err := range []error{f.WriteText("a", "x"), f.Remove("sub")} {
		if !errors.Is(err, seams.AccessDenied) || !strings.Contains(err.Error(), "write: true") {
			t.Errorf("err = %v", err)
		}
	}
}

// Readers see an old text or a new one, never a part, and no temporary file
// stays.
func TestReplacedInOneStep(t *testing.T) {
	f, _ := folder(t, true)
	if err := f.WriteText("x", strings.Repeat("0", 10000)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 50 {
				if err := f.WriteText("x", strings.Repeat(fmt.Sprint(i), 10000)); err != nil {
					t.Error(err)
				}
				text, err := f.ReadText("x")
				if err != nil || len(text) != 10000 || strings.Trim(text, text[:1]) != "" {
					t.Errorf("read %d bytes, %v", len(text), err)
				}
			}
		})
	}
	wg.Wait()
	list, err := f.List(".")
	if err != nil || len(list) != 2 || list[0].Name != "sub" || list[0].Type != fs.Dir || list[1].Name != "x" {
		t.Errorf("%v, %v", list, err)
	}
}

func TestPlugin(t *testing.T) {
	_, in := folder(t, false)
	c := cordis.New(cordis.Options{})
	defer c.Close(context.Background())
	f, err := c.Root().Plugin(fs.Plugin(filepath.Dir(in)), map[string]any{"root": "in"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Ready().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	box, _ := cordis.Lookup(c.Root(), fs.Key)
	if list, err := box.List("."); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if err := f.Dispose().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := box.List("."); err == nil {
		t.Error("the folder is open after the plugin went")
	}
	bad, err := c.Root().Plugin(fs.Plugin(in), map[string]any{"root": "nosuch"})
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.Settle(t.Context()); !errors.Is(err, seams.NotFound) {
		t.Errorf("err = %v", err)
	}
}

func ExampleFolder() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	files, err := fs.Open(dir, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer files.Close()
	_ = files.WriteText("notes/today.md", "buy tea")
	text, _ := files.ReadText("notes/today.md")
	_, err = files.ReadText("../elsewhere")
	fmt.Println(text, seams.CodeOf(err))
	// Output: buy tea ACCESS_DENIED
}
