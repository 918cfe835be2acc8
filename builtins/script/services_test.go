package script_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ouro-run/ouro/builtins/fs"
	client "github.com/ouro-run/ouro/builtins/http"
	"github.com/ouro-run/ouro/builtins/script"
)

// The services of the machine, from code that an agent mounted.
func TestServicesOfTheMachine(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Echo", r.Header.Get("X-Ask"))
		rw.WriteHeader(201)
		_, _ = rw.Write([]byte(`{"method":"` + r.Method + `"}`))
	}))
	t.Cleanup(server.Close)
	w := newWorld(t)
	w.mount(client.Plugin(), map[string]any{})
	w.write("data/a.txt", "alpha")
	w.mount(fs.Plugin(w.dir), map[string]any{"root": "data", "write": true})
	_, err := w.mounted("dyn-1", `return { inject: ['fs', 'http', 'logger'].slice(0, 2), async apply(ctx) {
  console.log(await ctx.fs.readText('a.txt'), (await ctx.fs.list()).map((f) => f.name + ':' + f.type + ':' + f.size).join())
  await ctx.fs.writeText('sub/b.txt', 'beta')
  console.log((await ctx.fs.stat('sub')).type, await ctx.fs.readText('sub/b.txt'))
  await ctx.fs.remove('sub/b.txt')
  for (const f of [() => ctx.fs.readText('sub/b.txt'), () => ctx.fs.readText('../../x'), () => ctx.fs.readText(7), () => ctx.fs.writeText('x')])
    try { await f(); console.log('taken') } catch (e) { console.log(e.code) }
  const r = await ctx.http.fetch('`+server.URL+`/x', { method: 'PUT', body: 'hi', headers: { 'x-ask': 'yes' } })
  console.log(r.status, r.headers.get('x-echo'), (await r.json()).method)
  try { await ctx.http.fetch('file:///etc/passwd') } catch (e) { console.log(e.code ?? e.cause?.code) }
} }`)
	if err != nil {
		t.Fatal(err)
	}
	w.expect("alpha a.txt:file:5", "folder beta", "NOT_FOUND", "ACCESS_DENIED", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "201 yes PUT", "INVALID_ARGUMENT")
}

// A file has fetch as in Node, by the same client.
func TestGlobalFetch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { _, _ = rw.Write([]byte("hello")) }))
	t.Cleanup(server.Close)
	c := client.New(client.Config{})
	t.Cleanup(c.Close)
	w := newWorld(t, func(o *script.Options) { o.Fetch = c.Fetch })
	w.js("fetch.js", `module.exports = async () => { console.log(await (await fetch('`+server.URL+`')).text()) }`)
	w.expect("hello")
}

// Without a logger, ctx.logger of a file writes where the console does.
func TestLoggerWithoutService(t *testing.T) {
	w := newWorld(t)
	w.js("log.js", `module.exports = (ctx) => { ctx.logger.info('own', 1); ctx.logger('x').error('bad') }`)
	if got := w.log(); len(got) != 2 || got[0][len(got[0])-len("info own 1"):] != "info own 1" || got[1][len(got[1])-len("error bad"):] != "error bad" {
		t.Errorf("log = %q", got)
	}
}

// Another JavaScript plugin may stand in for a service of the table.
func TestServiceInJavaScript(t *testing.T) {
	w := newWorld(t)
	w.js("fs.js", `module.exports = { provide: 'fs', apply(ctx) { ctx.provide('fs', { readText: (p) => 'text of ' + p }) } }`)
	w.js("reads.js", `module.exports = { inject: ['fs'], async apply(ctx) { console.log(await ctx.fs.readText('a')) } }`)
	w.expect("text of a")
}
