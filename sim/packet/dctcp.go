// This file implements DCTCP (Alizadeh et al., Data center TCP, SIGCOMM 2010, section 3.1) on top of TCP NewReno. Once
// per window, the sender adds the share of marked packets to a moving average, and reduces its window by half of the
// average.

package packet

// dctcp is the reaction to ECN marks in DCTCP, on top of TCP.
type dctcp struct {
	gain      float64 // gain of the moving average
	cutAlways bool    // reduce the window whenever the average is positive, even after a window without marks
	mss       uint64
	sources   []dctcpSource
}

type dctcpSource struct {
	average float64 // alpha of the paper
	window  uint64  // observed window, in bytes
	acks    uint64  // ACKs in the observed window
	marked  uint64  // ACKs of marked packets in the observed window
}

func newDCTCP(n *network, s *transportConfig) transport {
	t := makeTCP(n, s)
	t.dctcp = &dctcp{gain: min(s.number("gain"), 1), cutAlways: s.enabled("cut-always"), mss: s.mss}
	return t
}

func (d *dctcp) open(f uint32) {
	for int(f) >= len(d.sources) {
		d.sources = append(d.sources, dctcpSource{})
	}
	d.sources[f] = dctcpSource{window: 2 * d.mss}
}

// acked counts an ACK, before TCP handles it.
func (d *dctcp) acked(t *tcp, f uint32, s *tcpSource, marked bool) {
	o := &d.sources[f]
	o.acks++
	if marked {
		o.marked++
		s.threshold = min(s.threshold, s.window) // leave slow start
	}
	if o.acks*d.mss < o.window {
		return
	}
	o.average = float64((1-d.gain)*o.average) + float64(d.gain*(float64(o.marked)/float64(o.acks)))
	cut := o.marked > 0 && !s.recovering
	if d.cutAlways {
		cut = o.average > 0
	}
	if cut {
		s.window = max(uint64(float64(s.window)*(1-o.average/2)), t.mss)
		s.threshold = s.window
	}
	o.acks, o.marked, o.window = 0, 0, s.window
}

// lost restarts the observation after a loss.
func (d *dctcp) lost(f uint32, s *tcpSource) {
	o := &d.sources[f]
	o.acks, o.marked, o.window = 0, 0, s.window
}

var dctcpTransport = Transport{
	Name: "dctcp", Title: "DCTCP: TCP that adapts its window to the share of ECN-marked packets",
	discipline: markingDropTail, nic: fairClasses, header: 64, control: 64, bareCompat: true, balance: Fixed,
	ecn:       ecnDefaults{packets: 15},
	queueBDPs: 5, build: newDCTCP,
	Parameters: append(tcpParameters(10e9),
		Parameter{Name: "gain", Value: 1. / 16, Min: 0,
			Doc: "weight of the last window in the moving average of the share of marks, at most 1"},
		Parameter{Name: "cut-always", Unit: Switch, Compat: number(1),
			Doc: "reduce the window even after a window without marks, while the average is above 0"}),
}
