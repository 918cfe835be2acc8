package tools

import (
	"encoding/json"
	"errors"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// ParseArguments reads the arguments a model wrote: no text is an empty object,
// text that is no JSON stays text, which the argument check then refuses.
func ParseArguments(raw string) any {
	if raw == "" {
		return map[string]any{}
	}
	v, err := schema.Parse([]byte(raw))
	if err != nil {
		return raw
	}
	return v
}

// snapshotArguments copies a call's arguments. INVALID_ARGS when they are not JSON.
func snapshotArguments(args any) (any, error) {
	if args == nil {
		return map[string]any{}, nil
	}
	v, err := schema.JSON(args)
	if err != nil {
		return nil, seams.Errorf(seams.InvalidArgs, "", "%s", lossy(err, "arguments"))
	}
	return v, nil
}

// lossy tells where below root a value is not JSON.
func lossy(err error, root string) string {
	var where schema.Violations
	if errors.As(err, &where) {
		return where.In(root)
	}
	return message(err)
}

// checkArguments compares arguments with the definition's schema. Text is what
// was no JSON, so its error says where it breaks off.
func (d *tool) checkArguments(args any) error {
	if text, ok := args.(string); ok {
		why := "a string, expected an object"
		if _, err := schema.Parse([]byte(text)); err != nil {
			why = message(err)
		}
		return seams.Errorf(seams.InvalidArgs, "", "arguments: %s; write one JSON object", why)
	}
	return d.Parameters.CheckArgs(args)
}

// checkOutput copies a body's value and compares it with the output schema.
// INVALID_TOOL_OUTPUT names every violation and never shows the value.
func (d *tool) checkOutput(value any) (any, error) {
	v, err := schema.JSON(value)
	if err != nil {
		return nil, seams.Errorf(seams.InvalidToolOutput, "", "tool %q returned a value that is not JSON: %s; return a plain value, or null", d.Name, lossy(err, "value"))
	}
	if d.Output != nil && d.Output.Schema != nil {
		if bad := d.Output.Schema.Check(v); len(bad) > 0 {
			return nil, seams.Errorf(seams.InvalidToolOutput, "", "tool %q returned a value that breaks its output schema: %s", d.Name, bad.In("value"))
		}
	}
	return v, nil
}

// render makes of a checked value what the model sees.
func (d *tool) render(args, value any) (content llm.Content, err error) {
	if d.Output == nil || d.Output.Render == nil {
		if text, ok := value.(string); ok {
			return llm.Content{llm.Text{Text: text}}, nil
		}
		text, err := schema.Canonical(value)
		if err != nil {
			return nil, err
		}
		return llm.Content{llm.Text{Text: string(text)}}, nil
	}
	err = contain("render of tool "+d.Name, func() (err error) { content, err = d.Output.Render(args, value); return })
	if err == nil {
		err = checkContent(content)
	}
	if err != nil {
		return nil, seams.Errorf(seams.InvalidToolOutput, "", "tool %q could not render its value: %s", d.Name, message(err))
	}
	return content, nil
}

// checkContent makes sure that content can be logged and sent.
func checkContent(c llm.Content) error {
	for i, b := range c {
		switch b.(type) {
		case nil, llm.ToolCall, llm.ToolResult:
			return seams.Errorf(seams.InvalidToolOutput, "", "content[%d] is not a block a result can hold", i)
		}
	}
	if _, err := json.Marshal(c); err != nil {
		return seams.Errorf(seams.InvalidToolOutput, "", "content is not JSON: %w", err)
	}
	return nil
}
