package timer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ouro-run/ouro/builtins/timer"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

func TestProvidesThePermission(t *testing.T) {
	c := cordis.New(cordis.Options{})
	defer c.Close(context.Background())
	f, err := c.Root().Plugin(timer.Plugin(), map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Ready().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := cordis.Lookup(c.Root(), timer.Key); !ok {
		t.Error("the service is not provided")
	}
}

func TestTakesNoConfiguration(t *testing.T) {
	_, err := timer.Plugin().Config.Resolve(map[string]any{"tick": 1.0})
	if !errors.Is(err, seams.InvalidConfig) {
		t.Errorf("err = %v, want INVALID_CONFIG", err)
	}
}
