package flow

import (
	"math/rand/v2"
	"os"
	"testing"
)

// TestStartOrder compares the totals of flows that end in any order, with chunks in the file, with sums in the order of
// starts. One in some flows ends late or never.
func TestStartOrder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 5))
		o := startOrder{most: 2 + int(seed%3)}
		number, late := 12*chunkFlows+random.IntN(chunkFlows), 1+random.IntN(4*chunkFlows)
		flows, never := make([]pending, number), make([]bool, number)
		var running []uint32
		end := func(k int) {
			f := running[k]
			running[k] = running[len(running)-1]
			running = running[:len(running)-1]
			if never[f] {
				return
			}
			if err := o.set(f, flows[f]); err != nil {
				t.Fatal(err)
			}
		}
		var want totals
		stored := 0
		for i := range flows {
			flows[i] = pending{float64(random.Int64N(1 << 60)), random.Float64()}
			if never[i] = seed > 6 && random.IntN(3*chunkFlows) == 0; !never[i] {
				want.add(flows[i].bytes, flows[i].throughput)
			}
			if err := o.push(); err != nil {
				t.Fatal(err)
			}
			if running = append(running, uint32(i)); random.IntN(late) > 0 {
				end(len(running) - 1)
			} else if random.IntN(4) == 0 {
				end(random.IntN(len(running)))
			}
			stored = max(stored, o.stored)
			if inMemory := len(o.chunks) - o.stored; inMemory > o.most {
				t.Fatalf("%d chunks in memory, expected at most %d", inMemory, o.most)
			}
		}
		for len(running) > 0 {
			end(random.IntN(len(running)))
		}
		if err := o.advance(true); err != nil || o.totals != want {
			t.Errorf("seed %d: totals %+v, expected %+v, %v", seed, o.totals, want, err)
		}
		if late > 1 && stored == 0 {
			t.Errorf("seed %d: nothing was in the file", seed)
		}
		if err := o.close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("files remain: %v", left)
	}
}
