package loggops

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mathext/prng"

	"github.com/tracedag/tracedag/dag"
)

// NoiseTrace is operating-system noise measured on one processor: detours with start and length, repeated with the
// period of the last one. [ReadNoise] reads it.
type NoiseTrace struct {
	start, length []uint64 // in nanoseconds
	repeatsLast   bool     // the file ends with a newline

	Name string // file name
	// Coscheduled applies the noise to all hosts at the same time.
	Coscheduled bool
	// Seed selects the point of the trace at which each host starts.
	Seed int64
}

// ReadNoise reads one detour per line: its start and length in decimal nanoseconds, separated by a tab or spaces, in
// ascending order of starts. Lines that begin with # are comments. Values are rounded to whole nanoseconds, half away
// from zero. name is the file name for errors.
func ReadNoise(r io.Reader, name string) (*NoiseTrace, error) {
	n := &NoiseTrace{Name: name}
	in := bufio.NewReader(r)
	for line := 1; ; line++ {
		text, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		atEnd := err == io.EOF
		switch fields := strings.Fields(text); {
		case strings.HasPrefix(text, "#"):
		case len(fields) == 0 && atEnd:
			n.repeatsLast = true
		case len(fields) != 2:
			return nil, fmt.Errorf("%s:%d: expected the start and length of a detour, found %d fields",
				name, line, len(fields))
		default:
			start, err1 := parseNanoseconds(fields[0])
			length, err2 := parseNanoseconds(fields[1])
			if err1 != nil || err2 != nil {
				return nil, fmt.Errorf("%s:%d: expected two times in nanoseconds, found %q", name, line,
					strings.TrimSpace(text))
			}
			if k := len(n.start); k > 0 && start < n.start[k-1] {
				return nil, fmt.Errorf("%s:%d: expected a start not before the previous one, found %s", name, line,
					fields[0])
			}
			n.start, n.length = append(n.start, start), append(n.length, length)
		}
		if atEnd {
			break
		}
	}
	if len(n.start) == 0 || n.start[len(n.start)-1] == 0 {
		return nil, fmt.Errorf("%s: expected at least one detour after time 0", name)
	}
	return n, nil
}

func parseNanoseconds(s string) (uint64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= float64(dag.MaxTime/dag.Nanosecond)) {
		return 0, strconv.ErrRange
	}
	return uint64(math.Round(v)), nil
}

// noise is a NoiseTrace in a reference simulator, which repeats it from the start of its last detour. If the file ends
// with a newline, as most do, the reference reads the last detour twice.
type noise struct {
	start, length []uint64
	afterFirst    uint64   // sum of all lengths except the first
	offset        []uint64 // by host: its start in the trace
	injected      []uint64 // by host: noise so far
}

func (n *NoiseTrace) noise(hosts int) *noise {
	start, length := n.start, n.length
	if last := len(start) - 1; n.repeatsLast {
		start, length = append(slices.Clip(start), start[last]), append(slices.Clip(length), length[last])
	}
	s := &noise{start: start, length: length, offset: n.offsets(hosts, start[len(start)-1]),
		injected: make([]uint64, hosts)}
	for _, l := range length[1:] {
		s.afterFirst += l
	}
	return s
}

// offsets draws, for each host, the point at which it starts in a noise of the given period. The reference simulators
// draw one number before those of the hosts, and use it for all hosts if the noise is coscheduled.
func (n *NoiseTrace) offsets(hosts int, period uint64) []uint64 {
	random := prng.NewMT19937() // the reference's generator
	random.Seed(uint64(n.Seed)) // uses the lower half of the seed
	draw := func() uint64 {
		return uint64(float64(random.Uint32()) / math.MaxUint32 * float64(period))
	}
	offsets := make([]uint64, hosts)
	common := draw()
	for h := range offsets {
		offsets[h] = common
		if !n.Coscheduled {
			offsets[h] = draw()
		}
	}
	return offsets
}

// over returns the noise on a host that is busy from a to b, as the reference simulator computes it: the rest of a
// detour in progress at a, and all of every later detour except the first of the trace. For an interval as long as the
// trace, the reference divides by zero; a longer interval wraps around.
func (s *noise) over(host int, a, b uint64) (uint64, error) {
	last, busy := len(s.start)-1, b-a
	period := s.start[last]
	if busy == period {
		return 0, fmt.Errorf("rank %d is busy for %d ns, exactly as long as the noise trace, "+
			"which this model does not support; use --model strict", host, busy)
	}
	t := (a + s.offset[host]) % (period - busy)
	at, total := 0, uint64(0)
	if t > s.start[0] {
		at = sort.Search(len(s.start), func(i int) bool { return s.start[i] > t }) - 1
		if tail := s.start[at] + s.length[at]; tail > t {
			total = tail - t
		}
	}
	end := t + busy
	for {
		if at == last {
			end -= period
			at = 0
			if whole := (end - 1) / period; end > period && last > 0 { // all whole periods at once
				end -= whole * period
				total += whole * s.afterFirst
			}
		}
		if last == 0 || end <= s.start[at+1] {
			break
		}
		at++
		total += s.length[at]
	}
	s.injected[host] += total
	return total, nil
}

// most returns an upper bound of the noise on a processor that is busy for the given time or less. bounded is false if
// there is no bound: for intervals longer than the trace, over adds noise in proportion to the time of day. A nil s has
// no noise.
func (s *noise) most(busy uint64) (noise uint64, bounded bool) {
	if s == nil {
		return 0, true
	}
	if busy >= s.start[len(s.start)-1] {
		return 0, false
	}
	for _, l := range s.length {
		if noise += l; noise < l {
			return 0, false
		}
	}
	return noise, true
}

// detours is a NoiseTrace in the strict model, in picoseconds. The processor does no other work during a detour, and
// the trace repeats from the end of its last detour.
type detours struct {
	start, end []uint64 // ascending and disjoint
	idleBefore []uint64 // by detour: idle time of the period before it
	period     uint64
	idle       uint64 // time of a period outside detours
	offset     []uint64
	injected   []uint64
}

func (n *NoiseTrace) detours(ranks int) (*detours, error) {
	d := &detours{injected: make([]uint64, ranks)}
	for i, start := range n.start {
		start, end := start*1000, (n.start[i]+n.length[i])*1000
		if start > math.MaxInt64 || end > math.MaxInt64 || n.length[i] > math.MaxInt64/1000 {
			return nil, errors.New("the noise trace is longer than 106 days, the longest time in picoseconds")
		}
		if last := len(d.end) - 1; last >= 0 && start <= d.end[last] {
			d.end[last] = max(d.end[last], end)
			continue
		}
		if end > start {
			d.start, d.end = append(d.start, start), append(d.end, end)
		}
	}
	if len(d.end) == 0 {
		d.start, d.end = []uint64{0}, []uint64{0}
	}
	d.period = max(d.end[len(d.end)-1], n.start[len(n.start)-1]*1000)
	detoured := uint64(0)
	for i := range d.start {
		d.idleBefore = append(d.idleBefore, d.start[i]-detoured)
		detoured += d.end[i] - d.start[i]
	}
	d.idle = d.period - detoured
	if d.idle == 0 {
		return nil, errors.New("the noise trace has no idle time between its detours; expected some")
	}
	d.offset = n.offsets(ranks, d.period)
	return d, nil
}

// work returns the end of work of the given length that a rank's processor starts at start, or more than math.MaxInt64
// if that is out of range.
func (d *detours) work(rank uint32, start, length uint64) uint64 {
	if length == 0 {
		return start
	}
	at := (start + d.offset[rank]) % d.period
	wanted := d.idleUntil(at) + length // measured from the start of the period, so at most idle + length
	periods, rest := (wanted-1)/d.idle, (wanted-1)%d.idle+1
	high, whole := bits.Mul64(periods, d.period)
	if high > 0 || whole > math.MaxInt64 || start+whole > math.MaxInt64 {
		return math.MaxInt64 + 1
	}
	// rest is from 1 to idle. It is reached before the first detour with at least this idle time before it.
	end := d.period - (d.idle - rest)
	if i, _ := slices.BinarySearch(d.idleBefore, rest); i < len(d.start) {
		end = d.start[i] - (d.idleBefore[i] - rest)
	}
	done := start + whole + end - at
	if done > math.MaxInt64 {
		return math.MaxInt64 + 1
	}
	d.injected[rank] += done - start - length
	return done
}

// idleUntil returns the idle time of the period before a point in it.
func (d *detours) idleUntil(at uint64) uint64 {
	i := sort.Search(len(d.end), func(i int) bool { return d.end[i] > at })
	switch {
	case i == len(d.end):
		return d.idle - (d.period - at)
	case at > d.start[i]:
		return d.idleBefore[i]
	}
	return d.idleBefore[i] - (d.start[i] - at)
}
