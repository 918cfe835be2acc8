package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

type event struct {
	name, data string
	unfinished bool
}

func readAll(src io.Reader, max int) (out []event, err error) {
	r := NewReader(src, max)
	for {
		ev, err := r.Next()
		if err != nil {
			return out, err
		}
		out = append(out, event{ev.Name, string(ev.Data), ev.Unfinished})
	}
}

// plain is the format said simply, over a whole body.
func plain(body string) (out []event) {
	body = strings.TrimPrefix(body, "\ufeff")
	body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	var name string
	var data []string
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		last := i == len(lines)-1
		if line == "" && !last {
			if data != nil {
				out = append(out, event{name, strings.Join(data, "\n"), false})
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "data":
			data = append(data, value)
		}
	}
	if data != nil {
		out = append(out, event{name, strings.Join(data, "\n"), true})
	}
	return out
}

func TestReader(t *testing.T) {
	for body, want := range map[string][]event{
		"data: a\n\ndata:b\n\n":                      {{"", "a", false}, {"", "b", false}},
		"data: a\r\n\r\ndata: b\r\rdata: c\n\n":      {{"", "a", false}, {"", "b", false}, {"", "c", false}},
		"\ufeffdata: a\n\n":                          {{"", "a", false}},
		": hello\n\n:\nevent: x\nid: 7\ndata: a\n\n": {{"x", "a", false}},
		"event: x\n\ndata: a\n\n":                    {{"", "a", false}},
		"data: a\ndata:  b\ndata\n\n":                {{"", "a\n b\n", false}},
		"data\n\n":                                   {{"", "", false}},
		"retry: 1\n\n":                               nil,
		"data: a\n":                                  {{"", "a", true}},
		"data: a":                                    {{"", "a", true}},
		"data: a\n\ndat":                             {{"", "a", false}},
		"":                                           nil,
		"datax: a\n\nDATA: b\n\n":                    nil,
		"data: ü€\n\n":                               {{"", "ü€", false}},
	} {
		for _, src := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)), iotest.DataErrReader(strings.NewReader(body))} {
			if got, err := readAll(src, 1000); err != io.EOF || !reflect.DeepEqual(got, want) {
				t.Errorf("%q: %v %v, want %v", body, got, err, want)
			}
		}
	}
}

// An event is given out as soon as its empty line ends, though the LF after a
// CR has not come yet.
func TestEventsComeAsTheyArrive(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r"} {
		pr, pw := io.Pipe()
		r := NewReader(pr, 1000)
		go func() { _, _ = io.WriteString(pw, "data: a"+end) }()
		if ev, err := r.Next(); err != nil || string(ev.Data) != "a" {
			t.Fatalf("%q: %v %v", end, ev, err)
		}
		go func() { _, _ = io.WriteString(pw, "\ndata: b\n\n"); pw.Close() }()
		if ev, err := r.Next(); err != nil || string(ev.Data) != "b" {
			t.Fatalf("%q: %v %v", end, ev, err)
		}
	}
}

// Cuts never show, and the plain reading agrees.
func TestCutsNeverShow(t *testing.T) {
	piece := rapid.SampledFrom([]string{"data: ", "data:", "event: e", ":", " ", "x", "é€🧭", "\n", "\r", "\r\n", "\n\n", "id: 1", "\ufeff", "data"})
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		want := plain(body)
		at := rapid.IntRange(0, len(body)).Draw(t, "cut")
		for _, src := range []io.Reader{
			strings.NewReader(body),
			iotest.OneByteReader(strings.NewReader(body)),
			io.MultiReader(strings.NewReader(body[:at]), strings.NewReader(body[at:])),
		} {
			if got, err := readAll(src, 1<<20); err != io.EOF || !reflect.DeepEqual(got, want) {
				t.Fatalf("%q cut at %d: %v %v, want %v", body, at, got, err, want)
			}
		}
	})
}

// sse-06: the long line in every cut that lies near a border of the buffer or
// of an event, and at every 997th place.
func TestLongLineInEveryCut(t *testing.T) {
	body, err := os.ReadFile("testdata/sse-06.sse")
	if err != nil {
		t.Fatal(err)
	}
	want := plain(string(body))
	for at := 0; at < len(body); at++ {
		near := at%4096 < 2 || at%4096 == 4095 || body[at] == '\n' || at > 0 && body[at-1] == '\n'
		if !near && at%997 != 0 {
			continue
		}
		got, err := readAll(io.MultiReader(bytes.NewReader(body[:at]), bytes.NewReader(body[at:])), DefaultMaxEvent)
		if err != io.EOF || !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d: %d events, %v", at, len(got), err)
		}
	}
}

func TestBounds(t *testing.T) {
	for body, tooLarge := range map[string]bool{
		"data: " + strings.Repeat("x", 94) + "\n\n":              false,
		"data: " + strings.Repeat("x", 200) + "\n\n":             true,
		strings.Repeat("x", 5000):                                true,
		strings.Repeat("data: "+strings.Repeat("x", 60)+"\n", 2): true,
		strings.Repeat(":"+strings.Repeat("x", 90)+"\n", 100):    false,
	} {
		if _, err := readAll(iotest.OneByteReader(strings.NewReader(body)), 100); errors.Is(err, ErrTooLarge) != tooLarge {
			t.Errorf("%.20q (%d bytes): %v", body, len(body), err)
		}
	}
}

func TestErrorsPass(t *testing.T) {
	broken := errors.New("broken")
	got, err := readAll(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 100)
	if err != broken || len(got) != 1 {
		t.Fatalf("%v %v", got, err)
	}
}

// Idle counts only the time in which a read waits, and any byte is life.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		silent := errors.New("silent")
		r := Idle(pr, time.Second, func() { pw.CloseWithError(silent) })
		go func() {
			for range 5 {
				time.Sleep(900 * time.Millisecond)
				_, _ = pw.Write([]byte(":"))
			}
		}()
		begin := time.Now()
		buf := make([]byte, 8)
		for i := 0; ; i++ {
			n, err := r.Read(buf)
			if err != nil {
				if err != silent || i != 5 {
					t.Fatalf("%v after %d reads", err, i)
				}
				break
			}
			if n != 1 {
				t.Fatal(n)
			}
			if i == 4 {
				time.Sleep(10 * time.Second) // a slow consumer
			}
		}
		if d := time.Since(begin); d != 5*900*time.Millisecond+11*time.Second {
			t.Fatal(d)
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\n: c\ndata: b\rdata: c\n\n"), 3)
	f.Add([]byte("\xef\xbb\xbfevent: x\ndata\n\ndata: tail"), 9)
	f.Fuzz(func(t *testing.T, body []byte, at int) {
		want := plain(string(body))
		at = max(0, min(at, len(body)))
		got, err := readAll(io.MultiReader(bytes.NewReader(body[:at]), bytes.NewReader(body[at:])), 1<<20)
		if err != io.EOF || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q cut at %d: %v %v, want %v", body, at, got, err, want)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	body := []byte(strings.Repeat("data: "+strings.Repeat("x", 200)+"\n\n", 1000))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(body), 1<<20)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
}

func ExampleReader() {
	r := NewReader(strings.NewReader(": ping\r\n\r\nevent: note\r\ndata: one\r\ndata: two\r\n\r\n"), DefaultMaxEvent)
	ev, err := r.Next()
	fmt.Printf("%s %q %v\n", ev.Name, ev.Data, err)
	_, err = r.Next()
	fmt.Println(err)
	// Output:
	// note "one\ntwo" <nil>
	// EOF
}
