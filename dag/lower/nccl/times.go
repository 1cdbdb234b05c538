package nccl

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Table has the times of GPU reductions and copies as measured with NPKit: for each size in bytes a list of times in
// ns.
type Table struct {
	reduce, copy curve
}

// curve has the times of one kind of work in ascending order of size.
type curve struct {
	sizes   []int64   // bytes
	samples [][]int64 // ns
	means   []float64 // ns
}

// NPKit's events of reductions and copies.
const (
	reduceEvent = "NPKIT_EVENT_GPU_RECV_REDUCE_SEND"
	copyEvent   = "NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND"
)

// maxNS is the maximum time in a table, 10^15 ns or 11 days.
const maxNS = 1e15

// ReadTable parses a table in the format of ATLAHS: a JSON object of events, each an object of sizes in bytes, each a
// list of times in ns. It returns an error if NPKIT_EVENT_GPU_RECV_REDUCE_SEND or NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND
// is missing, and for times outside 0..10^15 ns.
func ReadTable(r io.Reader) (*Table, error) {
	var events map[string]map[string][]float64
	d := json.NewDecoder(r)
	if err := d.Decode(&events); err != nil {
		return nil, fmt.Errorf("NPKit table: %w", err)
	}
	t := &Table{}
	for name, c := range map[string]*curve{reduceEvent: &t.reduce, copyEvent: &t.copy} {
		if err := c.set(events[name]); err != nil {
			return nil, fmt.Errorf("NPKit table: %s: %w", name, err)
		}
	}
	return t, nil
}

func (c *curve) set(times map[string][]float64) error {
	if len(times) == 0 {
		return fmt.Errorf("expected lists of times by size, found none")
	}
	for text, list := range times {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("expected a size in bytes, found %q", text)
		}
		if len(list) == 0 {
			return fmt.Errorf("size %d: expected times, found none", size)
		}
		c.sizes = append(c.sizes, size)
	}
	slices.Sort(c.sizes)
	c.samples, c.means = make([][]int64, len(c.sizes)), make([]float64, len(c.sizes))
	for text, list := range times {
		size, _ := strconv.ParseInt(text, 10, 64)
		i, _ := slices.BinarySearch(c.sizes, size)
		if c.samples[i] != nil {
			return fmt.Errorf("size %d is listed twice", size)
		}
		samples, sum := make([]int64, len(list)), 0.0
		for k, ns := range list {
			if !(ns >= 0 && ns <= maxNS) {
				return fmt.Errorf("size %d: expected times of 0 to 10^15 ns, found %v", size, ns)
			}
			samples[k] = int64(ns)
			sum += ns
		}
		slices.Sort(samples) // samples do not depend on the order in the file
		c.samples[i], c.means[i] = samples, sum/float64(len(list))
	}
	return nil
}

// mean returns the expected time for the given bytes in ns, truncated: the mean of the size's times, linearly
// interpolated between sizes, and outside the sizes the mean of the nearest one.
func (c *curve) mean(bytes int64) int64 {
	i, exact := slices.BinarySearch(c.sizes, bytes)
	switch {
	case exact || i == 0:
		return int64(c.means[i])
	case i == len(c.sizes):
		return int64(c.means[i-1])
	}
	return int64(c.between(i, bytes))
}

func (c *curve) between(i int, bytes int64) float64 {
	low, high := c.sizes[i-1], c.sizes[i]
	a, b := c.means[i-1], c.means[i]
	return a + (b-a)*float64(bytes-low)/float64(high-low)
}

// sample draws a time for the given bytes in ns: one of the size's times, outside the sizes one of the nearest size,
// and between sizes the interpolated mean with a Gaussian deviation of 1 %.
func (c *curve) sample(bytes int64, draw *rand.Rand) int64 {
	i, exact := slices.BinarySearch(c.sizes, bytes)
	if i == len(c.sizes) {
		i--
	}
	if exact || i == 0 || bytes > c.sizes[i] {
		list := c.samples[i]
		return list[draw.IntN(len(list))]
	}
	mean := c.between(i, bytes)
	return int64(max(0, mean*(1+0.01*draw.NormFloat64())))
}

// Machines are the machines with built-in tables: the clusters Clariden (GH200) and Ault, as measured by ATLAHS.
var Machines = []string{"clariden", "ault"}

// machineFile has the median times by machine, protocol and event.
//
//go:embed machines.json
var machineFile embed.FS

// MachineTables returns the tables of a machine for the protocols Simple and LL. It returns an error for a name that is
// not in [Machines].
func MachineTables(name string) (simple, ll *Table, err error) {
	text, err := machineFile.ReadFile("machines.json")
	if err != nil {
		return nil, nil, err
	}
	var machines map[string]map[string]map[string]map[string]int64
	if err := json.Unmarshal(text, &machines); err != nil {
		return nil, nil, err
	}
	machine := machines[name]
	if machine == nil {
		return nil, nil, fmt.Errorf("no machine %q, expected one of %s", name, strings.Join(Machines, ", "))
	}
	table := func(protocol string) (*Table, error) {
		t := &Table{}
		for event, c := range map[string]*curve{reduceEvent: &t.reduce, copyEvent: &t.copy} {
			lists := make(map[string][]float64)
			for size, ns := range machine[protocol][event] {
				lists[size] = []float64{float64(ns)}
			}
			if err := c.set(lists); err != nil {
				return nil, err
			}
		}
		return t, nil
	}
	if simple, err = table("simple"); err == nil {
		ll, err = table("ll")
	}
	return simple, ll, err
}

// ll128Share is the share of the bandwidth of the protocol Simple that LL128 reaches: it handles whole lines of 128
// bytes,
// of which 120 are data.
const ll128Share = 0.92

// dividedBy returns the table of the times divided by a share.
func (t *Table) dividedBy(share float64) *Table {
	slower := func(c curve) curve {
		s := curve{sizes: c.sizes}
		for i, mean := range c.means {
			s.means = append(s.means, mean/share)
			var list []int64
			for _, ns := range c.samples[i] {
				list = append(list, int64(float64(ns)/share))
			}
			s.samples = append(s.samples, list)
		}
		return s
	}
	return &Table{slower(t.reduce), slower(t.copy)}
}

// useMachine takes the tables that are not given from the machine.
func (o *Options) useMachine() error {
	if o.Machine == "" {
		return nil
	}
	simple, ll, err := MachineTables(o.Machine)
	if err != nil {
		return err
	}
	if o.Simple == nil && o.LL128 == nil && !o.ZeroReduction {
		o.LL128, o.estimated = simple.dividedBy(ll128Share), true
	}
	o.Simple, o.LL = cmp.Or(o.Simple, simple), cmp.Or(o.LL, ll)
	return nil
}

// work is a kind of GPU work on data.
type work uint8

const (
	noWork work = iota
	copies
	reduces
	reducesAndCopies
	works = iota
)

// clock returns the times of GPU work by the tables of the options.
type clock struct {
	tables [protocols]*Table // nil: no time
	draw   *rand.Rand        // nil: use means
	source *rand.PCG
	seed   uint64
	last   [protocols][works]lastTime
	zero   bool // option ZeroReduction
}

type lastTime struct{ bytes, ns int64 }

func newClock(o *Options) *clock {
	c := &clock{seed: uint64(o.Seed), zero: o.ZeroReduction}
	if !o.ZeroReduction {
		c.tables = [protocols]*Table{ll: o.LL, ll128: o.LL128, simple: o.Simple}
	}
	if o.Sample {
		c.source = rand.NewPCG(0, 0)
		c.draw = rand.New(c.source)
	}
	for p := range c.last {
		for w := range c.last[p] {
			c.last[p][w].bytes = -1
		}
	}
	return c
}

// begin seeds the random stream of an event of a rank, so that its times do not depend on other events.
func (c *clock) begin(rank, event int32) {
	if c.draw != nil {
		c.source.Seed(c.seed, uint64(rank)<<32|uint64(uint32(event)))
	}
}

// time returns the time of work on the given bytes in ns, and whether it is known.
func (c *clock) time(p protocol, w work, bytes int64) (ns int64, known bool) {
	t, last := c.tables[p], &c.last[p][w]
	switch {
	case t == nil:
		return 0, c.zero
	case c.draw == nil && last.bytes == bytes:
		return last.ns, true
	}
	if w == reduces || w == reducesAndCopies {
		ns += c.of(&t.reduce, bytes)
	}
	if w == copies || w == reducesAndCopies {
		ns += c.of(&t.copy, bytes)
	}
	*last = lastTime{bytes, ns}
	return ns, true
}

func (c *clock) of(curve *curve, bytes int64) int64 {
	if c.draw == nil {
		return curve.mean(bytes)
	}
	return curve.sample(bytes, c.draw)
}

// duration converts nanoseconds, limited to [dag.MaxTime].
func duration(ns int64) dag.Time {
	return dag.Time(min(ns, int64(dag.MaxTime/dag.Nanosecond))) * dag.Nanosecond
}
