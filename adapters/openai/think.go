package openai

import "strings"

const (
	openTag  = "<think>"
	closeTag = "</think>"
)

// thinkTags splits text into reasoning and answer. It looks for an open tag
// where nothing but white space has come before, and for its close tag
// anywhere after that. What may be the beginning of a tag is held back until
// it is known to be none.
type thinkTags struct {
	state tagState
	held  string
}

type tagState uint8

const (
	beforeAnswer tagState = iota // white space only so far, or just after a close tag
	afterOpen                    // at the line breaks after an open tag
	inside
	afterClose // at the line breaks after a close tag
	answer
)

// split takes the next piece of text and gives what is certain by now, in
// order, to out.
func (t *thinkTags) split(text string, out func(text string, reasoning bool)) {
	text = t.held + text
	t.held = ""
	for text != "" {
		switch t.state {
		case beforeAnswer, afterClose:
			body := strings.TrimLeft(text, " \t\r\n")
			switch {
			case strings.HasPrefix(body, openTag):
				t.state, text = afterOpen, body[len(openTag):]
			case strings.HasPrefix(openTag, body):
				t.held = text
				return
			default:
				if t.state == afterClose {
					text = strings.TrimLeft(text, "\r\n")
				}
				t.state = answer
			}
		case afterOpen:
			if text = strings.TrimLeft(text, "\r\n"); text != "" {
				t.state = inside
			}
		case inside:
			if i := strings.Index(text, closeTag); i >= 0 {
				if i > 0 {
					out(text[:i], true)
				}
				t.state, text = afterClose, text[i+len(closeTag):]
				continue
			}
			n := len(text) - partial(text, closeTag)
			if n > 0 {
				out(text[:n], true)
			}
			t.held = text[n:]
			return
		case answer:
			out(text, false)
			return
		}
	}
}

// flush gives out what was held back when the text is over.
func (t *thinkTags) flush(out func(text string, reasoning bool)) {
	held := t.held
	t.held = ""
	if t.state == afterClose {
		held = strings.TrimLeft(held, "\r\n")
	}
	if held != "" {
		out(held, t.state == inside)
	}
}

// partial is the length of the longest end of text that begins tag.
func partial(text, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}
