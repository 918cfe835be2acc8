package sse

import (
	"bytes"
	"errors"
	"io"
	"time"
)

// DefaultMaxEvent is the usual bound on one event: 16 MiB.
const DefaultMaxEvent = 16 << 20

// ErrTooLarge says that a line, or the data of one event, is over the bound.
var ErrTooLarge = errors.New("an event of the stream is larger than the bound")

// Event is one event. Data is valid until the next call of Next.
type Event struct {
	Name string // of the "event" field, empty if none
	Data []byte
	// Unfinished says that the body ended before the event did.
	Unfinished bool
}

// Reader splits a body into events.
type Reader struct {
	src io.Reader
	max int

	buf        []byte
	start, end int  // unread part of buf
	scanned    int  // buf[start:scanned] holds no line end
	skipLF     bool // the last line ended in CR: a LF that follows belongs to it
	begun      bool
	err        error // of src, once buf is used up

	name    string
	data    []byte
	hasData bool
}

// NewReader makes a reader of src. max bounds a line and the data of an event,
// in bytes.
func NewReader(src io.Reader, max int) *Reader {
	return &Reader{src: src, max: max, buf: make([]byte, 4096)}
}

// Next returns the next event that has data. At a clean end it is io.EOF, once
// an unfinished event has been handed out.
func (r *Reader) Next() (Event, error) {
	r.name, r.data, r.hasData = "", r.data[:0], false
	for {
		line, whole, err := r.line()
		if err != nil {
			if err == io.EOF && r.hasData {
				r.hasData = false
				return Event{r.name, r.data, true}, nil
			}
			return Event{}, err
		}
		if len(line) == 0 && whole {
			if r.hasData {
				return Event{Name: r.name, Data: r.data}, nil
			}
			r.name = ""
			continue
		}
		if err := r.field(line); err != nil {
			return Event{}, err
		}
	}
}

func (r *Reader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		r.name = string(value)
	case "data":
		if r.hasData {
			r.data = append(r.data, '\n')
		}
		if len(r.data)+len(value) > r.max {
			return ErrTooLarge
		}
		r.data = append(r.data, value...)
		r.hasData = true
	}
	return nil
}

// line returns the next line without its end; whole is false for one that the
// end of the body cut off.
func (r *Reader) line() (line []byte, whole bool, err error) {
	for {
		if r.skipLF && r.start < r.end {
			if r.buf[r.start] == '\n' {
				r.start++
			}
			r.skipLF = false
			r.scanned = r.start
		}
		if i := lineEnd(r.buf[r.scanned:r.end]); i >= 0 {
			at := r.scanned + i
			line = r.buf[r.start:at]
			r.skipLF = r.buf[at] == '\r'
			r.start, r.scanned = at+1, at+1
			return r.first(line), true, nil
		}
		r.scanned = r.end
		if r.end-r.start > r.max {
			return nil, false, ErrTooLarge
		}
		if r.err != nil {
			if r.start < r.end {
				line = r.buf[r.start:r.end]
				r.start, r.scanned = r.end, r.end
				return r.first(line), false, nil
			}
			return nil, false, r.err
		}
		r.fill()
	}
}

// first takes the byte order mark off the first line.
func (r *Reader) first(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// fill reads once, making room first.
func (r *Reader) fill() {
	if r.start > 0 {
		n := copy(r.buf, r.buf[r.start:r.end])
		r.start, r.end, r.scanned = 0, n, n
	}
	if r.end == len(r.buf) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	n, err := r.src.Read(r.buf[r.end:])
	r.end += n
	r.err = err
}

// Idle returns a reader of src that calls expired when one Read has waited for
// longer than limit. Time between reads does not count: a slow consumer is no
// silent peer. expired must make the pending Read return.
func Idle(src io.Reader, limit time.Duration, expired func()) io.Reader {
	t := time.AfterFunc(1<<62, expired)
	t.Stop()
	return &idleReader{src, t, limit}
}

type idleReader struct {
	src   io.Reader
	timer *time.Timer
	limit time.Duration
}

func (r *idleReader) Read(p []byte) (int, error) {
	r.timer.Reset(r.limit)
	defer r.timer.Stop()
	return r.src.Read(p)
}
