package scripted_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/adapters/scripted"
	"github.com/ouro-run/ouro/seams/llm"
)

func load(t testing.TB, file string) *scripted.Scenario {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scripted.Parse(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// story plays the invoices scenario against tools made of Go: a runtime that
// mounts one tool, whose first version drops all after a thousands separator.
func story(t testing.TB, amounts []string) (calls []string, said string) {
	t.Helper()
	a := scripted.New(load(t, "testdata/invoices.yml"))
	req := llm.Request{Messages: []llm.Message{llm.UserText("What is the total of my invoices?")}}
	version, mounts := 0, 0
	for range 20 {
		req.Tools = []llm.ToolSchema{{Name: "cordis_inspect"}, {Name: "cordis_mount"}, {Name: "cordis_unmount"}}
		if version > 0 {
			req.Tools = append(req.Tools, llm.ToolSchema{Name: "sum_invoices"})
		}
		var asm llm.Assembler
		for c, err := range llm.Checked(a.Stream(t.Context(), req)) {
			if err == nil {
				err = asm.Add(c)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		blocks, err := asm.Blocks()
		if err != nil {
			t.Fatal(err)
		}
		said += blocks.Text() + "\n"
		req.Messages = append(req.Messages, llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel}, blocks...))
		if asm.Finish().Kind == llm.Stop {
			return calls, said
		}
		for _, c := range blocks.ToolCalls() {
			calls = append(calls, c.Name)
			var args map[string]string
			if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
				t.Fatal(err)
			}
			result := ""
			switch c.Name {
			case "cordis_inspect":
				result = "## tools\n\n- cordis_inspect"
			case "cordis_mount":
				version = 1
				if strings.Contains(args["code"], "version 2") {
					version = 2
				}
				mounts++
				result = fmt.Sprintf("Temporary Plugin dyn-%d is running (plugin \"sums\")", mounts)
			case "cordis_unmount":
				if args["id"] != fmt.Sprintf("dyn-%d", mounts) || version == 0 {
					t.Fatalf("unmounts %q", args["id"])
				}
				version = 0
				result = "Temporary Plugin " + args["id"] + " was removed"
			case "sum_invoices":
				result = sums(version, amounts)
			default:
				t.Fatalf("calls %s, which is not there", c.Name)
			}
			req.Messages = append(req.Messages, llm.NewToolResult(c.ID, false, llm.Text{Text: result}))
		}
	}
	t.Fatal("the story does not end")
	return nil, ""
}

func sums(version int, amounts []string) string {
	type row struct {
		Raw    string  `json:"raw"`
		Amount float64 `json:"amount"`
	}
	var out struct {
		Rows  []row   `json:"rows"`
		Total float64 `json:"total"`
	}
	for _, raw := range amounts {
		text := raw
		if version == 1 {
			text, _, _ = strings.Cut(raw, ",")
		}
		n, _ := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
		out.Rows = append(out.Rows, row{raw, n})
		out.Total += n
	}
	b, _ := json.Marshal(out)
	return string(b)
}

func TestStoryFollowsTheInvoices(t *testing.T) {
	short := []string{"cordis_inspect", "cordis_mount", "sum_invoices", "cordis_unmount"}
	long := []string{"cordis_inspect", "cordis_mount", "sum_invoices", "cordis_unmount", "cordis_mount", "sum_invoices", "cordis_unmount"}
	for _, c := range []struct {
		amounts []string
		calls   []string
		says    []string
	}{
		{[]string{"1,234.50", "99.99", "12,000.00"}, long, []string{"2 of 3 amounts are misread (1,234.50; 12,000.00)", "should be 13,334.49", "total of 3 invoices is 13,334.49", "Unmounted dyn-2"}},
		{[]string{"7,000", "0.10", "0.20"}, long, []string{"1 of 3", "is 7,000.30"}},
		{[]string{"10.10", "20.20"}, short, []string{"total of 2 invoices is 30.30", "Unmounted dyn-1"}},
	} {
		calls, said := story(t, c.amounts)
		if !reflect.DeepEqual(calls, c.calls) {
			t.Errorf("%v: calls %v", c.amounts, calls)
		}
		for _, s := range c.says {
			if !strings.Contains(said, s) {
				t.Errorf("%v: %q is not said in\n%s", c.amounts, s, said)
			}
		}
		if strings.Contains(strings.Join(c.amounts, ""), ",") != strings.Contains(said, "misread") {
			t.Errorf("%v: tells another story\n%s", c.amounts, said)
		}
	}
}
