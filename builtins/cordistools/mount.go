package cordistools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// mount is a row of the table. One whose realm died stays in it, with the
// reason, until it is unmounted or newer ones of its kind displace it.
type mount struct {
	id     string
	name   string
	plugin *cordis.Plugin
	fiber  *cordis.Fiber
	died   error // guarded by toolset.mu
}

func (m *mount) gone() bool { return m.fiber.State() == cordis.Disposed }

// anonymous is the name of a plugin that has none.
const anonymous = "<anonymous>"

// pluginName makes a name that fits into a line.
func pluginName(s string) string {
	const most = 64
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return cmp.Or(s, anonymous)
}

// unfenced takes code out of a fence of Markdown.
func unfenced(code string) string {
	fence, rest, _ := strings.Cut(strings.TrimSpace(code), "\n")
	if body, closed := strings.CutSuffix(rest, "```"); closed && strings.HasPrefix(fence, "```") {
		return "\n" + body // as many lines above it as the author counts
	}
	return code
}

// mount evaluates code and runs the plugin it returns. One that waits for a
// service is mounted; one that fails is not, and nothing of it is left.
func (t *toolset) mount(ctx context.Context, code string) (report, error) {
	m := &mount{id: fmt.Sprintf("dyn-%d", t.ids.Add(1))}
	if err := t.reserve(); err != nil {
		return report{}, err
	}
	defer t.release()
	var err error
	m.plugin, err = t.engine.Mount(ctx, script.Mount{
		ID: m.id, Code: unfenced(code), Permit: t.permit,
		Budgets: sandbox.Budgets{Turn: milliseconds(t.cfg.VMTimeoutMS)},
		Apply:   milliseconds(t.cfg.ApplyTimeoutMS), Call: milliseconds(t.cfg.CallTimeoutMS),
		Dead: func(why error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			m.died = why
		},
	})
	if err != nil {
		return report{}, teach(err, m.id)
	}
	// A plugin that does not start now is read again when it does.
	defer t.engine.Release(m.plugin)
	m.plugin.Name = pluginName(m.plugin.Name)
	m.name = m.plugin.Name
	if m.fiber, err = t.group.Plugin(m.plugin, nil); err != nil {
		return report{}, teach(err, m.id)
	}
	if err = m.fiber.Settle(ctx); err == nil && m.gone() {
		t.mu.Lock()
		err = m.died
		t.mu.Unlock()
		if err == nil {
			err = seams.Errorf(seams.Unloaded, "cordis_mount", "cordis-tools was unloaded while it mounted %s", m.id)
		}
	}
	if err != nil {
		if left := m.fiber.Dispose().Wait(context.WithoutCancel(ctx)); left != nil {
			err = fmt.Errorf("%w; and taking it back failed: %w", err, left)
		}
		return report{}, teach(err, m.id)
	}
	t.mu.Lock()
	t.mounts = append(t.mounts, m)
	t.mu.Unlock()
	return t.describe(t.ctx.Container().Inspect(), m), nil
}

// reserve takes a place for a mount on its way.
func (t *toolset) reserve() error {
	rows := t.rows()
	t.mu.Lock()
	defer t.mu.Unlock()
	live := t.coming
	for _, m := range rows {
		if !m.gone() {
			live++
		}
	}
	if live >= t.cfg.MaxMounts {
		return seams.Errorf(seams.TooMany, "cordis_mount", "there are %d temporary plugins, which is the limit (maxMounts): unmount one first; cordis_inspect with what: 'temporary' lists them", live)
	}
	t.coming++
	return nil
}

func (t *toolset) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coming--
}

// teach makes an error of a mount one from which its author learns: it says
// where, and what to do about a name that is taken or about a
// configuration, which mounts do not have.
func teach(err error, id string) error {
	var e *seams.Error
	if !errors.As(err, &e) {
		return err
	}
	out := &seams.Error{Code: e.Code, Op: "cordis_mount", Msg: e.Msg, Err: err}
	if strings.HasPrefix(e.Op, id) && !strings.Contains(e.Msg, id) {
		out.Msg = e.Op + ": " + e.Msg
	}
	switch e.Code {
	case seams.Duplicate, seams.Clash:
		out.Msg += ". If an older version of this plugin holds it: find its id with cordis_inspect, what: 'temporary', cordis_unmount that id, then mount the new version"
	case seams.InvalidConfig:
		out.Msg += ". A mounted plugin is given no configuration: give each member of Config a default, or write the values into the code"
	}
	return out
}

// unmount removes a mount. When it returns, nothing of it is left. Called from
// inside the mount itself it returns before, and answers later: the mount goes
// when that call has ended.
func (t *toolset) unmount(ctx context.Context, id string) (m *mount, later bool, err error) {
	rows := t.rows()
	i := slices.IndexFunc(rows, func(m *mount) bool { return m.id == id })
	if i < 0 {
		return nil, false, seams.Errorf(seams.NotFound, "cordis_unmount", "there is no temporary plugin %q: cordis_inspect with what: 'temporary' lists those there are, and only these can be unmounted", id)
	}
	m = rows[i]
	err = m.fiber.Dispose().Wait(ctx)
	if seams.CodeOf(err) == seams.WouldDeadlock {
		return m, true, nil
	}
	if err == nil {
		t.mu.Lock()
		t.mounts = slices.DeleteFunc(t.mounts, func(o *mount) bool { return o == m })
		t.mu.Unlock()
	}
	return m, false, err
}

// rows returns the table, oldest first, after taking out those that have gone:
// whose end was asked for, and the oldest of those that died.
func (t *toolset) rows() []*mount {
	t.mu.Lock()
	defer t.mu.Unlock()
	dead := 0
	for i, m := range slices.Backward(t.mounts) {
		if !m.gone() {
			continue
		}
		if m.died != nil {
			dead++
		}
		if m.died == nil || dead > t.cfg.MaxMounts {
			t.mounts = slices.Delete(t.mounts, i, i+1)
		}
	}
	return slices.Clone(t.mounts)
}

// report is what is told of a mount.
type report struct {
	id, name, state   string
	provides, waiting []string
	died              string
}

// describe reads a mount's state from a snapshot.
func (t *toolset) describe(s cordis.Snapshot, m *mount) report {
	r := report{id: m.id, name: m.name, state: cordis.Disposed.String()}
	t.mu.Lock()
	if m.died != nil {
		r.died = m.died.Error()
	}
	t.mu.Unlock()
	below := subtree(s, m.fiber.ID())
	type slot struct{ name, realm string }
	live := map[slot]bool{}
	for _, sv := range s.Services {
		if sv.Visible {
			live[slot{sv.Name, sv.Realm}] = true
		}
		if below[sv.Provider] {
			r.provides = append(r.provides, sv.Name)
		}
	}
	for _, f := range s.Fibers {
		if f.ID != m.fiber.ID() {
			continue
		}
		r.state = f.State
		for _, n := range f.Inject {
			if !live[slot{n.Service, n.Realm}] {
				r.waiting = append(r.waiting, n.Service)
			}
		}
	}
	return r
}

// subtree is the ids of a fiber and of those below it.
func subtree(s cordis.Snapshot, root uint64) map[uint64]bool {
	below := map[uint64]bool{root: true}
	for _, f := range s.Fibers { // parents stand before their children
		if f.Parent != f.ID && below[f.Parent] {
			below[f.ID] = true
		}
	}
	return below
}

// value is the report as the output of cordis_mount.
func (r report) value() map[string]any {
	return map[string]any{"id": r.id, "pluginName": r.name, "state": r.state, "provides": list(r.provides), "waitingFor": list(r.waiting)}
}

func list(s []string) []any {
	out := make([]any, len(s))
	for i, v := range s {
		out[i] = v
	}
	return out
}

const lifetime = "in memory only, until it is unmounted or the process ends"

// text tells a mount's start to the model.
func (r report) text() string {
	if len(r.waiting) > 0 {
		return fmt.Sprintf("Temporary Plugin %s is pending (plugin %q; missing services: %s; %s)", r.id, r.name, strings.Join(r.waiting, ", "), lifetime)
	}
	return fmt.Sprintf("Temporary Plugin %s is running (plugin %q; %s)", r.id, r.name, lifetime)
}

// line is a mount's line in the temporary section.
func (r report) line() string {
	state := r.state
	if state == cordis.Active.String() {
		state = "running"
	}
	line := fmt.Sprintf("- Temporary Plugin %s: %s [%s] — provides: %s; waiting for: %s; lifetime: %s", r.id, r.name, state, orNone(r.provides), orNone(r.waiting), lifetime)
	if r.died != "" {
		line += "; it was stopped: " + r.died
	}
	return line
}
