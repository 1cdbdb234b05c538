package packet

import (
	"math"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// oneDCQCN returns the transport with one flow, and both ends of the flow.
func oneDCQCN(t *testing.T) (*roce, *roceSource, *dcqcnSource) {
	t.Helper()
	d := flowsOf(Flow{Target: 1, Bytes: 1 << 30})
	n := d.start(t, made(t)(topology.Star(2, 40e9, dag.Microsecond, 0)), params(t, "dcqcn", CompatNone))
	r := n.transport.(*roce)
	return r, &r.sources[0], &r.dcqcn.sources[0]
}

// TestDCQCNRates computes the rates of a flow: two CNPs, then timed increases.
func TestDCQCNRates(t *testing.T) {
	r, s, q := oneDCQCN(t)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("line", s.rate, 40e9)
	r.dcqcn.onCNP(r, 0, s)
	near("rate", s.rate, 20e9)
	near("alpha", q.alpha, 1)
	// 120 us later alpha has decayed twice.
	r.n.now = 120e6
	r.dcqcn.onCNP(r, 0, s)
	alpha := 255. / 256 * 255 / 256
	near("rate", s.rate, 20e9*(1-alpha/2))
	near("target", q.target, 20e9)
	near("alpha", q.alpha, 255./256*alpha+1./256)
	// Four recoveries, then additive increases until the byte counter has caught up.
	rate, target := s.rate, 20e9
	for i := range 10 {
		r.n.now += 55e6
		r.dcqcn.timer(r, 0, s)
		if i >= 4 {
			target += 40e6
		}
		rate = (rate + target) / 2
		near("rate", s.rate, rate)
	}
	// After that, hyper increases.
	q.byteIncreases = 6
	r.n.now += 55e6
	r.dcqcn.timer(r, 0, s)
	target += 400e6
	rate = (rate + target) / 2
	near("rate", s.rate, rate)
	// A timer that was set before the last CNP has no effect.
	r.dcqcn.onCNP(r, 0, s)
	before := *s
	r.n.now += 54e6
	r.dcqcn.timer(r, 0, s)
	near("rate", s.rate, before.rate)
	// The byte counter counts sent bytes.
	for range 9 {
		s.lastSize = 1e6
		r.dcqcn.sent(r, 0, s)
	}
	near("rate", s.rate, before.rate)
	r.dcqcn.sent(r, 0, s)
	near("rate", s.rate, (before.rate+q.target)/2)
	for range 5000 {
		r.n.now += 1e6
		r.dcqcn.onCNP(r, 0, s)
	}
	near("least rate", s.rate, 40e6)
	// Back at line rate, no timer is set.
	for i := 0; q.timerDue != 0; i++ {
		if i > 10_000 {
			t.Fatalf("rate %v after %d increases", s.rate, i)
		}
		r.n.now = q.timerDue
		r.dcqcn.timer(r, 0, s)
	}
	near("rate", s.rate, 40e9)
}

// TestDCQCNCNPs marks a packet every 7 us for 200 us: one CNP at once, then one every 50 us.
func TestDCQCNCNPs(t *testing.T) {
	r, _, _ := oneDCQCN(t)
	n := r.n
	var sent []uint64
	notices := func() {
		for n.flows[0].references > int32(len(sent)) {
			sent = append(sent, n.now)
		}
	}
	n.run(0)
	for now := uint64(10e6); now < 210e6; now += 1e6 {
		n.now = now
		if (now-10e6)%7e6 == 0 {
			r.dcqcn.onMark(r, 0)
		}
		notices()
		r.timer(timerD, 0)
		notices()
	}
	for n.now = 210e6; n.now < 500e6; n.now += 1e6 {
		r.timer(timerD, 0)
		notices()
	}
	if want := []uint64{10e6, 60e6, 110e6, 160e6, 210e6}; !slices.Equal(sent, want) {
		t.Errorf("notices at %v, want %v", sent, want)
	}
}

// TestDCQCNMarks keeps a queue between kmin and kmax, where at most pmax of the packets are marked.
func TestDCQCNMarks(t *testing.T) {
	r, _, _ := oneDCQCN(t)
	pt := &r.n.ports[r.n.routes.HostPort(1)]
	for _, c := range []struct {
		queued      uint64
		least, most int
	}{
		{5_000, 0, 0}, {102_500, 400, 600}, {200_000, 900, 1100}, {200_001, 100_000, 100_000},
	} {
		marks := 0
		for range 100_000 {
			pk := packet{}
			pt.mark(&pk, c.queued)
			marks += int(pk.flags & marked)
		}
		if marks < c.least || marks > c.most {
			t.Errorf("%d bytes: %d of 100000 marked, want %d to %d", c.queued, marks, c.least, c.most)
		}
	}
}

// TestDCQCNShare runs two long flows over one link, the second of which starts later, at 40 Gb/s as in the paper.
func TestDCQCNShare(t *testing.T) {
	d := flowsOf(Flow{Source: 1, Bytes: 100e6}, Flow{Source: 2, Bytes: 100e6, Start: 2 * dag.Millisecond})
	n := d.run(t, made(t)(topology.Star(3, 40e9, dag.Microsecond, 0)), params(t, "dcqcn", CompatNone))
	d.check(t, n)
	marks := uint64(0)
	for i := range n.ports {
		marks += n.ports[i].marks
	}
	// 203 MB take 40.6 ms.
	if _, most := d.mean(); most > 50e9 || marks == 0 || pauseFrames(t, n) > 200 {
		t.Errorf("the last flow took %v ps, with %d marks and %d pauses", most, marks, pauseFrames(t, n))
	}
}
