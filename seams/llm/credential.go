package llm

import (
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// APIKey returns the key without surrounding white space. MISSING_CREDENTIAL
// for a blank one, INVALID_CREDENTIAL for one that is not printable ASCII; the
// key stands in neither text (M-52).
func APIKey(raw string) (string, error) {
	key := strings.TrimSpace(raw)
	if key == "" {
		return "", NewError(seams.MissingCredential, "the API key is blank")
	}
	for i := 0; i < len(key); i++ {
		if key[i] <= ' ' || key[i] > '~' {
			return "", NewError(seams.InvalidCredential, "the API key has a character at place %d that is not printable ASCII", i+1)
		}
	}
	return key, nil
}
