package sim

// Progress counts the ops that ran, and now and then tells who waits for the end of a replay.
type Progress struct {
	Tell func(ops int64) // how many more ran since the last call; nil: nobody waits
	Ops  int64           // that ran
	told int64
}

// progressOps is how many ops run between two calls of Tell.
const progressOps = 1 << 16

// Ran counts an op.
func (p *Progress) Ran() {
	if p.Ops++; p.Ops-p.told >= progressOps {
		p.Report()
	}
}

// Report tells what was not told yet.
func (p *Progress) Report() {
	if p.Tell != nil {
		p.Tell(p.Ops - p.told)
	}
	p.told = p.Ops
}

// Add counts what another has counted, which has told some of it.
func (p *Progress) Add(other *Progress) {
	p.Ops += other.Ops
	p.told += other.told
}
