package sim

// Progress counts ops and reports them now and then.
type Progress struct {
	Tell func(ops int64) // called with the number of ops since the last call, unless nil
	Ops  int64           // that ran
	told int64
}

// progressOps is the number of ops between two reports.
const progressOps = 1 << 16

// Ran counts an op.
func (p *Progress) Ran() {
	if p.Ops++; p.Ops-p.told >= progressOps {
		p.Report()
	}
}

// Report reports the ops since the last report.
func (p *Progress) Report() {
	if p.Tell != nil {
		p.Tell(p.Ops - p.told)
	}
	p.told = p.Ops
}

// Add adds the count of another, including what it has reported.
func (p *Progress) Add(other *Progress) {
	p.Ops += other.Ops
	p.told += other.told
}
