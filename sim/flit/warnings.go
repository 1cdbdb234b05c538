// This file checks that a run can end and that its result is meaningful: the amount of work, and parameters of the
// network that contradict the topology or each other.

package flit

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
)

// warnBuffers warns about input buffers that are smaller than what a link has under way until a credit returns. A
// single virtual channel cannot fill such a link.
func (n *worker) warnBuffers(warn func(message string, args ...any)) {
	p := n.p
	var latency [3]uint64 // by kind of port: the largest one of a link to an input buffer
	var found [3]bool
	for i := range n.ports {
		pt := &n.ports[i]
		if pt.kind != hostPort || p.SourceQueue > 0 {
			found[pt.kind] = true
			latency[pt.kind] = max(latency[pt.kind], uint64(pt.latency))
		}
	}
	for kind, key := range [...]string{"injection-buffer", "local-buffer", "global-buffer"} {
		if !found[kind] {
			continue
		}
		trip := n.roundTrip(kind, latency[kind])
		packet := uint64(p.PacketFlits)
		room := uint64(n.capacity[kind]) / packet * packet
		if room >= trip {
			continue
		}
		need := (trip + packet - 1) / packet * packet
		warn("%s=%d is less than the round trip of %d flits on links with a latency of %d cycles: a virtual "+
			"channel carries at most %.0f %% of the rate of such a link; use --set %s=%d", key, n.capacity[kind], trip,
			latency[kind], 100*float64(room)/float64(trip), key, need)
	}
}

// roundTrip returns the cycles from the grant of an output to a packet until all its credits are back, if no other
// packet delays it: the number of flits that the buffer at the end of the link must hold to keep the link busy.
func (n *worker) roundTrip(kind int, latency uint64) uint64 {
	p := n.p
	trip := 2 * latency
	if kind != hostPort { // a NIC reserves credits when it sends
		trip += uint64(p.Pipeline)
	}
	if !p.WholeCredits {
		trip += (uint64(p.PacketFlits) + uint64(p.Speedup) - 1) / uint64(p.Speedup)
	}
	return trip
}

// warnRates warns about rates of the topology, which the backend ignores, if the user gave some or if they differ.
func (n *worker) warnRates(given string, warn func(message string, args ...any)) {
	least, most := int64(math.MaxInt64), int64(0)
	for i := range n.topology.Links {
		rate := n.topology.Links[i].Rate
		least, most = min(least, rate), max(most, rate)
	}
	own := n.p.linkRate() * 1e9
	same := math.Abs(float64(most)-own) <= own/1000
	switch {
	case most == 0 || least == most && (given == "" || same):
	case least == most:
		cycle := math.Round(float64(n.p.FlitBytes) * 8 * float64(dag.Second) / float64(most))
		warn("the rate of %.4g Gb/s in %s has no effect: links move a flit of %s per cycle of %v, %.4g Gb/s; "+
			"use --set cycle=%v", float64(most)/1e9, given, units.FormatSize(int64(n.p.FlitBytes)), n.p.Cycle,
			own/1e9, dag.Time(max(1, cycle)))
	default:
		warn("the links of %s have rates from %.4g to %.4g Gb/s, which have no effect: all move a flit of %s per "+
			"cycle of %v, %.4g Gb/s; use --backend packet for links of several rates",
			cmp.Or(given, "the topology"), float64(least)/1e9, float64(most)/1e9,
			units.FormatSize(int64(n.p.FlitBytes)), n.p.Cycle, own/1e9)
	}
}

// ratesGiven names the source of the rates of a topology that the user wrote: a file or a specification with rates. It
// returns "" if the rates are defaults.
func ratesGiven(text string, file bool) string {
	if file {
		return text
	}
	_, keys, _ := strings.Cut(text, ":")
	for pair := range strings.SplitSeq(keys, ",") {
		if key, _, ok := strings.Cut(pair, "="); ok && strings.HasSuffix(strings.TrimSpace(key), "rate") {
			return "--topology"
		}
	}
	return ""
}

// work is the work of a trace in the network.
type work struct {
	packets uint64
	cycles  uint64 // at least as many are needed by the busiest host
	host    uint32
	busiest string // what that host does: sends or receives

	largest    uint32 // the largest message that some host sends
	hasLargest bool
}

// CyclesError refuses a trace whose messages need more cycles than a run may have.
type CyclesError struct {
	Host   uint32 // the busiest host
	What   string // what it does: sends or receives
	Cycles uint64 // cycles that it needs at least; math.MaxUint64: or more
	Most   uint64 // allowed cycles
	Limit  string // name of the limit
	Remedy string

	Rank, Op int    // the send of the largest message
	Bytes    uint64 // its size
}

func (e *CyclesError) Error() string {
	return fmt.Sprintf("the messages that host %d %s need %s%d cycles, expected at most %d (%s); the largest is "+
		"that of rank %d op %d, %d bytes; %s", e.Host, e.What,
		map[bool]string{true: "more than ", false: "at least "}[e.Cycles == math.MaxUint64], e.Cycles, e.Most, e.Limit,
		e.Rank, e.Op, e.Bytes, e.Remedy)
}

// LimitError ends a run that needs more cycles than Options.MaxCycles.
type LimitError struct {
	Most    uint64 // allowed cycles
	Waiting uint64 // messages in the network after them
}

func (e *LimitError) Error() string {
	where := "the trace goes on"
	if e.Waiting > 0 {
		where = fmt.Sprintf("%d messages are in the network", e.Waiting)
	}
	return fmt.Sprintf("%s after %d cycles, expected its end by then (--max-cycles); use a larger limit or a smaller "+
		"trace", where, e.Most)
}

// measureWork returns the work of a trace.
func measureWork(p *sim.Program, n *worker, hosts []uint32) work {
	sent, received := make([]uint64, n.hosts), make([]uint64, n.hosts)
	w := work{busiest: "sends"}
	for i := range p.Ops {
		if p.Kind(uint32(i)) != dag.Send {
			continue
		}
		op := &p.Ops[i]
		from, to := hosts[op.Rank], hosts[op.Peer]
		if from == to {
			continue
		}
		if !w.hasLargest || op.Size > p.Ops[w.largest].Size {
			w.largest, w.hasLargest = uint32(i), true
		}
		flits := n.flitsOf(op.Size)
		w.packets = sum(w.packets, (flits+uint64(n.p.PacketFlits)-1)/uint64(n.p.PacketFlits))
		sent[from], received[to] = sum(sent[from], flits), sum(received[to], flits)
	}
	for h := range sent {
		out := sent[h]
		if n.p.SourceQueue == 0 && out != math.MaxUint64 {
			out /= uint64(n.p.Speedup) // the crossbar is the first bottleneck
		}
		if out > w.cycles {
			w.cycles, w.host, w.busiest = out, uint32(h), "sends"
		}
		if received[h] > w.cycles {
			w.cycles, w.host, w.busiest = received[h], uint32(h), "receives"
		}
	}
	return w
}

// sum returns a + b, or the largest number on overflow.
func sum(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return s
}

// flitsOf returns the flits of a message of the given size.
func (n *worker) flitsOf(bytes uint64) uint64 {
	size := uint64(n.p.FlitBytes)
	flits := bytes / size
	if bytes%size > 0 || flits == 0 {
		flits++
	}
	if whole := uint64(n.p.PacketFlits); n.p.Pad && flits%whole > 0 {
		flits = sum(flits, whole-flits%whole)
	}
	return flits
}

// check refuses work that exceeds the range of times or maxCycles, 0 for no limit, and warns about work that takes
// long.
func (w *work) check(program *sim.Program, p *Params, maxCycles uint64, warn func(message string, args ...any)) error {
	if most := uint64(dag.MaxTime) / uint64(p.Cycle); w.cycles > most {
		return w.tooMany(program, most,
			fmt.Sprintf("106 days in cycles of %v, the longest time in 64 bits of picoseconds", p.Cycle),
			"use smaller messages, or larger flits with --set flit-bytes=N")
	}
	if maxCycles > 0 && w.cycles > maxCycles {
		return w.tooMany(program, maxCycles, "--max-cycles", "use smaller messages or a larger limit")
	}
	// A packet through one switch takes a fifth of a microsecond, one through a fat tree of three levels one.
	const perSecond, longRun = 1_000_000, 300
	if seconds := w.packets / perSecond; seconds >= longRun {
		estimate := fmt.Sprint(time.Duration(min(seconds, 1<<33)/60*60) * time.Second)
		warn("the trace sends %d packets in at least %d cycles, which takes about %s at %d packets per second; "+
			"larger packets and flits (--set packet-flits=N,flit-bytes=N) take less time, --max-cycles N ends the "+
			"run early", w.packets, w.cycles, strings.TrimSuffix(estimate, "0s"), perSecond)
	}
	return nil
}

func (w *work) tooMany(p *sim.Program, most uint64, limit, remedy string) error {
	op := &p.Ops[w.largest]
	return &CyclesError{Host: w.host, What: w.busiest, Cycles: w.cycles, Most: most, Limit: limit, Remedy: remedy,
		Rank: int(op.Rank), Op: p.Index(w.largest), Bytes: op.Size}
}

// warnFew warns if a point of a curve was measured with too few packets for reliable means and percentiles.
func warnFew(points []syntheticPoint, measured int64, warn func(message string, args ...any)) {
	const enough = 1000
	var worst *syntheticPoint
	few := 0
	for i := range points {
		pt := &points[i]
		if pt.figures == nil || pt.Traffic.Load == 0 || pt.Packets >= enough {
			continue
		}
		if few++; worst == nil || pt.Packets < worst.Packets {
			worst = pt
		}
	}
	if worst == nil {
		return
	}
	longer := float64(measured) * enough / float64(max(1, worst.Packets))
	scale := math.Pow(10, math.Floor(math.Log10(longer)))
	warn("only %d packets were measured at load %v (%d of %d loads have fewer than %d): means and percentiles are "+
		"unreliable; use --measure %.0f", worst.Packets, worst.Traffic.Load, few, len(points), enough,
		min(math.Ceil(longer/scale)*scale, 1<<40))
}
