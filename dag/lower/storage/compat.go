// This file has what the public converter TrimVis/DirectDriveSim (commit 16947a8) does otherwise than the mapping of
// directdrive.go, so that results that were made with it can be made again. Its counts of sends, receives, calcs, bytes
// and dependencies come out exactly.

package storage

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// compatDecides are the parameters that compat sets.
var compatDecides = []string{"replicas", "quorum", "lookup", "mount", "space", "read-replica"}

func (d *directDrive) checkCompat(given map[string]bool) error {
	for _, name := range compatDecides {
		if given[name] {
			return fmt.Errorf("compat decides %s", name)
		}
	}
	if d.bss.n%d.ccs.n != 0 {
		return fmt.Errorf("n_bss=%d is no multiple of n_ccs=%d, as compat needs it", d.bss.n, d.ccs.n)
	}
	d.replicas.n = d.bss.n / d.ccs.n
	d.space.is = "shared"
	return nil
}

// compatReplica returns a replica of a slice: each coordinator has storage services of its own, side by side, which
// hold all of its slices.
func (s *drive) compatReplica(slice, r int64) int32 {
	return s.bsss[slice%s.ccs.n*s.replicas.n+r]
}

// compatTable returns how many slices there are: those of the highest access, or of 1 GiB.
func (d *directDrive) compatTable(t *dag.Trace) int64 {
	end := int64(1 << 30)
	for rank := range t.Ranks {
		r := &t.Ranks[rank]
		for op := range r.Kind {
			end = max(end, r.Tag.At(op)/d.block.bytes+r.Bytes.At(op))
		}
	}
	return (end-1)/d.slice.bytes + 1
}

// compatAccess writes an access. Its block number is taken for a byte address, in a space that all units have in
// common. The slice before that address, and the one after the end, are touched where one of them begins there, but
// none beyond the table; bytes are counted from the start of the first slice, and in the others from the start of the
// access.
func (s *drive) compatAccess(a *access) {
	size, start := s.slice.bytes, a.address/s.block.bytes
	end := start + a.bytes
	first, last := max(start-1, 0)/size, min(end/size, s.table-1)
	if !a.split(last - first + 1) {
		return
	}
	from := first * size
	for k := first; k <= last && a.err == nil; k++ {
		to := end
		if end-k*size > size {
			to = (k + 1) * size
		}
		s.part(a, k, to-from)
		from = start
	}
}
