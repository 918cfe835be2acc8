//go:build !race

package openai

// stride is the distance of the places at which bodies are cut.
const stride = 1
