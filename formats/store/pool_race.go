//go:build race

package store

// pool keeps values that are expensive to make. With the race detector, a sync.Pool discards a quarter of its values, and
// tests of many small chunks would do little but make encoders.
type pool[T any] struct {
	values chan *T
	create func() *T
}

func newPool[T any](create func() *T) *pool[T] { return &pool[T]{make(chan *T, 64), create} }

func (p *pool[T]) get() *T {
	select {
	case v := <-p.values:
		return v
	default:
		return p.create()
	}
}

func (p *pool[T]) put(v *T) {
	select {
	case p.values <- v:
	default:
	}
}
