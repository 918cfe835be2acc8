package memory

import (
	"context"
	"hash/fnv"
	"math"
	"strings"
	"unicode"

	"github.com/ouro-run/ouro/seams"
)

// terms splits text into what is compared: words in lower case, and of scripts
// that put no spaces between words each pair of neighbouring characters.
func terms(text string) map[string]bool {
	out := map[string]bool{}
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out[string(word)] = true
			word = word[:0]
		}
	}
	var before rune // the character before, if it is one of an unspaced script
	for _, r := range strings.ToLower(text) {
		unspaced := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
		switch {
		case unspaced:
			flush()
			out[string(r)] = true
			if before != 0 {
				out[string([]rune{before, r})] = true
			}
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			word = append(word, r)
		default:
			flush()
		}
		before = 0
		if unspaced {
			before = r
		}
	}
	flush()
	return out
}

// overlap is the share of the wanted terms that are there.
func overlap(want, have map[string]bool) float64 {
	n := 0
	for t := range want {
		if have[t] {
			n++
		}
	}
	return float64(n) / float64(max(len(want), 1))
}

// cosine is the similarity of two vectors, 0 where they point apart.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return min(1, max(0, dot/math.Sqrt(aa*bb)))
}

// embed asks for one vector and checks that it is one.
func embed(ctx context.Context, e Embedder, text string) ([]float32, error) {
	vs, err := e.Embed(ctx, []string{text})
	if err != nil {
		return nil, seams.Errorf(seams.MemoryUnavailable, "memory.embed", "the embedder %s failed: %w", e.Name(), err)
	}
	if len(vs) != 1 || len(vs[0]) != e.Dim() {
		return nil, seams.Errorf(seams.MemoryUnavailable, "memory.embed", "the embedder %s answered no vector of %d numbers", e.Name(), e.Dim())
	}
	for _, f := range vs[0] {
		if f64 := float64(f); math.IsNaN(f64) || math.IsInf(f64, 0) {
			return nil, seams.Errorf(seams.MemoryUnavailable, "memory.embed", "the embedder %s answered a vector that is not finite", e.Name())
		}
	}
	return vs[0], nil
}

// TermHash is an [Embedder] that needs no model: texts with terms in common are
// similar, and nothing else is. Its value is the length of a vector.
type TermHash int

// Embed implements [Embedder]. INVALID_ARGUMENT when the length is not positive.
func (h TermHash) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if h < 1 {
		return nil, seams.Errorf(seams.InvalidArgument, "memory.embed", "a vector of %d numbers", h)
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, seams.Errorf(seams.Aborted, "memory.embed", "%w", err)
		}
		v := make([]float32, h)
		for term := range terms(t) {
			sum := fnv.New64a()
			sum.Write([]byte(term))
			v[sum.Sum64()%uint64(h)]++
		}
		out[i] = v
	}
	return out, nil
}

// Dim implements [Embedder].
func (h TermHash) Dim() int { return int(h) }

// Name implements [Embedder].
func (h TermHash) Name() string { return "term-hash" }
