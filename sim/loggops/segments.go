package loggops

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/fit"
)

// Segment has the parameters of messages of a range of sizes, for the strict model: it begins at From bytes and ends
// where the next one begins.
type Segment struct {
	From        int64
	L           dag.Time // wire latency
	Send, Recv  dag.Time // o: processor time per message, at the sender and at the receiver
	GPerByte    *big.Rat // G: gap per byte in picoseconds
	SendPerByte *big.Rat // O: processor time per byte in picoseconds
	RecvPerByte *big.Rat
}

// segments returns the parameters by size; without segments, one for all sizes.
func (p Params) segments() []Segment {
	if p.Segments != nil {
		return p.Segments
	}
	return []Segment{{L: p.L, Send: p.Overhead, Recv: p.Overhead, GPerByte: p.GPerByte, SendPerByte: p.OPerByte,
		RecvPerByte: p.OPerByte}}
}

// inSegments returns a function that applies a parameter that was set for all sizes to each segment.
func (p *Params) inSegments(set func(*Segment)) func() error {
	return func() error {
		p.Segments = slices.Clone(p.Segments) // which copies of the parameters share
		for i := range p.Segments {
			set(&p.Segments[i])
		}
		return nil
	}
}

// checkSegments returns an error if the segments do not cover all sizes in order, or have negative parameters.
func (p Params) checkSegments() error {
	for i, s := range p.Segments {
		switch {
		case i == 0 && s.From != 0, i > 0 && s.From <= p.Segments[i-1].From:
			return fmt.Errorf("segment %d of the parameters begins at %d bytes, expected ascending sizes from 0", i+1,
				s.From)
		case s.L < 0, s.Send < 0, s.Recv < 0, s.GPerByte.Sign() < 0, s.SendPerByte.Sign() < 0, s.RecvPerByte.Sign() < 0:
			return fmt.Errorf("segment %d of the parameters has a negative parameter", i+1)
		}
	}
	return nil
}

// messageCosts are the costs of messages of a range of sizes in picoseconds.
type messageCosts struct {
	from                        uint64
	latency, send, recv         uint64
	perByte, sendByte, recvByte perByte
}

// costTable has the costs of messages by size, ascending.
type costTable []messageCosts

func newCostTable(p Params) (t costTable, err error) {
	for _, s := range p.segments() {
		c := messageCosts{from: uint64(s.From), latency: uint64(s.L), send: uint64(s.Send), recv: uint64(s.Recv)}
		for _, rate := range []struct {
			from *big.Rat
			to   *perByte
		}{{s.GPerByte, &c.perByte}, {s.SendPerByte, &c.sendByte}, {s.RecvPerByte, &c.recvByte}} {
			if *rate.to, err = newPerByte(rate.from); err != nil {
				return nil, err
			}
		}
		t = append(t, c)
	}
	return t, nil
}

// at returns the costs of messages of a size.
func (t costTable) at(size uint64) *messageCosts {
	i := len(t) - 1
	for i > 0 && size < t[i].from {
		i--
	}
	return &t[i]
}

// sending returns the time of the processor for a send.
func (t costTable) sending(size uint64) uint64 {
	c := t.at(size)
	return later(c.sendByte.beyondFirst(size), c.send)
}

// receiving returns the time of the processor for a receive.
func (t costTable) receiving(size uint64) uint64 {
	c := t.at(size)
	return later(c.recvByte.beyondFirst(size), c.recv)
}

// sendTime returns the function sending, or a faster one if its result is always the same.
func (t costTable) sendTime() func(size uint64) uint64 {
	if c := t[0]; len(t) == 1 && c.sendByte.numerator == 0 {
		return func(uint64) uint64 { return c.send }
	}
	return t.sending
}

// receiveTime returns the function receiving, or a faster one if its result is always the same.
func (t costTable) receiveTime() func(size uint64) uint64 {
	if c := t[0]; len(t) == 1 && c.recvByte.numerator == 0 {
		return func(uint64) uint64 { return c.recv }
	}
	return t.receiving
}

// least returns the smallest latency.
func (t costTable) least() uint64 {
	least := uint64(math.MaxUint64)
	for _, c := range t {
		least = min(least, c.latency)
	}
	return least
}

// readParams reads a parameter file of the strict model.
func readParams(name string) (Params, error) {
	f, err := fit.ReadFile(name)
	if err != nil {
		return Params{}, err
	}
	p, err := FromFile(f)
	if err != nil {
		return Params{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// FromFile returns the parameters of a parameter file of the strict model. Parameters that it lacks are 0, and S is
// unlimited.
func FromFile(f *fit.File) (Params, error) {
	if f.Backend != "loggops" || f.Model != string(Strict) {
		return Params{}, fmt.Errorf("expected parameters of backend loggops, model strict, found backend %q, model %q",
			f.Backend, f.Model)
	}
	if f.Topology != "" {
		return Params{}, fmt.Errorf("expected no topology, found %q: L of the file has the latency; remove the member "+
			"\"topology\", or give --topology to take latencies from a network", f.Topology)
	}
	if len(f.Segments) == 0 {
		return Params{}, errors.New("expected at least one segment of sizes")
	}
	p := Params{S: math.MaxInt64}
	for name, v := range f.Parameters {
		switch {
		case name == "S" && v.Unit == "B":
			p.S = int64(min(v.Value, math.MaxInt64/2))
		case name == "g" && v.Unit == "s" && v.Value >= 1e6:
			return Params{}, fmt.Errorf("g is %g s, expected less than 10^6 s", v.Value)
		case name == "g" && v.Unit == "s":
			p.Gap = picoseconds(v.Value)
		default:
			return Params{}, fmt.Errorf("unknown parameter %q with unit %q, expected g in s and S in B", name, v.Unit)
		}
	}
	for i, from := range f.Segments {
		s := Segment{From: from.From}
		times := map[string]*dag.Time{"L": &s.L, "o_send": &s.Send, "o_recv": &s.Recv}
		rates := map[string]**big.Rat{"G": &s.GPerByte, "O_send": &s.SendPerByte, "O_recv": &s.RecvPerByte}
		for name, v := range from.Parameters {
			if at := times[name]; at != nil && v.Unit == "s" && v.Value < 1e6 {
				*at = picoseconds(v.Value)
			} else if at := rates[name]; at != nil && v.Unit == "s/B" && v.Value < 1e6 {
				*at = perByteOf(v.Value)
			} else {
				return Params{}, fmt.Errorf("segment %d: %q is %g %s, expected L, o_send and o_recv in s, or G, "+
					"O_send and O_recv in s/B, below 10^6", i+1, name, v.Value, v.Unit)
			}
		}
		for _, rate := range rates {
			if *rate == nil {
				*rate = new(big.Rat)
			}
		}
		p.Segments = append(p.Segments, s)
	}
	first := p.Segments[0]
	p.L, p.Overhead, p.GPerByte, p.OPerByte = first.L, first.Send, first.GPerByte, first.SendPerByte
	return p, nil
}

// picoseconds returns seconds as a time, rounded to the nearest picosecond.
func picoseconds(seconds float64) dag.Time {
	return dag.Time(math.Round(seconds * float64(dag.Second)))
}

// perByteOf returns seconds per byte as picoseconds per byte with nine decimals, as results print them.
func perByteOf(seconds float64) *big.Rat {
	r := big.NewRat(int64(math.Round(seconds*float64(dag.Second)*1e3)), 1e3)
	if exact := seconds * float64(dag.Second) * 1e9; exact < math.MaxInt64/2 {
		r = big.NewRat(int64(math.Round(exact)), 1e9)
	}
	return r
}

// segmentValue is a segment in results.
type segmentValue struct {
	From        int64       `json:"from_bytes"`
	L           int64       `json:"L_ps"`
	Send        int64       `json:"o_send_ps"`
	Recv        int64       `json:"o_recv_ps"`
	GPerByte    json.Number `json:"G_ps_per_byte"`
	SendPerByte json.Number `json:"O_send_ps_per_byte"`
	RecvPerByte json.Number `json:"O_recv_ps_per_byte"`
}

func segmentValues(segments []Segment) []segmentValue {
	values := make([]segmentValue, len(segments))
	for i, s := range segments {
		values[i] = segmentValue{s.From, int64(s.L), int64(s.Send), int64(s.Recv), decimal(s.GPerByte),
			decimal(s.SendPerByte), decimal(s.RecvPerByte)}
	}
	return values
}
