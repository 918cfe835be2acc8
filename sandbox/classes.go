package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/dop251/goja"
)

// classes replaces the property classes of a pattern with the u flag, \p{L}
// and \P{Script=Hangul}, by ranges: the engine would read them as letters.
func (e *engine) classes(c goja.FunctionCall) goja.Value {
	pattern := c.Argument(0).String()
	if !strings.Contains(pattern, `\p{`) && !strings.Contains(pattern, `\P{`) {
		return c.Argument(0)
	}
	var out strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		switch ch := pattern[i]; {
		case ch == '\\' && i+2 < len(pattern) && (pattern[i+1] == 'p' || pattern[i+1] == 'P') && pattern[i+2] == '{':
			end := strings.IndexByte(pattern[i:], '}')
			if end < 0 {
				e.badProperty(pattern[i:])
			}
			name := pattern[i+3 : i+end]
			ranges, ok := propertyRanges(name, pattern[i+1] == 'P')
			if !ok {
				e.badProperty(name)
			}
			if !inClass {
				ranges = "[" + ranges + "]"
			}
			out.WriteString(ranges)
			i += end
		case ch == '\\' && i+1 < len(pattern):
			out.WriteString(pattern[i : i+2])
			i++
		default:
			switch ch {
			case '[':
				inClass = true
			case ']':
				inClass = false
			}
			out.WriteByte(ch)
		}
	}
	return e.vm.ToValue(out.String())
}

func (e *engine) badProperty(name string) {
	o, err := e.vm.New(e.vm.Get("SyntaxError"), e.vm.ToValue("Invalid regular expression: the property "+name+" is not known here"))
	if err != nil {
		panic(err)
	}
	panic(goja.Value(o))
}

// ranges caches what was made of a property.
var ranges sync.Map // of name and sign → string

func propertyRanges(name string, negated bool) (string, bool) {
	key := name
	if negated {
		key = "^" + name
	}
	if s, ok := ranges.Load(key); ok {
		return s.(string), true
	}
	tables := property(name)
	if tables == nil {
		return "", false
	}
	s := rangeText(tables, negated)
	ranges.Store(key, s)
	return s, true
}

// longNames are the spelled-out general categories.
var longNames = map[string]string{
	"Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm", "Other_Letter": "Lo",
	"Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc", "Enclosing_Mark": "Me",
	"Number": "N", "Decimal_Number": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
	"Punctuation": "P", "punct": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps", "Close_Punctuation": "Pe",
	"Initial_Punctuation": "Pi", "Final_Punctuation": "Pf", "Other_Punctuation": "Po",
	"Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So",
	"Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp",
	"Other": "C", "Control": "Cc", "Format": "Cf", "Private_Use": "Co", "Surrogate": "Cs",
}

// property finds the tables of a property as it stands in a pattern.
func property(name string) []*unicode.RangeTable {
	kind, value, named := strings.Cut(name, "=")
	if named {
		switch kind {
		case "Script", "sc", "Script_Extensions", "scx":
			return table(unicode.Scripts, value)
		case "General_Category", "gc":
			name = value
		default:
			return nil
		}
	}
	if short, ok := longNames[name]; ok {
		name = short
	}
	if t := table(unicode.Categories, name); t != nil || named {
		return t
	}
	other := unicode.Properties
	switch name {
	case "Any":
		return []*unicode.RangeTable{{R32: []unicode.Range32{{Lo: 0, Hi: unicode.MaxRune, Stride: 1}}}}
	case "ASCII":
		return []*unicode.RangeTable{{R16: []unicode.Range16{{Lo: 0, Hi: 127, Stride: 1}}}}
	case "Alphabetic", "Alpha":
		return []*unicode.RangeTable{unicode.L, unicode.Nl, other["Other_Alphabetic"]}
	case "Uppercase", "Upper":
		return []*unicode.RangeTable{unicode.Lu, other["Other_Uppercase"]}
	case "Lowercase", "Lower":
		return []*unicode.RangeTable{unicode.Ll, other["Other_Lowercase"]}
	case "ID_Start", "IDS", "XID_Start":
		return []*unicode.RangeTable{unicode.L, unicode.Nl, other["Other_ID_Start"]}
	case "ID_Continue", "IDC", "XID_Continue":
		return []*unicode.RangeTable{unicode.L, unicode.Nl, other["Other_ID_Start"], unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, other["Other_ID_Continue"]}
	}
	return table(other, name)
}

func table(m map[string]*unicode.RangeTable, name string) []*unicode.RangeTable {
	if t, ok := m[name]; ok {
		return []*unicode.RangeTable{t}
	}
	return nil
}

// rangeText writes tables as the inside of a character class.
func rangeText(tables []*unicode.RangeTable, negated bool) string {
	type span struct{ lo, hi rune }
	var spans []span
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			spans = append(spans, span{lo, hi})
			return
		}
		for r := lo; r <= hi; r += stride {
			spans = append(spans, span{r, r})
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	var merged []span
	for _, s := range spans {
		if n := len(merged); n > 0 && s.lo <= merged[n-1].hi+1 {
			merged[n-1].hi = max(merged[n-1].hi, s.hi)
		} else {
			merged = append(merged, s)
		}
	}
	if negated {
		var gaps []span
		next := rune(0)
		for _, s := range merged {
			if s.lo > next {
				gaps = append(gaps, span{next, s.lo - 1})
			}
			next = s.hi + 1
		}
		if next <= unicode.MaxRune {
			gaps = append(gaps, span{next, unicode.MaxRune})
		}
		merged = gaps
	}
	var b strings.Builder
	for _, s := range merged {
		fmt.Fprintf(&b, `\u{%x}`, s.lo)
		if s.hi > s.lo {
			fmt.Fprintf(&b, `-\u{%x}`, s.hi)
		}
	}
	return b.String()
}
