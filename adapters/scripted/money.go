package scripted

import (
	"strconv"
	"strings"
)

// money finds the amount written in a text. Of several numbers the last with a
// decimal part counts, else the last.
func money(s string) (float64, bool) {
	var best string
	found, decimals := false, false
	for _, n := range numbers(s) {
		plain := normalise(n)
		if has := strings.Contains(plain, "."); has || !decimals {
			best, found, decimals = plain, true, has
		}
	}
	if !found {
		return 0, false
	}
	f, err := strconv.ParseFloat(best, 64)
	return f, err == nil
}

// numbers returns the runs of digits with separators between digits, each with
// its sign.
func numbers(s string) []string {
	s = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "\u2009", " ", "’", "'", "\u2212", "-").Replace(s)
	digit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	var out []string
	for i := 0; i < len(s); {
		if !digit(i) {
			i++
			continue
		}
		begin, group, marked := i, 0, false
		for digit(i) {
			i, group = i+1, group+1
			if i == len(s) || !digit(i+1) {
				continue
			}
			switch s[i] {
			case '.', ',', '\'':
				i, group, marked = i+1, 0, true
			case ' ':
				// A space separates groups of three only.
				three := digit(i+2) && digit(i+3) && !digit(i+4)
				if !marked && group <= 3 && three {
					i, group = i+1, 0
				}
			}
		}
		if begin > 0 && s[begin-1] == '-' {
			begin--
		}
		out = append(out, s[begin:i])
	}
	return out
}

// normalise writes a number with separators as a plain decimal. With points
// and commas the later is the decimal mark; one kind alone is the decimal mark
// if it stands once and not before exactly three digits.
func normalise(n string) string {
	n = strings.NewReplacer(" ", "", "'", "").Replace(n)
	mark := strings.LastIndexAny(n, ".,")
	if mark < 0 {
		return n
	}
	other := strings.ContainsRune(n, '.') && strings.ContainsRune(n, ',')
	once := strings.Count(n, n[mark:mark+1]) == 1
	decimal := once && (other || len(n)-mark-1 != 3)
	whole, part := n, ""
	if decimal {
		whole, part = n[:mark], "."+n[mark+1:]
	}
	return strings.NewReplacer(".", "", ",", "").Replace(whole) + part
}

// fixed writes n with d decimals, grouped with a comma between thousands.
func fixed(n float64, d int, grouped bool) string {
	s := strconv.FormatFloat(n, 'f', d, 64)
	if !grouped {
		return s
	}
	sign, rest := "", s
	if rest[0] == '-' {
		sign, rest = "-", rest[1:]
	}
	whole, part, point := strings.Cut(rest, ".")
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if point {
		part = "." + part
	}
	return sign + b.String() + part
}
