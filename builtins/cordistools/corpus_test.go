package cordistools_test

import (
	"context"
	"testing"

	"github.com/ouro-run/ouro/conformance/mounts"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

// author is a world as the corpus of mistakes uses it: through the tools, and
// with what the model is told.
type author struct {
	*world
	url string
}

func (a author) Mount(_ context.Context, code string) (string, error) {
	r := a.call("cordis_mount", map[string]any{"code": code})
	if r.IsError {
		return "", told(r)
	}
	return r.Value.(map[string]any)["id"].(string), nil
}

func (a author) Call(_ context.Context, tool string, args map[string]any) (string, error) {
	r := a.call(tool, args)
	if r.IsError {
		return "", told(r)
	}
	return r.Content.Text(), nil
}

func (a author) Unmount(_ context.Context, id string) error {
	if r := a.call("cordis_unmount", map[string]any{"id": id}); r.IsError {
		return told(r)
	}
	return nil
}

func (a author) URL() string { return a.url }

func told(r *tools.Result) error {
	return &seams.Error{Code: r.Error.Code, Msg: r.Content.Text()}
}

// The mistakes that models make are accepted, or answered with the change that
// makes the code right.
func TestMistakes(t *testing.T) {
	w := newWorld(t, allow("fs", "http"))
	w.folder(map[string]string{"notes.txt": "milk"})
	checks, err := mounts.Checks(author{w, w.server("pong")})
	if err != nil {
		t.Fatal(err)
	}
	before := w.shape()
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	w.same(before)
}
