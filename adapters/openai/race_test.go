//go:build race

package openai

// stride is the distance of the places at which bodies are cut: the race
// detector makes each cut ten times as slow, and finds no more in all of them.
const stride = 13
