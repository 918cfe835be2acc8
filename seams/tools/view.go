package tools

import (
	"encoding/json"
	"time"
)

// CallResult is the view of a call that Astreus gives its callers (A14).
type CallResult struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Result        ToolResult `json:"result"`
	ExecutionTime int64      `json:"executionTime"` // milliseconds
}

// ToolResult is the outcome within a [CallResult]: Data of a success, Error of
// a failure.
type ToolResult struct {
	Success bool            `json:"success"`
	Data    json.RawMessage `json:"data,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// View makes Astreus' view of a call's result and of the time it took. Data is
// the value, not what the model saw.
func View(c Call, r *Result, took time.Duration) CallResult {
	v := CallResult{ID: c.ID, Name: c.Name, ExecutionTime: took.Milliseconds()}
	if r.IsError {
		v.Result.Error = r.Error.Message
		return v
	}
	data, err := json.Marshal(r.Value)
	if err != nil {
		v.Result.Error = err.Error()
		return v
	}
	v.Result = ToolResult{Success: true, Data: data}
	return v
}
