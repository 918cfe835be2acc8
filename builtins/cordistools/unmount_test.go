package cordistools_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

// everything is a plugin that registers something of each kind.
const everything = `return { name: 'everything', inject: ['tools', 'timer', 'memory'], apply(ctx) {
	ctx.on('tools/result', (exec) => console.log('heard', exec.name))
	ctx.once('never', () => {})
	ctx.provide('all', { f: () => 1 })
	ctx.interval(() => console.log('tick'), 1)
	ctx.effect(() => async () => { await null; console.log('undone') })
	harness.registerTool(ctx, harness.defineTool({ name: 't', description: 'x', execute: () => 1 }))
	return () => console.log('returned disposer')
} }`

//
func TestUnmount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, nil)
		before := w.shape()
		id := w.running(everything)
		w.ok("t", nil)
		w.until("a tick", func() bool { return slices.Contains(w.console(), "[cordis:dyn-1] info tick") })
		r := w.call("cordis_unmount", map[string]any{"id": id})
		if v, _ := r.Value.(map[string]any); len(v) != 2 || v["id"] != id || v["pluginName"] != "everything" {
			t.Errorf("%+v", r)
		}
		if got := r.Content.Text(); got != `Temporary Plugin dyn-1 (plugin "everything") is unmounted.` {
			t.Error(got)
		}
		after := w.console()
		if n := len(after); after[n-1] != "[cordis:dyn-1] info undone" || after[n-2] != "[cordis:dyn-1] info returned disposer" {
			t.Errorf("the disposers have not run last first: %q", after[max(0, n-4):])
		}
		w.same(before)
		w.fails("t", nil, seams.UnknownTool)
		time.Sleep(20 * time.Millisecond)
		if got := w.console(); len(got) != len(after) {
			t.Errorf("something ran after the end: %q", got[len(after):])
		}
		if got := w.section("temporary"); len(got) != 1 || !strings.HasPrefix(got[0], "No temporary plugin is running") {
			t.Errorf("%q", got)
		}
	})
}

//
func TestUnmountUnknown(t *testing.T) {
	w := newWorld(t, nil)
	id := w.running("return () => {}")
	w.unmount(id)
	for _, bad := range []string{id, "dyn-99", "", "cordis-tools", "tools"} {
		w.fails("cordis_unmount", map[string]any{"id": bad}, seams.NotFound, `"`+bad+`"`, "cordis_inspect", "'temporary'")
	}
}

//
func TestToolsetCascades(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.toolset.Dispose().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := w.shape()
	w.toolset = w.run(w.plugin, map[string]any{})
	w.running(everything)
	w.running(adder)
	w.mount("return { inject: ['never'], apply() {} }")
	if err := w.toolset.Dispose().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.fails("cordis_inspect", nil, seams.UnknownTool)
	after := w.shape()
	if !slices.Equal(before, after) {
		t.Errorf("\n%q\n%q", before, after)
	}
	// A new activation does not use an id again.
	w.toolset = w.run(w.plugin, map[string]any{})
	if id := w.running("return () => {}"); id != "dyn-4" {
		t.Error(id)
	}
}

// A configuration that changes replaces the toolset: its mounts go, its ids go on.
func TestToolsetReplaced(t *testing.T) {
	w := newWorld(t, nil)
	w.running(adder)
	f, err := w.toolset.Update(map[string]any{"maxMounts": 1})
	if err == nil {
		err = f.Settle(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.until("the end of the old mounts", func() bool { return !w.has("add") })
	if id := w.running(adder); id != "dyn-2" {
		t.Error(id)
	}
	w.refused("return () => {}", seams.TooMany, "1 temporary")
}

// A mount that waits on its services is unmounted as one that runs, and holds
// no realm meanwhile.
func TestUnmountPending(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	for range 40 { // more than an engine would keep
		v := w.mount("console.log('evaluated'); return { inject: ['never'], apply() {} }")
		w.unmount(v["id"].(string))
	}
	w.same(before)
}

// A tool that unmounts its own plugin has its answer; the plugin goes when the
// call has ended.
func TestUnmountsItself(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	id := w.running(`return { name: 'suicidal', inject: ['tools'], apply(ctx) {
		ctx.effect(() => () => console.log('gone'))
		harness.registerTool(ctx, harness.defineTool({ name: 't', description: 'x', async execute() {
			const r = await ctx.tools.execute({ name: 'cordis_unmount', arguments: { id: 'dyn-1' } })
			const again = await ctx.tools.execute({ name: 'cordis_unmount', arguments: { id: 'dyn-1' } })
			return [r.isError, r.value, again.isError, r.additionalContexts[0].content[0].text]
		} }))
	} }`)
	got := w.ok("t", nil)
	if want := `[false,{"id":"dyn-1","pluginName":"suicidal"},false,"Temporary Plugin dyn-1 goes when the call that asked for it, its own, has ended."]`; got != want {
		t.Errorf("%s", got)
	}
	w.until("the end", func() bool { return !w.has("t") && slices.Contains(w.console(), "[cordis:"+id+"] info gone") })
	w.same(before)
	w.fails("cordis_unmount", map[string]any{"id": id}, seams.NotFound)
	// From a timer there is no call to wait for.
	w.running(`return { inject: ['tools', 'timer'], apply(ctx) {
		ctx.setInterval(() => ctx.tools.execute({ name: 'cordis_unmount', arguments: { id: 'dyn-2' } }), 5)
	} }`)
	w.until("the end", func() bool {
		return len(w.section("temporary")) == 1 && strings.HasPrefix(w.section("temporary")[0], "No")
	})
	w.same(before)
}

// While a call of the mount runs, its unmount waits; new calls find nothing.
func TestUnmountWaitsForCalls(t *testing.T) {
	w := newWorld(t, nil)
	hold, held := make(chan struct{}), make(chan struct{})
	_, err := w.tools.Register(w.root, tools.Definition{Name: "hold", Description: "waits", Execute: func(context.Context, *tools.Exec, any) (any, error) {
		close(held)
		<-hold
		return "whole", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := w.shape()
	id := w.running(`return { name: 'slow', inject: ['tools'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 't', description: 'x', async execute() { return (await ctx.tools.execute({ name: 'hold' })).value } }))
	} }`)
	answer, gone := make(chan string, 1), make(chan struct{})
	go func() { answer <- w.call("t", nil).Content.Text() }()
	<-held
	go func() { defer close(gone); w.unmount(id) }()
	w.until("the tool to be hidden", func() bool { return !w.has("t") })
	w.fails("t", nil, seams.UnknownTool)
	select {
	case <-gone:
		t.Error("the unmount did not wait for the call")
	case <-time.After(20 * time.Millisecond):
	}
	close(hold)
	<-gone
	if got := <-answer; got != "whole" {
		t.Errorf("the call ended with %s", got)
	}
	w.same(before)
}

// A disposer that throws is told, and everything else is undone.
func TestUnmountWithBadDisposer(t *testing.T) {
	w := newWorld(t, nil)
	before := w.shape()
	id := w.running(`return { inject: ['tools'], apply(ctx) {
		ctx.effect(() => () => console.log('first'))
		ctx.effect(() => () => { throw new Error('will not go') })
		harness.registerTool(ctx, harness.defineTool({ name: 't', description: 'x', execute: () => 1 }))
	} }`)
	w.unmount(id)
	w.reported("will not go")
	if got := w.console(); !slices.Contains(got, "[cordis:dyn-1] info first") {
		t.Errorf("%q", got)
	}
	w.same(before)
}

// Two unmounts of one mount both come back when it is gone.
func TestUnmountTwiceAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	for range 20 {
		id := w.running(everything)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				if r := w.call("cordis_unmount", map[string]any{"id": id}); r.IsError && r.Error.Code != seams.NotFound {
					errs <- errors.New(r.Error.Message)
				} else if w.has("t") {
					errs <- errors.New("its tool is there")
				} else {
					errs <- nil
				}
			}()
		}
		if err := errors.Join(<-errs, <-errs); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.section("temporary")); n != 1 {
		t.Errorf("%d rows are left", n)
	}
}
