package mpi

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
)

// addSeeds adds the files of the first two ranks of the traces in testdata, and a trace with what those have not.
func addSeeds(f *testing.F, add func(rank0, rank1 string)) {
	paths, err := filepath.Glob("testdata/*/*-0.txt")
	if err != nil || len(paths) == 0 {
		f.Fatal(err)
	}
	for _, path := range paths {
		var texts [2]string
		for rank, name := range []string{path, strings.Replace(path, "-0.txt", "-1.txt", 1)} {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			// Two files are the whole trace.
			texts[rank] = strings.NewReplacer(",5:", ",2:", ",4:", ",2:", ",3:", ",2:").Replace(string(text))
		}
		add(texts[0], texts[1])
	}
	add(string(program(0, 1)), string(program(1, 1)))
	add("mpi_init_:-:1\nMPI_Comm_split:1:0,0,2:0:0:77:2\nMPI_Comm_dup:2:0,0,2:80:3\nMPI_Comm_free:3:77:4\n"+
		"MPI_Alltoallv:4:9:76:1,2:77:0,1:1,4,4:9:78:3,5:79:0,3:1,4,4:5,0,2:5\nMPI_Waitany:5:2:800:0:0:6\n",
		"MPI_Comm_split:1:0,1,2:0:0:77:2\nMPI_Comm_dup:2:0,1,2:80:3\nMPI_Issend:3:9:1:1,4,4:0:7:0,1,2:800:4\n"+
			"MPI_Test:5:800:0:0:6\nMPI_Startall:6:2:800:7\nMPI_Send:7.125:0x9:2:1275069445:0:7:0:8\n")
	add("# uname: SMPI\nMPI_Init:-:1:2:0\nMPI_Probe:1:-555:-444:5,0,2:0:3\nMPI_Recv:3:9:1:1,4,4:1:7:5,0,2:0:4\n"+
		"MPI_Allgather:4:18446744073709551394:0:0,0,0:9:2:1,4,4:5,0,2:5\n",
		"MPI_Init:-:1:2:0\nMPI_Probe:1:0:8:5,1,2:0:3\nMPI_Iprobe:3:0:8:5,1,2:0:0:4\nMPI_Send:4:9:1:1,4,4:0:7:5,1,2:5\n"+
			"MPI_Probe:5:0:7:5,1,2:0:6\nMPI_Alltoallw:6:9\n")
}

// FuzzRead checks that whatever is read is sound in itself, and that nothing is lost by reading leniently.
func FuzzRead(f *testing.F) {
	addSeeds(f, func(rank0, rank1 string) { f.Add(rank0, rank1) })
	f.Fuzz(func(t *testing.T, rank0, rank1 string) {
		trace, _, err := readTexts(format.ReadOptions{}, rank0, rank1)
		lenient, warnings, lenientErr := readTexts(format.ReadOptions{Lenient: true}, rank0, rank1)
		if err == nil && lenientErr != nil || lenientErr != nil && !strings.Contains(lenientErr.Error(), "line is longer") {
			t.Fatalf("error %v, leniently %v", err, lenientErr)
		}
		if err != nil && len(warnings) == 0 {
			t.Fatalf("error %v, and no warning", err)
		}
		for i := range lenient.Ranks {
			checkRank(t, lenient, i)
			if err != nil {
				continue
			}
			if got, want := list(lenient.Ranks[i]), list(trace.Ranks[i]); got != want {
				t.Fatalf("read leniently\n%s, else\n%s", got, want)
			}
		}
	})
}

// checkRank checks the invariants of every rank, even of a trace that cannot run to its end.
func checkRank(t *testing.T, trace *dag.Trace, rank int) {
	r := trace.Ranks[rank]
	if err := r.CheckReferences(); err != nil {
		t.Fatal(err)
	}
	for i := range r.Kind {
		op := r.Op(i)
		if op.Duration < 0 || op.Bytes < 0 || op.RecvBytes < 0 || !op.Subkind.Of(op.Kind) ||
			op.Peer < dag.AnySource || int(op.Peer) >= len(trace.Ranks) || op.MeasuredStart == dag.Unmeasured ||
			op.Comm < 0 || int(op.Comm) >= len(trace.Comms) || !trace.Comms[op.Comm].Contains(int32(rank)) {
			t.Fatalf("rank %d, op %d: %+v", rank, i, op)
		}
	}
	for _, problem := range dag.Validate(trace) {
		if problem.Class == "cycle" {
			t.Fatal(problem)
		}
	}
}

// FuzzSchedgen checks that whatever is converted is a schedule.
// FuzzPlaces checks that accepted start positions are finite and survive writing.
func FuzzPlaces(f *testing.F) {
	f.Add("0 0\n1234 5.25\n")
	f.Add("7 1e300\n-1 2\n")
	f.Add("1 NaN\n2 Inf")
	f.Fuzz(func(t *testing.T, text string) {
		places, err := parsePlaces(strings.NewReader(text), "f")
		if err != nil {
			if places != nil || !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("%v, error %v", places, err)
			}
			return
		}
		again, err := parsePlaces(bytes.NewReader(formatPlaces(places)), "f")
		if err != nil || !slices.Equal(again, places) {
			t.Errorf("%v, written and read again %v, error %v", places, again, err)
		}
	})
}

func FuzzSchedgen(f *testing.F) {
	addSeeds(f, func(rank0, rank1 string) {
		f.Add(rank0, rank1, false, uint8(0), uint8(0), int16(0))
		f.Add(rank0, rank1, true, uint8(1), uint8(2), int16(10))
	})
	f.Fuzz(func(t *testing.T, rank0, rank1 string, atlahs bool, extrapolate, collectives uint8, prepost int16) {
		o := &Options{Variant: "upstream", TimeMult: 1000, Extrapolate: int(extrapolate%3) + 1,
			Collectives: int(collectives), Prepost: int32(prepost)}
		if atlahs {
			o.Variant = "atlahs"
		}
		trace, _, err := readTexts(format.ReadOptions{Own: o, Compat: true}, rank0, rank1)
		if err != nil {
			return
		}
		for i := range trace.Ranks {
			if err := trace.Ranks[i].CheckReferences(); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := goal.Binary.Write(&out, trace, format.WriteOptions{Compat: true, Warn: t.Errorf}); err != nil {
			t.Fatal(err)
		}
	})
}
