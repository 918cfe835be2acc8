package sandbox

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// Bounds of JSON.parse and JSON.stringify, which run natively and see no
// interrupt.
const (
	maxJSONText  = 16 << 20
	maxJSONDepth = 500
	maxJSONNodes = 1_000_000
)

// parseJSON is JSON.parse. The engine's own reads no 1e400, has no bound on
// depth and is slow.
func (e *engine) parseJSON(c goja.FunctionCall) goja.Value {
	p := jsonParser{e: e, s: c.Argument(0).String()}
	if len(p.s) > maxJSONText {
		panic(e.rangeError("JSON text exceeds the limit of plugins"))
	}
	p.space()
	v := p.value(0)
	p.space()
	if p.at < len(p.s) {
		p.fail()
	}
	return v
}

func (e *engine) rangeError(msg string) goja.Value {
	o, err := e.vm.New(e.vm.Get("RangeError"), e.vm.ToValue(msg))
	if err != nil {
		panic(err)
	}
	return o
}

type jsonParser struct {
	e     *engine
	s     string
	at    int
	nodes int
}

func (p *jsonParser) fail() {
	msg := "Unexpected end of JSON input"
	if p.at < len(p.s) {
		r, _ := utf8.DecodeRuneInString(p.s[p.at:])
		msg = "Unexpected token " + strconv.QuoteRune(r) + " in JSON at position " + strconv.Itoa(p.at)
	}
	o, err := p.e.vm.New(p.e.vm.Get("SyntaxError"), p.e.vm.ToValue(msg))
	if err != nil {
		panic(err)
	}
	panic(goja.Value(o))
}

func (p *jsonParser) space() {
	for p.at < len(p.s) {
		switch p.s[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *jsonParser) peek() byte {
	if p.at < len(p.s) {
		return p.s[p.at]
	}
	return 0
}

func (p *jsonParser) take(c byte) {
	if p.peek() != c {
		p.fail()
	}
	p.at++
}

func (p *jsonParser) word(w string, v goja.Value) goja.Value {
	if !strings.HasPrefix(p.s[p.at:], w) {
		p.fail()
	}
	p.at += len(w)
	return v
}

func (p *jsonParser) value(depth int) goja.Value {
	if p.nodes++; p.nodes > maxJSONNodes {
		panic(p.e.rangeError("the JSON text has too many parts for plugins"))
	}
	if depth > maxJSONDepth {
		panic(p.e.rangeError("JSON nested too deeply for plugins"))
	}
	vm := p.e.vm
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.text()
	case c == 't':
		return p.word("true", vm.ToValue(true))
	case c == 'f':
		return p.word("false", vm.ToValue(false))
	case c == 'n':
		return p.word("null", goja.Null())
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	p.fail()
	return nil
}

func (p *jsonParser) object(depth int) goja.Value {
	o := p.e.vm.NewObject()
	p.at++
	p.space()
	if p.peek() == '}' {
		p.at++
		return o
	}
	for {
		if p.peek() != '"' {
			p.fail()
		}
		key := p.text().String()
		p.space()
		p.take(':')
		p.space()
		v := p.value(depth + 1)
		if key == "__proto__" {
			o.DefineDataProperty(key, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		} else {
			o.Set(key, v)
		}
		p.space()
		if p.peek() == '}' {
			p.at++
			return o
		}
		p.take(',')
		p.space()
	}
}

func (p *jsonParser) array(depth int) goja.Value {
	var items []any
	p.at++
	p.space()
	if p.peek() == ']' {
		p.at++
		return p.e.vm.NewArray()
	}
	for {
		items = append(items, p.value(depth+1))
		p.space()
		if p.peek() == ']' {
			p.at++
			return p.e.vm.NewArray(items...)
		}
		p.take(',')
		p.space()
	}
}

func (p *jsonParser) number() goja.Value {
	from := p.at
	digits := func() {
		if c := p.peek(); c < '0' || c > '9' {
			p.fail()
		}
		for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
			p.at++
		}
	}
	if p.peek() == '-' {
		p.at++
	}
	if p.peek() == '0' {
		p.at++
	} else {
		digits()
	}
	whole := true
	if p.peek() == '.' {
		whole = false
		p.at++
		digits()
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		whole = false
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		digits()
	}
	text := p.s[from:p.at]
	if whole && len(text) < 16 && text != "-0" {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return p.e.vm.ToValue(i)
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range is an infinity, as in JavaScript
	return p.e.vm.ToValue(f)
}

// text reads a string. Unpaired surrogates are kept.
func (p *jsonParser) text() goja.Value {
	p.at++
	from := p.at
	for p.at < len(p.s) && p.s[p.at] != '"' && p.s[p.at] != '\\' && p.s[p.at] >= ' ' {
		p.at++
	}
	if p.peek() == '"' {
		p.at++
		return p.e.vm.ToValue(p.s[from : p.at-1])
	}
	units := utf16.Encode([]rune(p.s[from:p.at]))
	for {
		switch c := p.peek(); {
		case p.at >= len(p.s) || c < ' ':
			p.fail()
		case c == '"':
			p.at++
			return goja.StringFromUTF16(units)
		case c == '\\':
			p.at++
			units = append(units, p.escape())
		default:
			r, n := utf8.DecodeRuneInString(p.s[p.at:])
			units = utf16.AppendRune(units, r)
			p.at += n
		}
	}
}

func (p *jsonParser) escape() uint16 {
	c := p.peek()
	p.at++
	switch c {
	case '"', '\\', '/':
		return uint16(c)
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
		if p.at+4 <= len(p.s) {
			if u, err := strconv.ParseUint(p.s[p.at:p.at+4], 16, 16); err == nil {
				p.at += 4
				return uint16(u)
			}
		}
	}
	p.at--
	p.fail()
	return 0
}

// measure refuses to stringify what the native JSON.stringify would walk for
// ever: shared structure that unfolds, or great depth. It counts every way to
// a part, as stringify does.
func (e *engine) measure(v goja.Value) {
	nodes, text := 0, 0
	var walk func(v goja.Value, depth int)
	walk = func(v goja.Value, depth int) {
		if s, ok := v.(goja.String); ok {
			text += s.Length()
		}
		if text > capText {
			panic(e.rangeError("the value exceeds the limit of plugins for JSON text"))
		}
		o, ok := v.(*goja.Object)
		if !ok {
			return
		}
		if toJSON, ok := goja.AssertFunction(nonNil(o.Get("toJSON"))); ok {
			walk(e.must(toJSON(o)), depth+1)
			return
		}
		if nodes++; nodes > maxJSONNodes || depth > maxJSONDepth {
			panic(e.rangeError("the value exceeds the limit of plugins for JSON text"))
		}
		for _, k := range o.Keys() {
			walk(o.Get(k), depth+1)
		}
	}
	walk(v, 0)
}
