package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// maxInstructions bounds what of an AGENTS.md the model is shown, in bytes.
const maxInstructions = 64 << 10

// Workspace is a section for [Sections.Context] that tells an agent its working
// directory and what the AGENTS.md in it says. The file is read for each step,
// so an edit is seen at the next one. A file that cannot be read fails the turn.
func Workspace() Section {
	return Section{Name: "workspace", Order: 100, Text: func(_ context.Context, r PromptRequest) (string, error) {
		if r.CWD == "" {
			return "", nil
		}
		text := "Your working directory is " + r.CWD + "."
		instructions, err := readInstructions(filepath.Join(r.CWD, "AGENTS.md"))
		if err != nil || instructions == "" {
			return text, err
		}
		return text + "\n\nIts AGENTS.md says:\n\n" + instructions, nil
	}}
}

// readInstructions returns the text of a file, "" if there is none.
func readInstructions(path string) (string, error) {
	const op = "agents.workspace"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", seams.Errorf(seams.InvalidArgument, op, "%w", err)
	case !info.Mode().IsRegular():
		return "", seams.Errorf(seams.InvalidArgument, op, "%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", seams.Errorf(seams.InvalidArgument, op, "%w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil {
		return "", seams.Errorf(seams.InvalidArgument, op, "%w", err)
	}
	cut := ""
	if len(b) > maxInstructions {
		b = b[:maxInstructions]
		cut = fmt.Sprintf("\n\n(The file goes on; its first %d bytes are shown.)", maxInstructions)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(strings.TrimPrefix(string(b), "\ufeff"), "\ufffd"))
	return text + cut, nil
}
