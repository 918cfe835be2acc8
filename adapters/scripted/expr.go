package scripted

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxDepth = 64
	maxSteps = 1_000_000
)

// expr is a compiled expression.
type expr func(*env) (any, error)

// env is what an expression reads.
type env struct {
	vars    map[string]any
	calls   map[string]int
	results map[string][]any
	steps   int
}

// parser compiles one expression by recursive descent.
type parser struct {
	src   string
	pos   int
	depth int
	tok   token
	names map[string]bool // known at this place
}

type token struct {
	kind byte // 'n' number, 's' string, 'i' identifier, 'o' operator, 0 end
	text string
	num  float64
	at   int
}

// syntaxError is a fault of an expression at a byte offset of its text.
type syntaxError struct {
	at  int
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

// compile compiles src; names are the variables it may read.
func compile(src string, names map[string]bool) (e expr, err error) {
	p := &parser{src: src, names: names}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*syntaxError)
			if !ok {
				panic(r)
			}
			err = f
		}
	}()
	p.advance()
	e = p.binary(0)
	if p.tok.kind != 0 {
		p.fail("unexpected %q", p.tok.text)
	}
	return e, nil
}

func (p *parser) fail(format string, args ...any) {
	panic(&syntaxError{p.tok.at, fmt.Sprintf(format, args...)})
}

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func (p *parser) advance() {
	s := p.src
	for p.pos < len(s) && strings.IndexByte(" \t\r\n", s[p.pos]) >= 0 {
		p.pos++
	}
	begin := p.pos
	p.tok = token{at: begin}
	if begin == len(s) {
		p.tok.text = "the end"
		return
	}
	switch c := s[begin]; {
	case isDigit(c):
		for p.pos < len(s) && (isDigit(s[p.pos]) || s[p.pos] == '.') {
			p.pos++
		}
		f, err := strconv.ParseFloat(s[begin:p.pos], 64)
		if err != nil {
			p.fail("%q is not a number", s[begin:p.pos])
		}
		p.tok = token{'n', s[begin:p.pos], f, begin}
	case isLetter(c):
		for p.pos < len(s) && (isLetter(s[p.pos]) || isDigit(s[p.pos])) {
			p.pos++
		}
		p.tok = token{'i', s[begin:p.pos], 0, begin}
	case c == '"' || c == '\'':
		end := strings.IndexByte(s[begin+1:], c)
		if end < 0 {
			p.fail("the string is not closed")
		}
		p.pos = begin + end + 2
		p.tok = token{'s', s[begin+1 : p.pos-1], 0, begin}
	default:
		n := 1
		for _, op := range [...]string{"||", "&&", "==", "!=", "<=", ">="} {
			if strings.HasPrefix(s[begin:], op) {
				n = 2
			}
		}
		p.pos += n
		p.tok = token{'o', s[begin:p.pos], 0, begin}
	}
}

func (p *parser) is(op string) bool { return p.tok.kind == 'o' && p.tok.text == op }

func (p *parser) expect(op string) {
	if !p.is(op) {
		p.fail("expected %q, found %q", op, p.tok.text)
	}
	p.advance()
}

var levels = [][]string{{"||"}, {"&&"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/", "%"}}

func (p *parser) binary(level int) expr {
	if level == len(levels) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for p.tok.kind == 'o' && slices.Contains(levels[level], p.tok.text) {
		op := p.tok.text
		p.advance()
		left = operation(op, left, p.binary(level+1))
	}
	return left
}

func (p *parser) unary() expr {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		p.fail("the expression is nested too deep")
	}
	switch {
	case p.is("!"):
		p.advance()
		x := p.unary()
		return func(e *env) (any, error) {
			v, err := x(e)
			return !truthy(v), err
		}
	case p.is("-"):
		p.advance()
		x := p.unary()
		return func(e *env) (any, error) {
			n, err := numeric(x, e)
			return -n, err
		}
	}
	x := p.primary()
	for {
		switch {
		case p.is("."):
			p.advance()
			if p.tok.kind != 'i' {
				p.fail("expected a member's name, found %q", p.tok.text)
			}
			x = member(x, constant(p.tok.text))
			p.advance()
		case p.is("["):
			p.advance()
			key := p.binary(0)
			p.expect("]")
			x = member(x, key)
		default:
			return x
		}
	}
}

func constant(v any) expr { return func(*env) (any, error) { return v, nil } }

func (p *parser) primary() expr {
	t := p.tok
	switch {
	case t.kind == 'n':
		p.advance()
		return constant(t.num)
	case t.kind == 's':
		p.advance()
		return constant(t.text)
	case p.is("("):
		p.advance()
		x := p.binary(0)
		p.expect(")")
		return x
	case t.kind != 'i':
		p.fail("expected a value, found %q", t.text)
	}
	p.advance()
	if p.is("(") {
		return p.call(t)
	}
	switch t.text {
	case "true":
		return constant(true)
	case "false":
		return constant(false)
	case "null":
		return constant(nil)
	}
	if !p.names[t.text] {
		p.tok = t
		p.fail("unknown name %q", t.text)
	}
	return func(e *env) (any, error) { return e.vars[t.text], nil }
}

// call compiles a function call. The second argument of the list functions is
// compiled with the name "it", match's pattern is compiled here.
func (p *parser) call(name token) expr {
	f, ok := functions[name.text]
	over := overList[name.text]
	if !ok && over == nil && name.text != "match" {
		p.tok = name
		p.fail("unknown function %q", name.text)
	}
	p.advance()
	var args []expr
	var pattern token
	for !p.is(")") {
		if len(args) > 0 {
			p.expect(",")
		}
		if len(args) == 1 && name.text == "match" {
			pattern = p.tok
		}
		had := p.names["it"]
		if len(args) == 1 && over != nil {
			p.names["it"] = true
		}
		args = append(args, p.binary(0))
		if !had {
			delete(p.names, "it")
		}
	}
	least, most := f.least, f.most
	switch {
	case over != nil:
		least, most = 2, 2
		if name.text == "sum" {
			least = 1
		}
	case name.text == "match":
		least, most = 2, 3
	}
	if len(args) < least || len(args) > most {
		p.tok = name
		p.fail("%s takes %d to %d arguments, not %d", name.text, least, most, len(args))
	}
	p.advance()
	switch {
	case over != nil:
		return listCall(name.text, over, args)
	case name.text == "match":
		if pattern.kind != 's' {
			p.tok = pattern
			p.fail("the pattern of match must be a string")
		}
		re, err := regexp.Compile(pattern.text)
		if err != nil {
			p.tok = pattern
			p.fail("%v", err)
		}
		return matchCall(re, args)
	}
	return func(e *env) (any, error) {
		if err := e.step(); err != nil {
			return nil, err
		}
		values := make([]any, len(args))
		for i, a := range args {
			v, err := a(e)
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
		v, err := f.call(e, values)
		if err != nil {
			err = fmt.Errorf("%s: %w", name.text, err)
		}
		return v, err
	}
}

func (e *env) step() error {
	if e.steps++; e.steps > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	return nil
}

func member(x, key expr) expr {
	return func(e *env) (any, error) {
		v, err := x(e)
		if err != nil {
			return nil, err
		}
		k, err := key(e)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case map[string]any:
			if s, ok := k.(string); ok {
				return v[s], nil
			}
		case []any:
			if n, ok := k.(float64); ok && n >= 0 && n < float64(len(v)) {
				return v[int(n)], nil
			}
		}
		return nil, nil
	}
}

func operation(op string, left, right expr) expr {
	switch op {
	case "||", "&&":
		return func(e *env) (any, error) {
			l, err := left(e)
			if err != nil || truthy(l) == (op == "||") {
				return truthy(l), err
			}
			r, err := right(e)
			return truthy(r), err
		}
	}
	return func(e *env) (any, error) {
		if err := e.step(); err != nil {
			return nil, err
		}
		l, err := left(e)
		if err != nil {
			return nil, err
		}
		r, err := right(e)
		if err != nil {
			return nil, err
		}
		switch op {
		case "==":
			return equal(l, r), nil
		case "!=":
			return !equal(l, r), nil
		}
		ls, lok := l.(string)
		rs, rok := r.(string)
		if lok && rok {
			switch op {
			case "+":
				return ls + rs, nil
			case "<":
				return ls < rs, nil
			case "<=":
				return ls <= rs, nil
			case ">":
				return ls > rs, nil
			case ">=":
				return ls >= rs, nil
			}
		}
		a, aok := l.(float64)
		b, bok := r.(float64)
		if !aok || !bok {
			return nil, fmt.Errorf("%s %s %s: both sides must be numbers", kindOf(l), op, kindOf(r))
		}
		switch op {
		case "+":
			return a + b, nil
		case "-":
			return a - b, nil
		case "*":
			return a * b, nil
		case "<":
			return a < b, nil
		case "<=":
			return a <= b, nil
		case ">":
			return a > b, nil
		case ">=":
			return a >= b, nil
		}
		if b == 0 {
			return nil, fmt.Errorf("division by zero")
		}
		if op == "/" {
			return a / b, nil
		}
		return math.Mod(a, b), nil
	}
}

func truthy(v any) bool { return v != nil && v != false && v != "" && v != 0.0 }

func equal(a, b any) bool {
	x, xok := a.(float64)
	y, yok := b.(float64)
	if xok && yok {
		return math.Abs(x-y) < 1e-6
	}
	return reflect.DeepEqual(a, b)
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}

func numeric(x expr, e *env) (float64, error) {
	v, err := x(e)
	if err != nil {
		return 0, err
	}
	n, ok := v.(float64)
	if !ok {
		return 0, fmt.Errorf("expected a number, have %s", kindOf(v))
	}
	return n, nil
}

// overList holds the functions that run an expression for each member; each
// gets the members and what the expression made of them.
var overList = map[string]func(items, values []any) (any, error){
	"map": func(_, values []any) (any, error) { return values, nil },
	"filter": func(items, values []any) (any, error) {
		out := []any{}
		for i, v := range values {
			if truthy(v) {
				out = append(out, items[i])
			}
		}
		return out, nil
	},
	"all": func(_, values []any) (any, error) {
		for _, v := range values {
			if !truthy(v) {
				return false, nil
			}
		}
		return true, nil
	},
	"any": func(_, values []any) (any, error) {
		for _, v := range values {
			if truthy(v) {
				return true, nil
			}
		}
		return false, nil
	},
	"sum": func(_, values []any) (any, error) {
		total := 0.0
		for i, v := range values {
			n, ok := v.(float64)
			if !ok {
				return nil, fmt.Errorf("member %d is %s, not a number", i, kindOf(v))
			}
			total += n
		}
		return total, nil
	},
}

func listCall(name string, over func(items, values []any) (any, error), args []expr) expr {
	return func(e *env) (any, error) {
		v, err := args[0](e)
		if err != nil {
			return nil, err
		}
		items, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%s: expected a list, have %s", name, kindOf(v))
		}
		values := items
		if len(args) == 2 {
			values = make([]any, len(items))
			outer, had := e.vars["it"]
			for i, item := range items {
				if err = e.step(); err != nil {
					break
				}
				e.vars["it"] = item
				if values[i], err = args[1](e); err != nil {
					break
				}
			}
			delete(e.vars, "it")
			if had {
				e.vars["it"] = outer
			}
			if err != nil {
				return nil, err
			}
		}
		out, err := over(items, values)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return out, err
	}
}

func matchCall(re *regexp.Regexp, args []expr) expr {
	return func(e *env) (any, error) {
		v, err := args[0](e)
		if err != nil {
			return nil, err
		}
		m := re.FindStringSubmatch(show(v))
		group := 0
		if len(args) == 3 {
			g, err := args[2](e)
			if err != nil {
				return nil, err
			}
			switch g := g.(type) {
			case float64:
				group = int(g)
			case string:
				group = re.SubexpIndex(g)
			}
		}
		if group < 0 || group >= len(m) {
			return nil, nil
		}
		return m[group], nil
	}
}

// show is a value as a template prints it.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return compact(v)
}

// compact writes a value as JSON. All values are of JSON's kinds and finite.
func compact(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

type function struct {
	least, most int
	call        func(*env, []any) (any, error)
}

var functions = map[string]function{
	"called": {1, 1, func(e *env, a []any) (any, error) { return float64(e.calls[show(a[0])]), nil }},
	"results": {1, 1, func(e *env, a []any) (any, error) {
		list := e.results[show(a[0])]
		return append([]any{}, list...), nil
	}},
	"first": {1, 1, func(_ *env, a []any) (any, error) { return at(a[0], func(int) int { return 0 }) }},
	"last":  {1, 1, func(_ *env, a []any) (any, error) { return at(a[0], func(n int) int { return n - 1 }) }},
	"len": {1, 1, func(_ *env, a []any) (any, error) {
		switch v := a[0].(type) {
		case string:
			return float64(len([]rune(v))), nil
		case []any:
			return float64(len(v)), nil
		case map[string]any:
			return float64(len(v)), nil
		}
		return nil, fmt.Errorf("expected a string, a list or an object, have %s", kindOf(a[0]))
	}},
	"join": {2, 2, func(_ *env, a []any) (any, error) {
		list, ok := a[0].([]any)
		if !ok {
			return nil, fmt.Errorf("expected a list, have %s", kindOf(a[0]))
		}
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = show(v)
		}
		return strings.Join(parts, show(a[1])), nil
	}},
	"money": {1, 1, func(_ *env, a []any) (any, error) {
		if n, ok := money(show(a[0])); ok {
			return n, nil
		}
		return nil, nil
	}},
	"number": {1, 1, func(_ *env, a []any) (any, error) {
		n, err := strconv.ParseFloat(strings.TrimSpace(show(a[0])), 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, nil
		}
		return n, nil
	}},
	"fixed":   {2, 2, func(_ *env, a []any) (any, error) { return formatted(a, false) }},
	"grouped": {2, 2, func(_ *env, a []any) (any, error) { return formatted(a, true) }},
	"contains": {2, 2, func(_ *env, a []any) (any, error) {
		if list, ok := a[0].([]any); ok {
			for _, v := range list {
				if equal(v, a[1]) {
					return true, nil
				}
			}
			return false, nil
		}
		return strings.Contains(show(a[0]), show(a[1])), nil
	}},
	"json": {1, 1, func(_ *env, a []any) (any, error) { return compact(a[0]), nil }},
}

func at(v any, index func(int) int) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("expected a list, have %s", kindOf(v))
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list[index(len(list))], nil
}

func formatted(a []any, grouped bool) (any, error) {
	n, ok := a[0].(float64)
	d, dok := a[1].(float64)
	if !ok || !dok || d < 0 || d > 10 {
		return nil, fmt.Errorf("expected a number and 0 to 10 decimals, have %s and %s", kindOf(a[0]), kindOf(a[1]))
	}
	return fixed(n, int(d), grouped), nil
}
