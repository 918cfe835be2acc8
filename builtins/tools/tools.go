package tools

import (
	"context"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams/tools"
)

// Plugin returns the plugin. Whoever provides the service "approval" answers
// the questions that policies ask; without it they are refused.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name:    "tools",
		Provide: []string{tools.Key.Name},
		Inject:  []cordis.Need{{Name: tools.ApprovalKey.Name, Optional: true}},
		Apply: func(ctx *cordis.Context, _ any) error {
			_, err := cordis.Provide(ctx, tools.Key, tools.New(tools.Options{
				Bus:   ctx,
				Stamp: ctx.Container().Stamp,
				Approver: func() (tools.Approver, func()) {
					a, give, _ := cordis.Borrow(ctx, tools.ApprovalKey)
					return a, give
				},
				Contained: func(_ context.Context, err error) { ctx.Report("observer", "tools", err) },
			}))
			return err
		},
	}
}
