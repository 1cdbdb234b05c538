package chakra

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// written writes a trace with options and returns its files and losses.
func written(t *testing.T, f *format.Format, trace *dag.Trace, own *WriteOptions) (map[string][]byte, []string) {
	t.Helper()
	files := make(map[string]*bytes.Buffer)
	var lost []string
	err := f.WriteFiles(func(suffix string) (io.Writer, error) {
		files[suffix] = new(bytes.Buffer)
		return files[suffix], nil
	}, trace, format.WriteOptions{Own: own, Losses: func(losses []format.Loss) error {
		for _, l := range losses {
			lost = append(lost, l.String())
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	contents := make(map[string][]byte)
	for suffix, file := range files {
		contents[suffix] = file.Bytes()
	}
	return contents, lost
}

// simulated returns the result of a trace.
func simulated(t *testing.T, trace *dag.Trace, backend string, params ...string) *sim.Result {
	t.Helper()
	var options []backends.Option
	for _, p := range params {
		options = append(options, backends.Set(p))
	}
	r, err := backends.Run(trace, backend, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inUnits rounds all times to the unit.
func inUnits(t *dag.Trace, unit dag.Time) {
	for i := range t.Ranks {
		r := t.Ranks[i]
		for _, column := range [...]dag.Column[dag.Time]{r.Release, r.Duration} {
			for op := range column {
				column[op] = (column[op] + unit/2) / unit * unit
			}
		}
	}
}

// rooflineSystem returns a system file with a roofline model of 1 TFLOPS.
func rooflineSystem(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "system.json")
	text := `{"roofline-enabled": 1, "peak-perf": 1, "local-mem-bw": 1, "endpoint-delay": 10,
		"preferred-dataset-splits": 1, "collective-optimization": "baseline"}`
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// checkClock checks what clocks must keep of a trace.
func checkClock(t *testing.T, trace *dag.Trace) {
	t.Helper()
	for _, mode := range []ClockMode{ClockRoofline, ClockMicros} {
		own := &WriteOptions{Clock: mode, Peak: defaultPeak}
		if mode == ClockMicros {
			inUnits(trace, dag.Microsecond)
		} else {
			inUnits(trace, dag.Nanosecond)
		}
		files, lost := written(t, &Format, trace, own)
		checkRoundTrip(t, &Format, files, trace, own)
		if !strings.Contains(fmt.Sprint(lost), "take turns") {
			checkSimulations(t, files, trace, mode)
		}
	}
	files, _ := written(t, &JSON, trace, newWriteOptions())
	checkRoundTrip(t, &JSON, files, trace, newWriteOptions())
	released := releasesOf(trace)
	bare, lost := written(t, &Format, trace, &WriteOptions{NoClock: true})
	if without := decode(t, &Format, bare, quiet); without.Ops() != trace.Ops()+idle(trace) {
		t.Errorf("without a clock: %d ops, expected %d", without.Ops(), trace.Ops())
	}
	if loss := format.CountOps(released) + ": release times"; slices.Contains(lost, loss) != (released > 0) {
		t.Errorf("losses %q, expected %q", lost, loss)
	}
}

// checkRoundTrip checks that files give the release times of a trace, and are written again with the same bytes.
func checkRoundTrip(t *testing.T, f *format.Format, files map[string][]byte, trace *dag.Trace, own *WriteOptions) {
	t.Helper()
	back := decode(t, f, files, quiet)
	checkReleases(t, back, trace)
	if again, _ := written(t, f, throughStore(t, back), own); !maps.EqualFunc(again, files, bytes.Equal) {
		t.Errorf("%s: other bytes after the store", f.Name)
	}
}

// checkSimulations checks that files with the calcs of clocks take the times of a trace.
func checkSimulations(t *testing.T, files map[string][]byte, trace *dag.Trace, mode ClockMode) {
	t.Helper()
	keep := quiet
	keep.Own = &Options{KeepClock: true}
	plain := decode(t, &Format, files, keep)
	released := releasesOf(trace)
	if added := plain.Ops() - trace.Ops() - idle(trace); added > released || released == 0 && added != 0 {
		t.Errorf("%d calcs for %d ops with release times", added, released)
	}
	check := func(backend string, params ...string) {
		t.Helper()
		got, want := simulated(t, plain, backend, params...), simulated(t, trace, backend, params...)
		for rank := range want.Finish {
			if got.Finish[rank] != want.Finish[rank] && trace.Ranks[rank].Len() > 0 {
				t.Errorf("%s: rank %d finishes at %v, expected %v", backend, rank, got.Finish[rank], want.Finish[rank])
				return
			}
		}
	}
	if mode == ClockMicros {
		check("ideal")
		check("loggops")
	}
	params := []string{fmt.Sprintf("network=Switch(%d)@50GB/s,500ns", len(trace.Ranks))}
	if mode == ClockRoofline {
		params = append(params, "system="+rooflineSystem(t))
	}
	check("analytical", params...)
}

func releasesOf(t *dag.Trace) (n int64) {
	for i := range t.Ranks {
		n += t.Ranks[i].Release.Present()
	}
	return n
}

// idle returns the number of ranks without ops, which get a node.
func idle(t *dag.Trace) (n int64) {
	for i := range t.Ranks {
		if t.Ranks[i].Len() == 0 {
			n++
		}
	}
	return n
}

func checkReleases(t *testing.T, got, want *dag.Trace) {
	t.Helper()
	for rank := range want.Ranks {
		g, w := got.Ranks[rank], want.Ranks[rank]
		if g.Len() != w.Len() && w.Len() > 0 {
			t.Errorf("rank %d: %d ops, expected %d", rank, g.Len(), w.Len())
			return
		}
		for op := range w.Len() {
			if g.Release.At(op) != w.Release.At(op) || g.Kind[op] != w.Kind[op] ||
				!slices.Equal(g.Deps.Of(op), w.Deps.Of(op)) || g.Attrs.At(op) != "" {
				t.Errorf("rank %d, op %d: %+v after %v, expected %+v after %v", rank, op, g.Op(op), g.Deps.Of(op),
					w.Op(op), w.Deps.Of(op))
				return
			}
		}
	}
}

// TestClockOfGenerators checks the clocks of the traces of all open-loop generators.
func TestClockOfGenerators(t *testing.T) {
	for _, name := range []string{"dcnw", "cdcnw", "flows", "matrix", "workload"} {
		t.Run(name, func(t *testing.T) {
			g := gen.Named(name)
			c := g.New()
			if err := c.Params().Apply(g.Small); err != nil {
				t.Fatal(err)
			}
			open := func(name string, read func(name string, r io.Reader) error) error {
				content, err := os.ReadFile(filepath.Join("../../dag/gen", name))
				if err != nil {
					return err
				}
				return read(name, bytes.NewReader(content))
			}
			s, err := c.Source(&generator.Env{Open: open})
			if err != nil {
				t.Fatal(err)
			}
			trace, err := dag.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			checkClock(t, trace)
		})
	}
}

// TestClockOfRandomTraces checks the clocks of traces with release times on some ranks and ops only.
func TestClockOfRandomTraces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	times := []dag.Time{0, 0, 1, 499, 500, 1500 * dag.Nanosecond, 1501 * dag.Nanosecond, dag.Microsecond,
		dag.Microsecond + 1, 3 * dag.Microsecond, 700 * dag.Microsecond, 1<<53 + 1}
	for n := range 40 {
		ranks := 2 + random.IntN(4)
		b := dag.NewBuilder(ranks)
		for rank := range ranks {
			r, few := b.Rank(rank), 1+random.IntN(len(times))
			for op := range random.IntN(12) {
				// Each op waits for the previous one, because simulators run ready ops by number, whatever the time.
				o := dag.Op{Kind: dag.Calc, Duration: dag.Time(1+random.IntN(4)) * dag.Microsecond}
				if n%2 == 0 {
					o.Host, o.Stream = 1, hostStream
				}
				if rank > 0 || random.IntN(2) == 0 {
					o.Release = times[random.IntN(few)]
				}
				i := r.Add(o)
				if op > 0 {
					r.Requires(i, op-1)
				}
			}
		}
		for range random.IntN(6) {
			from, to := random.IntN(ranks), random.IntN(ranks)
			if from == to {
				continue
			}
			b.Rank(from).Add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 8, Release: times[random.IntN(len(times))],
				Stream: dataStream})
			b.Rank(to).Add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: 8, Stream: dataStream})
		}
		checkClock(t, b.Trace())
		if t.Failed() {
			return
		}
	}
}

// TestOpsOfClocks checks that operations take the nanoseconds that they express.
func TestOpsOfClocks(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, peak := range []int64{1e12, 312e12, 7e9, 1999e9, 989_500_000_000_000} {
		for k := range 20000 {
			ns := random.Uint64() >> (12 + random.IntN(52))
			if k < 1000 {
				ns = uint64(k + 1)
			}
			ops, ok := opsOf(ns, peak)
			if exact := float64(ns) * float64(peak) / 1e9; !ok && exact < 1<<62 && ns < 1<<52 && ns > 0 {
				t.Fatalf("no operations take %d ns at %d", ns, peak)
			}
			if got := float64(ops) / float64(peak) * 1e9; ok && uint64(got) != ns {
				t.Fatalf("%d operations at %d take %v ns, expected %d", ops, peak, got, ns)
			}
		}
	}
}

// TestClockPlaces checks the resource of a clock, and the losses.
func TestClockPlaces(t *testing.T) {
	for _, c := range []struct {
		host, accelerator bool
		mode              ClockMode
		wantHost          int32
		lost              string
	}{
		{false, false, ClockMicros, 1, "[1 op: release times rounded to whole microseconds]"},
		{false, true, ClockMicros, 1, "[1 op: release times rounded to whole microseconds]"},
		{true, false, ClockMicros, 0, "[1 op: release times rounded to whole microseconds]"},
		{true, true, ClockMicros, 0, "[1 op: release times rounded to whole microseconds 2 ops: release times that calcs " +
			"delay, because the calcs of the clock take turns with them on the accelerator]"},
		{true, false, ClockRoofline, 0, "[]"},
		{true, true, ClockRoofline, 0, "[2 ops: release times that calcs delay, because the calcs of the clock take " +
			"turns with them on the accelerator]"},
	} {
		b := dag.NewBuilder(2)
		r := b.Rank(0)
		r.Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8, Release: 1234 * dag.Nanosecond, Stream: dataStream})
		r.Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8, Release: 3 * dag.Microsecond, Stream: dataStream})
		if c.host {
			r.Add(dag.Op{Kind: dag.Calc, Duration: dag.Microsecond, Host: 1, Stream: hostStream})
		}
		if c.accelerator {
			r.Add(dag.Op{Kind: dag.Calc, Duration: dag.Microsecond})
		}
		for range 2 {
			b.Rank(1).Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 8, Stream: dataStream})
		}
		files, lost := written(t, &Format, b.Trace(), &WriteOptions{Clock: c.mode, Peak: defaultPeak})
		keep := quiet
		keep.Own = &Options{KeepClock: true}
		clock := decode(t, &Format, files, keep).Ranks[0].Op(0)
		if clock.Name != clockName || clock.Host != c.wantHost || fmt.Sprint(lost) != c.lost {
			t.Errorf("%+v: clock %+v, losses %v", c, clock, lost)
		}
	}
}

// TestMarksWithoutClock checks that marked nodes which are no clock remain computations, and that nothing is lost.
func TestMarksWithoutClock(t *testing.T) {
	var f File
	f.Metadata.Version = version
	for id := range uint64(3) {
		n := Node{ID: id, Name: clockName, Type: CompNode, DurationMicros: 1,
			Attr: []Attr{Bool(hostName, true), Bool(clockMark, true)}}
		f.Nodes = append(f.Nodes, n) // a clock would be a chain
	}
	content := appendFrame(nil, f.Metadata.append)
	for i := range f.Nodes {
		content = appendFrame(content, f.Nodes[i].append)
	}
	trace := decode(t, &Format, map[string][]byte{".0.et": content}, quiet)
	if trace.Ops() != 3 || trace.Ranks[0].Release.Present() != 0 {
		t.Errorf("%d ops, %d release times", trace.Ops(), trace.Ranks[0].Release.Present())
	}
	if again := encode(t, &Format, trace); !bytes.Equal(again[".0.et"], content) {
		t.Error("the trace is written in another way")
	}
}
