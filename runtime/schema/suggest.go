package schema

// Suggest returns the candidate that word is most probably a misspelling of,
// the first one of several, or "" if none is near. Case does not matter.
func Suggest(word string, candidates []string) string {
	best, distance := "", len(word)/3+2
	if len(word) > 64 {
		return ""
	}
	for _, c := range candidates {
		if len(c) > 64 {
			continue
		}
		// A third of the word, but at least one letter.
		if d := editDistance(fold(word), fold(c)); d < distance && d <= max(1, len(word)/3) && d < len(c) {
			best, distance = c, d
		}
	}
	return best
}

func fold(s string) []rune {
	out := []rune(s)
	for i, r := range out {
		if r >= 'A' && r <= 'Z' {
			out[i] = r + 'a' - 'A'
		}
	}
	return out
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours.
func editDistance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
