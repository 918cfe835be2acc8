package scripted

import (
	"io"
	"os"
	"path/filepath"

	"github.com/ouro-run/ouro/adapters/scripted"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// maxScenario bounds a scenario file, in bytes.
const maxScenario = 1 << 20

type config struct {
	File string `json:"file"`
	Text string `json:"text"`
}

var configSchema = schema.As[config](schema.Object(schema.Fields{
	"file": schema.String().Description("the scenario file, relative to the folder of cordis.yml"),
	"text": schema.String().Description("the scenario itself, instead of a file"),
}))

// Plugin returns the plugin. dir is what a relative file is relative to.
func Plugin(dir string) *cordis.Plugin {
	p := cordis.Define("scripted", func(ctx *cordis.Context, cfg config) error {
		name, text, err := cfg.read(dir)
		if err != nil {
			return err
		}
		scenario, err := scripted.Parse(name, text)
		if err != nil {
			return err
		}
		reg, err := cordis.Get(ctx, llm.Key)
		if err != nil {
			return err
		}
		id := ctx.Fiber().Entry()
		if id == "" {
			id = "scripted"
		}
		_, err = reg.RegisterAdapter(ctx, llm.Registration{Entry: id, Routes: []string{id}, Adapter: scripted.New(scenario)})
		return err
	}, cordis.Need{Name: llm.Key.Name})
	p.Config = configSchema
	return p
}

func (c config) read(dir string) (name string, text []byte, err error) {
	if (c.File == "") == (c.Text == "") {
		return "", nil, seams.Errorf(seams.InvalidArgument, "scripted", "give either file or text")
	}
	if c.Text != "" {
		return "text", []byte(c.Text), nil
	}
	path := c.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", nil, seams.Errorf(seams.NotFound, "scripted", "the scenario cannot be read: %w", err)
	}
	defer f.Close()
	text, err = io.ReadAll(io.LimitReader(f, maxScenario+1))
	if err == nil && len(text) > maxScenario {
		err = seams.Errorf(seams.TooLarge, "scripted", "the scenario %s is over %d bytes", path, maxScenario)
	}
	return path, text, err
}
