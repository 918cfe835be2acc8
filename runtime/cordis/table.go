package cordis

import (
	"hash/maphash"
	"sync/atomic"
	"unsafe"
)

// table maps slot keys to values. Any goroutine reads it without waiting; only
// the scheduler writes. It grows with what it holds and does not shrink.
type table[V any] struct {
	seed    maphash.Seed
	buckets atomic.Pointer[[]bucket[V]]
	count   int
}

type bucket[V any] struct{ first atomic.Pointer[link[V]] }

// link is an entry, embedded in its value. A reader that stands on one that is
// removed goes on to the next.
type link[V any] struct {
	key  slotKey
	val  *V
	next atomic.Pointer[link[V]]
}

func newTable[V any]() *table[V] {
	t := &table[V]{seed: maphash.MakeSeed()}
	b := make([]bucket[V], 64)
	t.buckets.Store(&b)
	return t
}

func (t *table[V]) bucket(k slotKey) *bucket[V] {
	h := maphash.String(t.seed, k.name) ^ uint64(uintptr(unsafe.Pointer(k.realm)))>>4
	b := *t.buckets.Load()
	return &b[h&uint64(len(b)-1)]
}

func (t *table[V]) get(k slotKey) *V {
	for n := t.bucket(k).first.Load(); n != nil; n = n.next.Load() {
		if n.key == k {
			return n.val
		}
	}
	return nil
}

// put adds v, whose own link is n, under a key that has none.
func (t *table[V]) put(k slotKey, v *V, n *link[V]) {
	if t.count++; t.count > 2*len(*t.buckets.Load()) {
		t.grow()
	}
	n.key, n.val = k, v
	t.insert(n)
}

func (t *table[V]) insert(n *link[V]) {
	b := t.bucket(n.key)
	n.next.Store(b.first.Load())
	b.first.Store(n)
}

// grow moves everything to twice the buckets. Readers of the old ones still
// find what was there: the links are copied.
func (t *table[V]) grow() {
	old := *t.buckets.Load()
	b := make([]bucket[V], 2*len(old))
	next := &table[V]{seed: t.seed}
	next.buckets.Store(&b)
	for i := range old {
		for n := old[i].first.Load(); n != nil; n = n.next.Load() {
			next.insert(&link[V]{key: n.key, val: n.val})
		}
	}
	t.buckets.Store(&b)
}

func (t *table[V]) remove(k slotKey) {
	at := &t.bucket(k).first
	for n := at.Load(); n != nil; n = at.Load() {
		if n.key == k {
			at.Store(n.next.Load())
			t.count--
			return
		}
		at = &n.next
	}
}

// all calls f for every value, in no order.
func (t *table[V]) all(f func(*V)) {
	b := *t.buckets.Load()
	for i := range b {
		for n := b[i].first.Load(); n != nil; n = n.next.Load() {
			f(n.val)
		}
	}
}
