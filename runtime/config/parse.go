package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ouro-run/ouro/seams"
	"gopkg.in/yaml.v3"
)

// MaxFile bounds a file in bytes.
const MaxFile = 1 << 20

// Parse reads a cordis.yml; name is for messages. A file that is not a list of
// well-formed entries is INVALID_CONFIG with all [Faults] that were found and no
// File, one that is too large is TOO_LARGE. The fault of a single entry, a second
// one of an id, stands in File.Faults, and the first one stays.
//
// An entry without id gets one of 8 hex digits that depends on its group, its
// name and how many like it stand before it: it keeps it while its config
// changes and others come and go.
func Parse(name string, data []byte) (*File, error) {
	if len(data) > MaxFile {
		return nil, seams.Errorf(seams.TooLarge, "", "%s: the file has %d bytes, at most %d are read", name, len(data), MaxFile)
	}
	data = bytes.TrimPrefix(data, []byte(mark))
	if f := unreadable(name, data); f != nil {
		return nil, f.err()
	}
	docs, err := documents(data)
	if err != nil {
		return nil, Faults{locate(name, data, err)}.err()
	}
	f := &File{Name: name}
	if len(docs) == 0 {
		f.Empty = true
		return f, nil
	}
	root := docs[0].Content[0]
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.Style == 0 && len(docs) == 1 {
		f.Empty = true // only `---`
		return f, nil
	}
	r := &reader{file: name}
	if len(docs) > 1 {
		r.fault(docs[1], "a second document begins; a file has one list of entries")
	}
	if target(root).Kind == yaml.SequenceNode {
		f.Entries = r.entries(root, nil)
	} else {
		r.fault(root, "expected a list of entries (`- name: ./plugin.js`), got %s", kindOf(target(root)))
	}
	if err := r.faults.err(); err != nil {
		return nil, err
	}
	r.settle(f)
	return f, nil
}

// mark is the byte-order mark some editors put before the text (yml-02).
const mark = "\ufeff"

// unreadable finds what no text file has.
func unreadable(name string, data []byte) Faults {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return Faults{{Pos: Pos{name, 1, 1}, Msg: "the file is UTF-16; save it as UTF-8"}}
	}
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		what := ""
		switch {
		case c == utf8.RuneError && n == 1:
			what = "a byte that is not UTF-8; save the file as UTF-8"
		case c == '\ufeff':
			what = "a byte-order mark within the file; remove it (it is invisible: delete the line and type it again)"
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c >= 0x7f && c < 0xa0 && c != 0x85, c == 0xfffe, c == 0xffff:
			what = fmt.Sprintf("the character U+%04X is not allowed; in double quotes write it as \\x%02X", c, c)
		}
		if what != "" {
			return Faults{{Pos: place(name, data, i), Msg: what}}
		}
		i += n
	}
	return nil
}

// place is the position of a byte.
func place(name string, data []byte, offset int) Pos {
	before := data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Pos{name, bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1}
}

// documents parses the first two documents of a text. It is the one door to the
// YAML library, whose panics end here.
func documents(data []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: the parser failed: %v", p)
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(data))
	for len(docs) < 2 {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, &n)
	}
	return docs, nil
}

var (
	yamlError     = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	// What the library says of brackets and of quotes.
	bracket = regexp.MustCompile(`',' or|node content|end of stream`)
	quote   = regexp.MustCompile(`end of stream|expected key`)
	// The begin of a value: after dashes and a key.
	valueStart = regexp.MustCompile(`^[ \t]*(?:- +)*(?:[^\s'"#\[{][^:#]*:[ \t]+)?(?:!!js[ \t]+)?`)
)

// locate turns an error of the YAML library, which names a line near the fault
// or none, into a fault with its place and what to do.
func locate(name string, data []byte, err error) Fault {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		m = []string{"", "", err.Error()}
	}
	msg := m[2]
	if a := unknownAnchor.FindStringSubmatch(msg); a != nil {
		i := max(0, alias(data, a[1]))
		return Fault{Pos: place(name, data, i), Msg: fmt.Sprintf("no anchor &%s stands before this alias; a text that begins with * must be quoted", brief(a[1]))}
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	line, _ := strconv.Atoi(m[1])
	line = min(max(line-1, 0), len(lines)-1)
	if len(data) <= maxSearch && !strings.Contains(msg, "tab character") {
		line = firstBad(lines)
	}
	text := string(bytes.TrimRight(lines[line], "\r\n"))
	col := len(text) - len(strings.TrimLeft(text, " \t"))
	tab := strings.IndexByte(text[:col], '\t')
	start := len(valueStart.FindString(text))
	value := text[start:] + "\n"
	switch {
	case tab >= 0:
		col, msg = tab, "a tab character in the indentation; use spaces"
	case strings.IndexByte("@`%*", value[0]) >= 0:
		col, msg = start, fmt.Sprintf("a text that begins with %c must be quoted", value[0])
	case strings.HasPrefix(value, "{{"):
		col, msg = start, "a text that begins with { must be quoted, as in '{{ x }}'"
	case (value[0] == '{' || value[0] == '[') && bracket.MatchString(msg):
		col, msg = start, msg+"; is a bracket not closed, or a comma missing?"
	case (value[0] == '"' || value[0] == '\'') && quote.MatchString(msg):
		col, msg = start, msg+"; is the quote closed, and is nothing behind it?"
	case strings.Contains(msg, "mapping values are not allowed") && strings.Contains(text, "!!js"):
		msg = "an expression with a colon must be quoted, as in !!js 'a ? b : c'"
	case strings.Contains(msg, "mapping values are not allowed"):
		msg += "; is the indentation right? A text with a colon and a space in it must be quoted"
	case strings.Contains(msg, "did not find expected") || strings.Contains(msg, "not allowed in this context"):
		msg += "; is the indentation right? The fields of an entry stand in one column"
	}
	return Fault{Pos: Pos{name, line + 1, utf8.RuneCountInString(text[:col]) + 1}, Msg: msg}
}

// alias finds the first use of an alias in a text.
func alias(data []byte, name string) int {
	re := regexp.MustCompile(`(^|[\s\[{,:-])\*` + regexp.QuoteMeta(name) + `($|[\s\]},:])`)
	at := re.FindIndex(data)
	if at == nil {
		return -1
	}
	return at[0] + bytes.IndexByte(data[at[0]:], '*')
}

// maxSearch bounds the size of a file whose faulty line is searched for.
const maxSearch = 64 << 10

// firstBad is the index of the first line with which the text is no YAML any
// more, whatever comes after it. Blank lines and comments are passed over.
func firstBad(lines [][]byte) int {
	parses := func(n int) bool {
		_, err := documents(bytes.Join(lines[:n], nil))
		return err == nil
	}
	good, bad := 0, len(lines)
	for good+1 < bad {
		mid := (good + bad) / 2
		// A few lines on, a text that was only cut within brackets or quotes is whole.
		for n := mid; ; n++ {
			if parses(n) {
				good = n
				break
			}
			if n+1 >= bad || n >= mid+8 {
				bad = mid
				break
			}
		}
	}
	for i := good; i < len(lines); i++ {
		if t := bytes.TrimSpace(lines[i]); len(t) > 0 && t[0] != '#' {
			return i
		}
	}
	return min(good, len(lines)-1)
}
