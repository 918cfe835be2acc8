package config_test

import (
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/config"
)

func BenchmarkParse(b *testing.B) {
	one := "- name: ./plugins/a.js\n  config:\n    model: m1\n    limit: 3\n    tags: [x, y]\n    key: !!js process.env.KEY\n"
	for name, text := range map[string]string{
		"small":          strings.Repeat(one, 10),
		"large":          strings.Repeat(one, 5000),
		"fault at 64 KB": strings.Repeat(one, 580) + "- name: x\n id: y\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = config.Parse("f.yml", []byte(text))
			}
		})
	}
}
