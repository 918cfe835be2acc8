package script

import (
	"context"

	"github.com/ouro-run/ouro/builtins/fs"
	"github.com/ouro-run/ouro/builtins/http"
	"github.com/ouro-run/ouro/builtins/logger"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/memory"
)

var memoryService = service{
	Service: Service{Name: "memory", Summary: "What outlives a session: items by key, by text and by similarity."},
	methods: []method{
		{Method: Method{"put", "put(item: MemoryItem): Promise<MemoryItem>",
			"Stores an item under its scope and key, in place of the one that is there."},
			async: true, args: data, call: of(memory.Key, "put", func(ctx context.Context, _ *host, s memory.Store, args []any) (any, error) {
				it, err := decode[memory.Item](seams.InvalidArgument, "ctx.memory.put", arg(args, 0), true)
				if err != nil {
					return nil, err
				}
				return answer(s.Put(ctx, it))
			})},
		{Method: Method{"get", "get(scope: MemoryScope, key: string): Promise<MemoryItem>",
			"Reads the item of exactly this scope and key; rejects with code NOT_FOUND when there is none."},
			async: true, args: data, call: of(memory.Key, "get", func(ctx context.Context, _ *host, s memory.Store, args []any) (any, error) {
				scope, key, err := memoryKey("ctx.memory.get", args)
				if err != nil {
					return nil, err
				}
				return answer(s.Get(ctx, scope, key))
			})},
		{Method: Method{"delete", "delete(scope: MemoryScope, key: string): Promise<boolean>",
			"Removes an item and answers whether it was there."},
			async: true, args: data, call: of(memory.Key, "delete", func(ctx context.Context, _ *host, s memory.Store, args []any) (any, error) {
				scope, key, err := memoryKey("ctx.memory.delete", args)
				if err != nil {
					return nil, err
				}
				return s.Delete(ctx, scope, key)
			})},
		{Method: Method{"search", "search(query: MemoryQuery): Promise<{ hits: MemoryHit[]; ranking: 'time' | 'text' | 'similarity' }>",
			"Finds the items that are visible from a scope and fit all of the query, the best first."},
			async: true, args: data, call: of(memory.Key, "search", func(ctx context.Context, _ *host, s memory.Store, args []any) (any, error) {
				q, err := decode[memory.Query](seams.InvalidArgument, "ctx.memory.search", arg(args, 0), true)
				if err != nil {
					return nil, err
				}
				return answer(s.Search(ctx, q))
			})},
	},
}

var data = []sandbox.Kind{sandbox.Data, sandbox.Data}

// answer encodes what a Go method answered.
func answer[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return encode(v)
}

func memoryKey(op string, args []any) (memory.Scope, string, error) {
	scope, err := decode[memory.Scope](seams.InvalidArgument, op, arg(args, 0), true)
	if err != nil {
		return scope, "", err
	}
	key, err := textArg(op, args, 1, "a key")
	return scope, key, err
}

var loggerService = service{
	Service: Service{Name: "logger", Summary: "Writes records under the plugin's name."},
	open:    true,
	methods: []method{
		{Method: Method{"", "logger(name: string): Log",
			"Makes a logger of another name."},
			args: data, call: func(_ context.Context, h *host, args []any) (any, error) {
				name, err := textArg("ctx.logger", args, 0, "a name")
				if err != nil {
					return nil, err
				}
				log := map[string]any{}
				for _, level := range []logger.Level{logger.Error, logger.Warn, logger.Info, logger.Debug} {
					log[level.String()] = sandbox.HostFunc(func(_ context.Context, values []any) (any, error) {
						return nil, h.log(level, name, values)
					})
				}
				return log, nil
			}},
		logMethod(logger.Error, "Logs what went wrong."),
		logMethod(logger.Warn, "Logs what may go wrong."),
		logMethod(logger.Info, "Logs what people want to know."),
		logMethod(logger.Debug, "Logs what helps to find an error."),
	},
}

func logMethod(level logger.Level, doc string) method {
	return method{Method: Method{level.String(), level.String() + "(...values: any[]): void", doc},
		call: func(_ context.Context, h *host, args []any) (any, error) { return nil, h.log(level, "", args) }}
}

// log writes through the logger service or, where none is provided, as the
// console does. The explicit name wins over an intercepted one, that over the
// plugin's (C-59).
func (h *host) log(level logger.Level, name string, values []any) error {
	for i, v := range values {
		values[i] = loggable(v)
	}
	l, give, err := use(h, logger.Key)
	if err != nil {
		// A record is not lost because nobody provides a logger.
		hub := logger.NewHub()
		hub.Export(func(r logger.Record) { h.source.log(r.Level.String(), r.Text) })
		hub.Logger("").Log(level, values...)
		return nil
	}
	defer give()
	if name != "" {
		l = l.Named(name)
	}
	l.Log(level, values...)
	return nil
}

// loggable shows an Error, which crosses as its facts, as its text.
func loggable(v any) any {
	switch v := v.(type) {
	case nil:
		return "null"
	case *sandbox.Func:
		return "[Function]"
	case *sandbox.Object:
		return "[Object]"
	case map[string]any:
		name, isName := v["name"].(string)
		message, isMessage := v["message"].(string)
		if isName && isMessage {
			return name + ": " + message
		}
	}
	return v
}

var httpService = service{
	Service: Service{Name: "http", Summary: "Network requests."},
	methods: []method{
		{Method: Method{"fetch", "fetch(url: string | Request, init?: { method?: string; headers?: any; body?: string | Uint8Array; signal?: AbortSignal }): Promise<Response>",
			"Requests a URL, http or https. The response has status, ok, headers, text(), json(), arrayBuffer() and body, which can be read in pieces."},
			fetch: true, call: of(http.Key, "fetch", func(ctx context.Context, _ *host, c *http.Client, args []any) (any, error) {
				r, ok := arg(args, 0).(*sandbox.Request)
				if !ok {
					return nil, seams.Errorf(seams.InvalidArgument, "ctx.http.fetch", "expected a request, got %s", kind(arg(args, 0)))
				}
				return c.Fetch(ctx, r)
			})},
	},
}

var fsService = service{
	Service: Service{Name: "fs", Summary: "The text files of one folder. Paths are relative to it, with slashes."},
	methods: []method{
		{Method: Method{"readText", "readText(path: string): Promise<string>", "Reads a text file of at most 4 MiB."},
			async: true, args: data, call: file("readText", func(f *fs.Folder, path string, _ []any) (any, error) { return f.ReadText(path) })},
		{Method: Method{"list", "list(path?: string): Promise<FileInfo[]>", "Lists a folder by name; without a path the root."},
			async: true, args: data, call: of(fs.Key, "list", func(_ context.Context, _ *host, f *fs.Folder, args []any) (any, error) {
				path := "."
				if arg(args, 0) != nil {
					var err error
					if path, err = textArg("ctx.fs.list", args, 0, "a path"); err != nil {
						return nil, err
					}
				}
				return answer(f.List(path))
			})},
		{Method: Method{"stat", "stat(path: string): Promise<FileInfo>", "Describes a file or folder; rejects with code NOT_FOUND when it is not there."},
			async: true, args: data, call: file("stat", func(f *fs.Folder, path string, _ []any) (any, error) { return answer(f.Stat(path)) })},
		{Method: Method{"writeText", "writeText(path: string, text: string): Promise<void>", "Writes a text file in one step, and the folders above it."},
			async: true, args: data, call: file("writeText", func(f *fs.Folder, path string, args []any) (any, error) {
				text, ok := arg(args, 1).(string)
				if !ok {
					return nil, seams.Errorf(seams.InvalidArgument, "ctx.fs.writeText", "argument 2: expected text, got %s", kind(arg(args, 1)))
				}
				return nil, f.WriteText(path, text)
			})},
		{Method: Method{"remove", "remove(path: string): Promise<void>", "Removes a file or an empty folder."},
			async: true, args: data, call: file("remove", func(f *fs.Folder, path string, _ []any) (any, error) { return nil, f.Remove(path) })},
	},
}

// file binds a method that takes a path.
func file(name string, call func(f *fs.Folder, path string, args []any) (any, error)) func(context.Context, *host, []any) (any, error) {
	return of(fs.Key, name, func(_ context.Context, _ *host, f *fs.Folder, args []any) (any, error) {
		path, err := textArg("ctx.fs."+name, args, 0, "a path")
		if err != nil {
			return nil, err
		}
		return call(f, path, args)
	})
}
