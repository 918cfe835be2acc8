package cordis

import (
	"hash/maphash"
	"sync/atomic"
	"unsafe"
)

// table maps slot keys to values. Any goroutine reads it without waiting; only
// the scheduler writes. The chains are immutable, so a writer copies one.
type table[V any] struct {
	seed    maphash.Seed
	buckets [1 << 12]atomic.Pointer[tableNode[V]]
}

type tableNode[V any] struct {
	key  slotKey
	val  *V
	next *tableNode[V]
}

func newTable[V any]() *table[V] { return &table[V]{seed: maphash.MakeSeed()} }

func (t *table[V]) bucket(k slotKey) *atomic.Pointer[tableNode[V]] {
	h := maphash.String(t.seed, k.name) ^ uint64(uintptr(unsafe.Pointer(k.realm)))>>4
	return &t.buckets[h&(1<<12-1)]
}

func (t *table[V]) get(k slotKey) *V {
	for n := t.bucket(k).Load(); n != nil; n = n.next {
		if n.key == k {
			return n.val
		}
	}
	return nil
}

// put adds the value of a key that has none.
func (t *table[V]) put(k slotKey, v *V) {
	b := t.bucket(k)
	b.Store(&tableNode[V]{k, v, b.Load()})
}

func (t *table[V]) remove(k slotKey) {
	b := t.bucket(k)
	b.Store(b.Load().without(k))
}

func (n *tableNode[V]) without(k slotKey) *tableNode[V] {
	switch {
	case n == nil:
		return nil
	case n.key == k:
		return n.next
	default:
		return &tableNode[V]{n.key, n.val, n.next.without(k)}
	}
}

// all calls f for every value, in no order.
func (t *table[V]) all(f func(*V)) {
	for i := range t.buckets {
		for n := t.buckets[i].Load(); n != nil; n = n.next {
			f(n.val)
		}
	}
}
