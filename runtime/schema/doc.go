// Package schema is the one vocabulary for plugin configuration and tool
// parameters, and the door through which JSON-shaped values come in.
//
// # Values
//
// A value is nil, bool, float64, string, []any or map[string]any. [JSON] makes
// one of a Go value and [Parse] of JSON text, both without loss: what has no
// JSON form is NOT_JSON with its path, what is too deep or too large is
// TOO_LARGE. All other functions expect values that came through these doors.
//
// # Schemas
//
// A [Schema] is made in one of these ways, and whichever it was, it is used in
// the same ways:
//
//   - Go plugins use the constructors: [Object], [Array], [String], ...;
//   - [Load] reads the JSON form of a JavaScript plugin's Config, which has
//     schemastery's vocabulary;
//   - [Parameters] and [Output] read what a tool's author wrote: the short
//     parameter map or a JSON Schema;
//   - [AstreusParameters] reads Astreus' ToolParameter map;
//   - [FromJSONSchema] reads the JSON Schema subset by itself.
//
// Resolve validates a configuration and fills its defaults:
//
//	cfg := schema.Object(schema.Fields{
//		"apiKey":  schema.String().Role("secret").Required(),
//		"retries": schema.Natural().Max(10).Default(2),
//	})
//	v, err := cfg.Resolve(raw)
//
// CheckArgs and Check validate a tool's arguments and value and change
// nothing: defaults are not applied there. JSONSchema exports to editors and
// to models.
//
// # Concurrency
//
// A Schema is immutable, its methods return changed copies; everything in this
// package is safe for concurrent use.
//
// # Errors
//
// A schema that cannot be used is UNSUPPORTED_SCHEMA, a configuration that
// breaks one INVALID_CONFIG, arguments that do INVALID_ARGS. Each such error
// lists every violation with its path and wraps them as [Violations], so that
// a caller that knows where the value was written can name the place. Texts
// never show a given value, only its kind.
package schema
