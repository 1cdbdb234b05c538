// This file is the parameters of runs: those of all transports, and each transport's own.

package packet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Compat says whose rules a run follows where those of the reference simulators are accidents.
type Compat uint8

// Whose rules runs follow.
const (
	CompatNone   Compat = iota // ours
	CompatHTSim                // those of htsim (Broadcom/csg-htsim)
	CompatATLAHS               // those of the htsim in ATLAHS, and its coupling of GOAL to packets
)

// Unit is what a parameter is measured in.
type Unit uint8

// Units of parameters.
const (
	Plain  Unit = iota // a number
	Bytes              // whole bytes
	Time               // whole picoseconds
	Switch             // 0 or 1
)

// Parameter is a parameter of a transport.
type Parameter struct {
	Name  string
	Unit  Unit
	Value float64 // by default; in terms of bytes or picoseconds where the unit is. Negative: it follows from others, as Doc says
	Min   float64
	Doc   string
	// Compat is the value with [CompatHTSim] or [CompatATLAHS] where it is another; nil otherwise.
	Compat *float64
}

// Transport is a transport as users choose it.
type Transport struct {
	Name, Title string
	Parameters  []Parameter

	discipline discipline // of switches, by default
	nic        discipline
	header     uint32 // bytes of data packets beyond the payload
	control    uint32 // bytes of acks and other control packets
	balance    Balance
	ecn        ecnDefaults
	// remainder says that the last packet of a flow is as long as what is left in the reference, too.
	neverPad bool

	queueBDPs float64 // bandwidth-delay products that a port of a switch holds
	build     func(n *network, s *transportConfig) transport
}

// marks says by default when switches mark packets: never, if it is zero.
type ecnDefaults struct {
	minShare, maxShare float64  // shares of the queue
	packets            int64    // or a step at so many full packets
	bytes              [2]int64 // or so many bytes
	notToHosts         bool     // ports to hosts do not mark
	noHeaders          bool     // the headers of trimmed packets are not marked
}

// Transports are all transports.
var Transports = []*Transport{
	&ndpTransport, &mprdmaTransport, &constantTransport, &singleTransport, &swiftLikeTransport,
	&tcpTransport, &dctcpTransport, &swiftTransport, &roceTransport, &dcqcnTransport, &hpccTransport,
	&eqdsTransport, &nsccTransport, &rcccTransport,
}

// FindTransport returns a transport by its name.
func FindTransport(name string) (*Transport, error) {
	var names []string
	for _, t := range Transports {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return nil, fmt.Errorf("no transport %q, expected one of %s", name, strings.Join(names, ", "))
}

// Params are the parameters of a run. Its JSON is part of results.
type Params struct {
	Transport     string `json:"transport"`
	Compat        Compat `json:"compat,omitempty"`
	MSS           int64  `json:"mss_bytes"`     // payload of a full packet
	PadLastPacket bool   `json:"whole_packets"` // the last packet of a flow is as long as the others, as in htsim

	// Of every port of a switch. "" and 0 are the default of the transport.
	Queueing     string `json:"queueing,omitempty"`  // what it does with what it cannot send at once: one of [Queueings]
	Queue        int64  `json:"queue_bytes"`         // data that it holds
	ControlQueue int64  `json:"control_queue_bytes"` // control packets that it holds, where those have a queue of their own
	ECNMin       int64  `json:"ecn_kmin_bytes"`      // above so many bytes in the queue packets begin to be marked,
	ECNMax       int64  `json:"ecn_kmax_bytes"`      // above so many all are; as many as ECNMin: a step. [NoECN]: never
	// MarkShares are the same as shares of Queue, 0 to 1; where the second is not 0, they count and become bytes.
	ECNShares [2]float64 `json:"-"`

	Balance Balance  `json:"balance"`
	Entropy int64    `json:"entropy"` // how many values the packets of a flow that is sprayed have
	Flowlet dag.Time `json:"flowlet_gap_ps"`

	TransportParams map[string]float64 `json:"transport_params"` // the transport's, by name, in bytes and picoseconds
	Coupling        Coupling           `json:"coupling"`
	Seed            int64              `json:"seed"`
	End             dag.Time           `json:"end_ps,omitempty"` // when the run is stopped; 0: when nothing is left to do
}

// NoMarks is a threshold that no queue exceeds.
const NoECN = math.MaxInt64

// NewParams returns the parameters of a transport by default.
func NewParams(transport string, c Compat) (Params, error) {
	t, err := FindTransport(transport)
	if err != nil {
		return Params{}, err
	}
	p := Params{Transport: transport, Compat: c, MSS: 4096, PadLastPacket: quirksOf(c).padLastPacket && !t.neverPad, Balance: t.balance, Entropy: 128,
		Flowlet: 10 * dag.Microsecond, Seed: 1, TransportParams: make(map[string]float64)}
	for i := range t.Parameters {
		p.TransportParams[t.Parameters[i].Name] = t.Parameters[i].value(c)
	}
	p.Coupling = Coupling{Rules: c, Rendezvous: math.MaxInt64}
	return p, nil
}

// queueings are the disciplines of switches by name.
var queueings = [...]string{
	dropTail: "droptail", markingDropTail: "ecn", trimming: "trim", randomDrop: "randomdrop", controlFirst: "priority",
	markingFirst: "ecnpriority", aeolus: "aeolus", lossless: "pfc",
}

// Queueings returns the names of what ports of switches can do with packets that they cannot send at once.
func Queueings() []string {
	return slices.Clone(queueings[:])
}

// discipline returns what the ports of switches do. Only transports that know trimmed packets may have switches that trim,
// and only those made for lossless networks may have these.
func (p *Params) discipline(t *Transport) (discipline, error) {
	if p.Queueing == "" {
		return t.discipline, nil
	}
	i := slices.Index(queueings[:], p.Queueing)
	if i < 0 {
		return 0, fmt.Errorf("no queueing %q, expected one of %s", p.Queueing, strings.Join(queueings[:], ", "))
	}
	d := discipline(i)
	if (d == trimming || d == lossless) && t.discipline != d {
		return 0, fmt.Errorf("the queueing %s is not for the transport %s", p.Queueing, t.Name)
	}
	return d, nil
}

// complete fills in what follows from the network, with the bandwidth-delay product of its longest path.
func (p *Params) complete(t *Transport, q *quirks, bdp uint64) {
	full := p.MSS + int64(t.header)
	if p.Queue == 0 {
		p.Queue = max(full, int64(t.queueBDPs*float64(bdp)))
	}
	if p.ControlQueue == 0 {
		p.ControlQueue = q.controlQueues * p.Queue
	}
	if s := p.ECNShares; s[1] > 0 {
		p.ECNMin, p.ECNMax = int64(s[0]*float64(p.Queue)), int64(s[1]*float64(p.Queue))
	}
	if p.ECNMin == 0 && p.ECNMax == 0 {
		p.ECNMin, p.ECNMax = NoECN, NoECN
		switch e := t.ecn; {
		case e.bytes[1] > 0:
			p.ECNMin, p.ECNMax = e.bytes[0], e.bytes[1]
		case e.packets > 0:
			p.ECNMin = e.packets * p.MSS
			p.ECNMax = p.ECNMin
		case e.maxShare > 0:
			p.ECNMin, p.ECNMax = int64(e.minShare*float64(p.Queue)), int64(e.maxShare*float64(p.Queue))
		}
	}
}

// settings is what a transport is made with.
type transportConfig struct {
	mss     uint64
	header  uint32
	control uint32
	rate    uint64 // bit/s of the interfaces
	padLast bool
	quirks  quirks
	params  map[string]float64
}

// bytes returns a parameter in bytes.
func (s *transportConfig) bytes(name string) uint64 { return uint64(s.number(name)) }

// time returns a parameter in picoseconds.
func (s *transportConfig) time(name string) uint64 { return uint64(s.number(name)) }

// packets returns a parameter that is a number of full packets, in bytes.
func (s *transportConfig) packets(name string) uint64 {
	return uint64(min(s.number(name)*float64(s.mss), 1<<62))
}

// is returns a parameter that is 0 or 1.
func (s *transportConfig) enabled(name string) bool { return s.number(name) != 0 }

func (s *transportConfig) number(name string) float64 {
	v, ok := s.params[name]
	if !ok {
		panic("no parameter " + name)
	}
	return v
}

// value returns the value of a parameter by default.
func (p *Parameter) value(c Compat) float64 {
	if c != CompatNone && p.Compat != nil {
		return *p.Compat
	}
	return p.Value
}

// check returns what is wrong with a value.
func (p *Parameter) check(v float64) error {
	switch {
	case math.IsNaN(v) || v < p.Min || v > 1<<53:
		return fmt.Errorf("%s: expected %v or more, found %v", p.Name, p.Min, v)
	case p.Unit == Switch && v != 0 && v != 1, (p.Unit == Bytes || p.Unit == Time) && v != math.Trunc(v):
		return fmt.Errorf("%s: found %v, which is not possible", p.Name, v)
	}
	return nil
}

// Find returns a parameter of the transport by its name.
func (t *Transport) Find(name string) (*Parameter, error) {
	i := slices.IndexFunc(t.Parameters, func(p Parameter) bool { return p.Name == name })
	if i >= 0 {
		return &t.Parameters[i], nil
	}
	var names []string
	for i := range t.Parameters {
		names = append(names, t.Parameters[i].Name)
	}
	return nil, fmt.Errorf("the transport %s has no parameter %q, expected one of %s", t.Name, name, strings.Join(names, ", "))
}

var compats = []string{"", "htsim", "atlahs"}

// Simulators returns the names of the simulators whose rules a run can follow.
func Simulators() []string {
	return compats[1:]
}

// ParseCompat returns whose rules a name stands for.
func ParseCompat(name string) (Compat, error) {
	for i, c := range compats {
		if c == name {
			return Compat(i), nil
		}
	}
	return 0, fmt.Errorf("no rules %q, expected htsim or atlahs", name)
}

// String returns the name, "" for [CompatNone].
func (c Compat) String() string {
	return compats[c]
}

// MarshalText returns the name.
func (c Compat) MarshalText() ([]byte, error) {
	return []byte(compats[c]), nil
}
