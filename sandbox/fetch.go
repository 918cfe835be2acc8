package sandbox

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// Fetch carries out an HTTP request. It must honour ctx until the body is
// closed.
type Fetch func(ctx context.Context, r *Request) (*Response, error)

// Request is what fetch was called with.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte // nil for none
}

// Response answers a fetch. The realm closes Body, at the latest when it is
// closed itself. Nil is an empty one.
type Response struct {
	Status     int
	StatusText string
	URL        string
	Header     http.Header
	Body       io.ReadCloser
}

// fetchFunc makes a JavaScript fetch of a Go one. The Go side of it is made
// when the first request is.
func (r *Realm) fetchFunc(f Fetch) (goja.Value, error) {
	var fetch goja.Callable
	return r.native("fetch", func(c goja.FunctionCall) goja.Value {
		if fetch == nil {
			lib := r.fetch()
			mk, _ := goja.AssertFunction(lib.Get("fetch"))
			made := r.must(mk(goja.Undefined(), r.native("send", func(c goja.FunctionCall) goja.Value { return r.send(f, c) })))
			fetch, _ = goja.AssertFunction(made)
		}
		return r.must(fetch(goja.Undefined(), c.Arguments...))
	}), nil
}

// send carries out (method, url, headers, body, signal).
func (r *Realm) send(f Fetch, c goja.FunctionCall) goja.Value {
	req := &Request{Method: c.Argument(0).String(), URL: c.Argument(1).String(), Header: http.Header{}}
	headers := c.Argument(2).ToObject(r.vm)
	for _, k := range headers.Keys() {
		req.Header.Set(k, headers.Get(k).String())
	}
	if body := c.Argument(3); !goja.IsUndefined(body) {
		rd := reader{r: r, bytes: true, what: "body"}
		v, err := rd.protected(body)
		if err == nil {
			err = r.spend(rd.size)
		}
		if err != nil {
			return r.must(nil, err)
		}
		switch x := v.(type) {
		case string:
			req.Body = []byte(x)
		case []byte:
			req.Body = x
		}
	}
	ctx, unsignal := r.here(), func() {}
	if signal, ok := c.Argument(4).(*goja.Object); ok {
		if s, stop := r.signalOf(signal); s != nil {
			ctx, unsignal = s, sync.OnceFunc(stop)
		}
	}
	// The request lives as long as its body, so its context does too.
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	end := func() { unlink(); cancel(context.Canceled); unsignal() }
	answer, err := r.settleLater(ctx, func(context.Context) (any, error) {
		resp, err := f(ctx, req)
		if err == nil && resp == nil {
			err = seams.Errorf(seams.WrongType, "fetch", "the host answered nothing")
		}
		if err != nil {
			if ctx.Err() != nil {
				err = signalCause(ctx)
			}
			end()
			return nil, err
		}
		return &body{resp: resp, ctx: ctx, end: end}, nil
	}, func(v any) (goja.Value, error) { return r.transfer(v.(*body)) })
	if err != nil {
		end()
	}
	return r.must(answer, err)
}

// body is a response whose body has not ended.
type body struct {
	resp   *Response
	ctx    context.Context
	end    func()
	open   *resource
	busy   atomic.Bool
	failed error // of the last read; belongs to the read that runs
}

// transfer makes what the prelude's Response reads from.
func (r *Realm) transfer(b *body) (goja.Value, error) {
	b.open = r.keep(func() {
		if b.end(); b.resp.Body != nil {
			b.resp.Body.Close()
		}
	})
	if b.resp.Body == nil {
		r.drop(b.open)
	}
	headers := r.vm.NewObject()
	for k, v := range b.resp.Header {
		headers.Set(strings.ToLower(k), strings.Join(v, ", "))
	}
	o := r.vm.NewObject()
	// A response that nobody reads is closed when it is garbage.
	runtime.AddCleanup(o, r.drop, b.open)
	o.Set("status", b.resp.Status)
	o.Set("statusText", b.resp.StatusText)
	o.Set("url", b.resp.URL)
	o.Set("headers", headers)
	o.Set("read", r.native("read", func(goja.FunctionCall) goja.Value { return r.must(r.readBody(b)) }))
	o.Set("close", r.native("close", func(goja.FunctionCall) goja.Value {
		return r.must(r.async(r.ctx, func(context.Context) (any, error) { r.drop(b.open); return nil, nil }))
	}))
	return o, nil
}

const chunk = 32 << 10

// readBody answers a promise of the next bytes, null at the end.
func (r *Realm) readBody(b *body) (goja.Value, error) {
	if b.resp.Body == nil {
		return goja.Null(), nil
	}
	if !b.busy.CompareAndSwap(false, true) {
		return nil, seams.Errorf(seams.InvalidArgument, "fetch", "the body is being read already: await the read before the next one")
	}
	return r.settleLater(b.ctx, func(context.Context) (any, error) {
		defer b.busy.Store(false)
		if b.failed != nil {
			return nil, b.failed
		}
		buf := make([]byte, chunk)
		for {
			n, err := b.resp.Body.Read(buf)
			switch {
			case n > 0:
				return buf[:n], nil
			case errors.Is(err, io.EOF):
				r.drop(b.open)
				return []byte(nil), nil
			case err != nil:
				if b.ctx.Err() != nil {
					err = signalCause(b.ctx)
				}
				b.failed = err
				r.drop(b.open)
				return nil, err
			}
		}
	}, func(v any) (goja.Value, error) {
		if p := v.([]byte); p != nil {
			return r.vm.ToValue(r.vm.NewArrayBuffer(p)), nil
		}
		return goja.Null(), nil
	})
}
