package compile

import (
	"strings"
	"unicode/utf8"

	"github.com/ouro-run/ouro/seams"
)

// Caps of one source. Below them both parsers end, in time and within the
// stack of a goroutine; above them they may not (pitfall 16).
const (
	maxText  = 256 << 10 // bytes of one file
	maxTotal = 1 << 20   // bytes of all files of a program
	maxFiles = 64
	maxDepth = 200  // brackets
	maxChain = 1500 // operators, prefixes and members in one expression
	maxComma = 5000 // commas in one statement, but for those of a list

	// Of any characters, strings and comments included.
	maxRawDepth = 5000
	maxRawChain = 20000
)

// scan refuses text that is too large or nested too deeply for a parser. Its
// notion of regular expressions is rough, so code may pass as the inside of a
// string; the raw caps, which know no strings, hold for it all the same.
func scan(name, text string) error {
	if len(text) > maxText {
		return seams.Errorf(seams.TooLarge, "compile", "%s has %d bytes, at most %d are compiled: split it or move data out of the source", name, len(text), maxText)
	}
	if !utf8.ValidString(text) {
		return seams.Errorf(seams.CompileFailed, "compile", "%s is not UTF-8 text", name)
	}
	if err := scanRaw(name, text); err != nil {
		return err
	}
	var (
		s       = scanner{text: text}
		levels  = make([]level, 1, 16) // of brackets
		lastEnd bool                   // the last token can end an operand
	)
	for {
		tok := s.next(lastEnd)
		if tok == "" {
			return nil
		}
		top := &levels[len(levels)-1]
		switch c := tok[0]; {
		case c == '(' || c == '[' || c == '{':
			if len(levels) > maxDepth {
				return seams.Errorf(seams.TooLarge, "compile", "%s:%d is nested more than %d brackets deep: flatten it", name, s.line(), maxDepth)
			}
			if c != '{' || lastEnd {
				top.chain++
			}
			levels = append(levels, level{list: c == '['})
			lastEnd = false
		case c == ')' || c == ']' || c == '}':
			if len(levels) > 1 {
				levels = levels[:len(levels)-1]
			}
			if c == '}' {
				levels[len(levels)-1].chain = 0
			}
			lastEnd = true
		case c == ';':
			top.chain, top.commas = 0, 0
			lastEnd = false
		case c == ',':
			top.chain = 0
			if !top.list {
				top.commas++
			}
			lastEnd = false
		case isWord(c) || c == '"' || c == '\'' || c == '`' || len(tok) > 1 && c == '/':
			if lastEnd || prefixes[tok] {
				top.chain++
			}
			lastEnd = !prefixes[tok]
		default:
			top.chain++
			lastEnd = false
		}
		if top := levels[len(levels)-1]; top.chain > maxChain || top.commas > maxComma {
			return seams.Errorf(seams.TooLarge, "compile", "%s:%d is in an expression of more than %d operators or %d commas: split it into statements", name, s.line(), maxChain, maxComma)
		}
	}
}

// level counts what stands at one depth of brackets since the expression, or
// the statement, began.
type level struct {
	list          bool
	chain, commas int
}

func scanRaw(name, text string) error {
	depth, chain := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '(', '[', '{':
			depth++
			chain++
		case ')', ']', '}':
			depth = max(depth-1, 0)
		case ';', ',':
			chain = 0
		case '!', '+', '-', '*', '/', '%', '~', '^', '&', '|', '<', '>', '=', '?', ':', '.':
			chain++
		}
		if depth > maxRawDepth || chain > maxRawChain {
			line := 1 + strings.Count(text[:i], "\n")
			return seams.Errorf(seams.TooLarge, "compile", "%s:%d is nested too deeply, or an expression or a text in it is too long: move data out of the source", name, line)
		}
	}
	return nil
}

var prefixes = map[string]bool{
	"new": true, "typeof": true, "void": true, "delete": true, "await": true, "yield": true, "throw": true, "return": true,
	"if": true, "else": true, "do": true, "in": true, "of": true, "case": true, "async": true, "while": true, "for": true,
}

type scanner struct {
	text  string
	at    int
	depth int   // of braces
	holes []int // brace depth of each open template substitution
	back  bool  // a substitution has just closed: template text follows
}

func (s *scanner) line() int { return 1 + strings.Count(s.text[:min(s.at, len(s.text))], "\n") }

// next returns the next token, "" at the end. Every operator character is a
// token of its own. operand tells a division from a regular expression.
func (s *scanner) next(operand bool) string {
	if s.back {
		s.back = false
		return s.template()
	}
	for s.at < len(s.text) {
		c := s.text[s.at]
		rest := s.text[s.at:]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			s.at++
		case strings.HasPrefix(rest, "//"):
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				s.at += i
			} else {
				s.at = len(s.text)
			}
		case strings.HasPrefix(rest, "/*"):
			if i := strings.Index(rest, "*/"); i >= 0 {
				s.at += i + 2
			} else {
				s.at = len(s.text)
			}
		case isWord(c):
			n := 1
			for n < len(rest) && isWord(rest[n]) {
				n++
			}
			s.at += n
			return rest[:n]
		case c == '"' || c == '\'':
			return s.quoted(c)
		case c == '`':
			s.at++
			return s.template()
		case c == '/' && !operand:
			return s.quoted('/')
		default:
			s.at++
			switch c {
			case '{':
				s.depth++
			case '}':
				if n := len(s.holes); n > 0 && s.holes[n-1] == s.depth {
					s.holes, s.back = s.holes[:n-1], true
				}
				s.depth--
			}
			return rest[:1]
		}
	}
	return ""
}

// quoted takes text up to an unescaped quote or the end of the line.
func (s *scanner) quoted(quote byte) string {
	from := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case '\\':
			s.at++
		case quote:
			s.at++
			return s.text[from:s.at]
		case '\n':
			return s.text[from:s.at]
		}
	}
	s.at = len(s.text)
	return s.text[from:]
}

// template takes template text up to its end or to the brace of its next
// substitution, which is scanned as code.
func (s *scanner) template() string {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at++
		case c == '`':
			s.at++
			return "``"
		case c == '$' && strings.HasPrefix(s.text[s.at:], "${"):
			s.at++
			s.holes = append(s.holes, s.depth+1)
			return "``"
		}
	}
	s.at = len(s.text)
	return "``"
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
