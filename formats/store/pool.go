//go:build !race

package store

import "sync"

// pool keeps values that are expensive to make, at most until the second garbage collection.
type pool[T any] struct{ values sync.Pool }

func newPool[T any](create func() *T) *pool[T] {
	return &pool[T]{sync.Pool{New: func() any { return create() }}}
}

func (p *pool[T]) get() *T  { return p.values.Get().(*T) }
func (p *pool[T]) put(v *T) { p.values.Put(v) }
