//go:build !race

package store

// With the race detector, pools forget at random what the decompression keeps in them.

import (
	"runtime/debug"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// Once it has read the largest batch, a reader allocates next to nothing.
func TestReaderAllocations(t *testing.T) {
	for _, name := range []string{"stencil-jitter", "horovod"} {
		trace := family(name).trace(t, 200_000)
		f, err := openBytes(encodeGroups(t, trace, 20_000, false))
		if err != nil {
			t.Fatal(err)
		}
		batches, read := f.batches(), f.NewReader(dag.Replay)
		if len(batches) < 5 {
			t.Fatalf("%d batches tell nothing", len(batches))
		}
		all := func() {
			for _, b := range batches {
				if _, err := read(b); err != nil {
					t.Fatal(err)
				}
			}
		}
		all()
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools
		if n := testing.AllocsPerRun(3, all); n > float64(len(batches)) {
			t.Errorf("%s: %v allocations in %d batches", name, n, len(batches))
		}
	}
}
