package sandbox

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// An error that reaches itself keeps its other facts, whether it is thrown,
// returned or rejected unhandled.
func TestErrorThatReachesItself(t *testing.T) {
	if !again(t) {
		return
	}
	for _, made := range []string{
		`const e = new Error('mine'); e.response = { status: 500, error: e }; e.status = 500;`,
		`const e = new Error('mine'), o = new Error('other'); e.other = o; o.other = e; e.status = 500;`,
	} {
		bubble(t, func(t *testing.T) {
			l := open(t, Options{})
			thrown := func(err error) {
				t.Helper()
				wantError(t, err, seams.ScriptError, "Error: mine")
				if x := (*Thrown)(nil); !errors.As(err, &x) || x.Data["status"] != 500.0 {
					t.Errorf("%s\n  %+v", made, x)
				}
			}
			_, err := l.eval(made + `throw e`)
			thrown(err)
			v, err := l.eval(made + `return { e }`)
			if err != nil {
				t.Fatal(err)
			}
			if e := v.(map[string]any)["e"].(map[string]any); e["name"] != "Error" || e["message"] != "mine" || e["status"] != 500.0 {
				t.Errorf("%s\n  %v", made, e)
			}
			l.want(made+`Promise.reject(e); return 1`, 1)
			synctest.Wait()
			if rs := l.reports(); len(rs) != 1 {
				t.Error(rs)
			} else {
				thrown(rs[0])
			}
		})
	}
}

// Text that is made of itself counts as nested calls.
func TestTextOfItself(t *testing.T) {
	for _, code := range []string{
		`const e = new Error('x'); e.message = e; throw e`,
		`const e = new Error('x'); e.message = e; return String(e)`,
		`const o = { toString: Object.prototype.toLocaleString }; return String(o)`,
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			if out := child(t, "patient", code); !strings.Contains(out, "nested") || !strings.Contains(out, "[OVER_BUDGET]") {
				t.Errorf("%s\n  answered %.200s", code, out)
			}
		})
	}
}

// Text and JSON that would be too large are refused before they are made.
func TestTooLargeToMake(t *testing.T) {
	for _, code := range []string{
		`return Array(4000).fill('x'.repeat(6e5)).join('').length`,
		`return ''.concat(...Array(2000).fill('x'.repeat(6e6))).length`,
		"return 'a'.repeat(1e6).replaceAll('a', '$`').length",
		`return JSON.stringify(Array(2000).fill('x'.repeat(6e5))).length`,
		`return JSON.parse('[' + '[],'.repeat(2e6) + '[]]').length`,
		`let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return JSON.stringify({ toJSON: () => a }).length`,
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			if out := child(t, "patient", code); !strings.Contains(out, "RangeError: ") {
				t.Errorf("%s\n  answered %.200s", code, out)
			}
		})
	}
}

// A call whose asynchronous answer throws when it is read ends with that error.
func TestAnswerThatThrowsWhenRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, Options{Ambient: Ambient{Timers: true}})
		o := l.exports("a.js", `
const later = () => new Promise((f) => setTimeout(f, 1))
const answers = (answer, wait) => () => ({ [Symbol.asyncIterator]: () => ({ next: async () => { if (wait) await later(); return answer } }) })
const done = { get done() { throw new Error('on purpose') } }, value = { get value() { throw new Error('on purpose') } }
Object.assign(exports, { done: answers(done), doneLater: answers(done, true), value: answers(value), valueLater: answers(value, true) })
exports.member = async () => { await later(); return { get a() { throw new Error('on purpose') } } }`)
		for _, name := range []string{"done", "doneLater", "value", "valueLater"} {
			var errs []error
			for _, err := range o.Iterate(t.Context(), name) {
				errs = append(errs, err)
			}
			if len(errs) != 1 {
				t.Fatal(name, errs)
			}
			wantError(t, errs[0], seams.ScriptError, "on purpose")
		}
		_, err := o.Call(t.Context(), "member")
		wantError(t, err, seams.ScriptError, "on purpose")
		synctest.Wait()
		if l.Err() != nil || len(l.reports()) != 0 {
			t.Error(l.Err(), l.reports())
		}
	})
}

// In the minute after a busy one a turn has its whole time.
func TestMinuteBeginsAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, Options{Budgets: Budgets{Turn: time.Second, Minute: 2 * time.Second}})
		if l.minute = (perMinute{began: time.Now()}); !l.minute.add(int64(2*time.Second), int64(2*time.Second)) || l.minute.add(1, int64(2*time.Second)) {
			t.Error(l.minute)
		}
		time.Sleep(time.Minute)
		l.want(`return 1`, 1)
		l.dog.mu.Lock()
		defer l.dog.mu.Unlock()
		if l.dog.limit != time.Second {
			t.Error(l.dog.limit)
		}
	})
}

// The length of what is no array is a member like others, of any size.
func TestLengthOfAnObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, Options{})
		l.want(`const o = { name: 'a', length: 7340032 }; return [Object.keys(o).join(), Object.values(o).join(), Object.entries(o).length, Object.assign({}, o).name, Reflect.ownKeys(o).join(), Object.freeze(o) === o]`,
			[]any{"name,length", "a,7340032", 2, "a", "name,length", true})
	})
}

// Responses whose bodies are never read are closed when they are garbage.
func TestUnreadResponsesAreClosed(t *testing.T) {
	var closed atomic.Int32
	l := open(t, Options{Ambient: Ambient{Fetch: func(context.Context, *Request) (*Response, error) {
		return &Response{Status: 200, Body: &closing{strings.NewReader("unread"), &closed}}, nil
	}}})
	l.want(`for (let i = 0; i < 500; i++) await fetch('http://h/'); return 1`, 1)
	// The VM may hold on to the last ones.
	eventually(t, "they are closed", func() bool { runtime.GC(); return closed.Load() > 490 })
}
