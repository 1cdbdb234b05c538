// This file reproduces the public converter TrimVis/DirectDriveSim (commit 16947a8) as far as it differs from the
// mapping of directdrive.go. The counts of sends, receives, calcs, bytes and dependencies are those of the converter.

package storage

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// compatDecides are the parameters that compat determines.
var compatDecides = []string{"replicas", "quorum", "lookup", "mount", "space", "read-replica"}

func (d *directDrive) checkCompat(given map[string]bool) error {
	for _, name := range compatDecides {
		if given[name] {
			return fmt.Errorf("compat sets %s; remove one of the two", name)
		}
	}
	if d.bss%d.ccs != 0 {
		return fmt.Errorf("n_bss=%d, expected a multiple of n_ccs=%d for compat", d.bss, d.ccs)
	}
	d.replicas = d.bss / d.ccs
	d.space = "shared"
	return nil
}

// compatReplica returns the rank of replica r of a slice. Each coordinator has consecutive storage services of its own,
// which hold all of its slices.
func (s *drive) compatReplica(slice, r int64) int32 {
	return s.bsss[slice%s.ccs*s.replicas+r]
}

// compatTable returns the number of slices, for the highest access or for 1 GiB if that is more.
func (d *directDrive) compatTable(t *dag.Trace) int64 {
	end := int64(1 << 30)
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for op := range r.Kind {
			end = max(end, r.Tag.At(op)/d.block+r.Bytes.At(op))
		}
	}
	return (end-1)/d.slice + 1
}

// compatAccess writes an access. It takes the block number for a byte address in a space that all units share. It also
// touches the slice before the first byte if the access starts at a slice, and the slice after the last byte if the
// access ends at one, but no slice beyond the table. It counts bytes from the start of the first slice in the first
// part, and from the start of the access in the others.
func (s *drive) compatAccess(a *access) {
	size, start := s.slice, a.address/s.block
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
