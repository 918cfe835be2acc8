package script

import (
	"context"

	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// Eval evaluates an expression with process.env and nothing else, and returns
// its value as data; a variable that is not set is nil. Expressions share one
// realm, one at a time: one that ends it fails no other. Errors are those of compiling, of what the expression threw and of its
// budgets.
func (e *Engine) Eval(ctx context.Context, expr string) (any, error) {
	program, err := e.compiler.Compile(compile.Source{Name: "!!js", Text: expr, Form: compile.Expression})
	if err != nil {
		return nil, err
	}
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	realm, err := e.evaluator()
	if err != nil {
		return nil, err
	}
	return realm.Eval(ctx, program)
}

// evaluator is the realm of expressions; one that died is replaced.
func (e *Engine) evaluator() (*sandbox.Realm, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, seams.Errorf(seams.Unloaded, "script.Eval", "the engine is closed")
	}
	if e.eval != nil && e.eval.Err() == nil {
		return e.eval, nil
	}
	env := e.opt.Env
	if env == nil {
		env = map[string]string{}
	}
	realm, err := e.spare.New(context.Background(), sandbox.Options{
		Name: "!!js", Ambient: sandbox.Ambient{Env: env}, Budgets: e.opt.Budgets,
		Log: func(level, text string) { e.opt.Log("!!js", level, text) },
	})
	if err != nil {
		return nil, err
	}
	if dead := e.eval; dead != nil {
		e.ending.Go(func() { _ = dead.Close(closeGrace) })
	}
	e.eval = realm
	return realm, nil
}
