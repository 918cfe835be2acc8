package http

import (
	"context"
	"io"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// transfer is a response's body within limits.
type transfer struct {
	from   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	left   int64
	max    int64
	idle   time.Duration
	timer  *time.Timer // ends the transfer when nothing comes
	name   func(error) error
}

// Read implements io.Reader.
func (t *transfer) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.timer.Reset(t.idle)
	if t.left -= int64(n); t.left < 0 {
		return 0, t.name(seams.Errorf(seams.TooLarge, "", "the body has more than %d bytes", t.max))
	}
	if err != nil && err != io.EOF {
		err = t.name(cause(t.ctx, err))
	}
	return n, err
}

// Close implements io.Closer.
func (t *transfer) Close() error {
	t.timer.Stop()
	t.cancel(nil)
	return t.from.Close()
}
