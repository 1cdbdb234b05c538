// Package limit declares and enforces the limit of memory of a program.
package limit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
)

// Least is the least limit in bytes: a program needs some memory for itself.
const Least = 32 << 20

// Memory is the limit of memory of a program, and the inputs that a message about it names. Its methods may be called
// concurrently. The zero value is the default limit.
type Memory struct {
	limit int64           // in bytes; 0: the default
	ctx   context.Context // carries the limit

	mu     sync.Mutex
	inputs []string // inputs in use, or the last one
	stop   func()   // ends the watch; may be nil
}

// Register adds the flag of the limit.
func (m *Memory) Register(flags *pflag.FlagSet) {
	size := param.Size(&m.limit, "max-memory", "").Check(func() error {
		if m.limit < Least {
			return fmt.Errorf("expected %s or more", units.FormatSize(Least))
		}
		return nil
	})
	flags.Var(size.Value, size.Name, "limit of memory, a `size` (default: 3/4 of all)")
	flags.Lookup(size.Name).DefValue = ""
}

// Limit makes the limit effective for work under ctx. If exceeded is not nil, the whole process is watched, and
// exceeded is called once with an error that names the inputs in use.
func (m *Memory) Limit(ctx context.Context, exceeded func(error)) {
	m.ctx = memory.WithLimit(ctx, m.limit)
	if exceeded != nil {
		m.stop = memory.Watch(memory.Limit(m.ctx), func(err error) { exceeded(m.aboutInputs(err)) })
	}
}

// Join makes the limit of another one effective, without a watch, or a lower one in bytes; 0: none.
func (m *Memory) Join(of *Memory, lower int64) {
	if m.limit, m.ctx = of.limit, of.ctx; lower > 0 && lower < memory.Limit(of.ctx) {
		m.limit, m.ctx = lower, memory.WithLimit(of.ctx, lower)
	}
}

// Stop ends the watch.
func (m *Memory) Stop() {
	if m.stop != nil {
		m.stop()
	}
}

// Context returns a context that carries the limit.
func (m *Memory) Context() context.Context { return m.ctx }

// Use registers an input that is in use until done is called, or longer if there is no other.
func (m *Memory) Use(name string) (done func()) {
	if name == "-" {
		name = "<stdin>"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inputs = append(m.inputs, name)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if i := slices.Index(m.inputs, name); i >= 0 && len(m.inputs) > 1 {
			m.inputs = slices.Delete(m.inputs, i, i+1)
		}
	}
}

// aboutInputs adds the names of the inputs in use to an error.
func (m *Memory) aboutInputs(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.inputs) == 0 {
		return err
	}
	return format.InFile(strings.Join(m.inputs, ", "), err)
}
