package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/golden"
)

// readTexts reads the trace of the given files, of ranks 0, 1, ..., and returns the warnings with it.
func readTexts(o format.ReadOptions, texts ...string) (*dag.Trace, []string, error) {
	var inputs []*format.Input
	for rank, text := range texts {
		inputs = append(inputs, &format.Input{Name: fmt.Sprintf("x-%d.txt", rank), Reader: strings.NewReader(text)})
	}
	var warnings []string
	o.Warn = func(message string, args ...any) {
		// most texts have no end, or are short
		if !strings.Contains(message, "without MPI_Finalize") && !strings.Contains(message, "before MPI_Finalize") {
			warnings = append(warnings, fmt.Sprintf(message, args...))
		}
	}
	t, err := read(inputs, o)
	return t, warnings, err
}

// mustRead reads a sound trace without a warning.
func mustRead(t *testing.T, texts ...string) *dag.Trace {
	t.Helper()
	trace, warnings, err := readTexts(format.ReadOptions{}, texts...)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %q", err, warnings)
	}
	for i := range trace.Ranks {
		if err := trace.Ranks[i].CheckReferences(); err != nil {
			t.Fatal(err)
		}
	}
	return trace
}

// list returns the ops of a rank, one a line.
func list(r *dag.Rank) string {
	var b strings.Builder
	for i := range r.Kind {
		op := r.Op(i)
		fmt.Fprintf(&b, "%d %s", i, op.Kind)
		if op.Kind == dag.Coll {
			fmt.Fprintf(&b, " %s", op.Subkind)
		}
		if op.Kind == dag.Calc {
			fmt.Fprintf(&b, " %v", op.Duration)
		} else {
			fmt.Fprintf(&b, " %d", op.Bytes)
		}
		if op.RecvBytes != 0 {
			fmt.Fprintf(&b, "/%d", op.RecvBytes)
		}
		switch {
		case op.Kind == dag.Send:
			fmt.Fprintf(&b, " to %d tag %d", op.Peer, op.Tag)
		case op.Kind == dag.Recv:
			fmt.Fprintf(&b, " from %d tag %d", op.Peer, op.Tag)
		case op.Subkind.Rooted():
			fmt.Fprintf(&b, " root %d", op.Peer)
		}
		if op.Comm != 0 {
			fmt.Fprintf(&b, " comm %d", op.Comm)
		}
		if op.Attrs != "" {
			fmt.Fprintf(&b, " %s", op.Attrs)
		}
		for _, off := range r.Deps.Of(i) {
			fmt.Fprintf(&b, " after %d", i-int(off))
		}
		for _, off := range r.StartDeps.Of(i) {
			fmt.Fprintf(&b, " with %d", i-int(off))
		}
		fmt.Fprintf(&b, " @%v-%v\n", op.MeasuredStart, op.MeasuredEnd)
	}
	return b.String()
}

// The traces in testdata are read as the golden files have it.
func TestGolden(t *testing.T) {
	for _, name := range []string{"own-nonblock", "own-coll", "own-persist", "own-subcomm", "own-timeback"} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			trace, err := read(traceFiles(t, filepath.Join("testdata", name, "pmpi-trace-rank-0.txt")), format.ReadOptions{
				Warn: func(message string, args ...any) { fmt.Fprintf(&said, message+"\n", args...) }})
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range dag.Validate(trace) {
				t.Errorf("unsound: %v", problem)
			}
			got := said.String()
			for i, c := range trace.Comms {
				got += fmt.Sprintf("comm %d: %v\n", i, c.Members())
			}
			for i := range trace.Ranks {
				got += fmt.Sprintf("rank %d\n%s", i, list(trace.Ranks[i]))
			}
			golden.Check(t, filepath.Join("testdata", name+".ops"), got)
		})
	}
}

// Traces of other projects are read, and are sound.
func TestForeign(t *testing.T) {
	folders := vectorFolders(t)
	if len(folders) == 1 {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	for name, want := range map[string]struct {
		sends, recvs, colls int64
	}{
		"sweep3d-2x2/pmpi-trace-rank-0.txt":       {5760, 5760, 156},
		"sweep3d-2x2-short/pmpi-trace-rank-0.txt": {960, 960, 40},
		"sphot/htor-coll-rank-0.dat":              {9, 9, 40},
		"isend-ring/pmpi-trace-rank-0.txt":        {4, 4, 4},
		"bcast/trace_bcast-0.dat":                 {0, 0, 20},
		"bcast-3/trace_bcast-0.dat":               {0, 0, 3},
		"barrier-4/trace_barr-0.dat":              {0, 0, 4},
	} {
		t.Run(filepath.Dir(name), func(t *testing.T) {
			trace, err := read(traceFiles(t, filepath.Join(folders[1], name)), format.ReadOptions{Warn: func(string, ...any) {}})
			if err != nil {
				t.Fatal(err)
			}
			var sends, recvs, colls int64
			for i := range trace.Ranks {
				for _, kind := range trace.Ranks[i].Kind {
					switch kind {
					case dag.Send:
						sends++
					case dag.Recv:
						recvs++
					case dag.Coll:
						colls++
					}
				}
			}
			if sends != want.sends || recvs != want.recvs || colls != want.colls {
				t.Errorf("%d sends, %d receives and %d collectives, want %+v", sends, recvs, colls, want)
			}
			for _, problem := range dag.Validate(trace) {
				t.Errorf("unsound: %v", problem)
			}
		})
	}
}

const (
	begin = "MPI_Init:-:1:2:100\n"
	end   = "MPI_Finalize:1000:-\n"
)

// The conversion of calls, at rank 0 of two or more.
func TestCalls(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"times to the picosecond": {
			"MPI_Init:-:1:2:1298365588610809.000001\nMPI_Barrier:1298365588610810.1234567:0,0,2:1298365588610811.5\n",
			`0 calc 1.123456us @0s-1.123456us
1 coll barrier 0 after 0 @1.123456us-2.499999us
`},
		"no MPI_Init": {
			"MPI_Barrier:5:0,0,2:6\nMPI_Barrier:6:0,0,2:8\n", `0 coll barrier 0 @0s-1us
1 coll barrier 0 after 0 @1us-3us
`},
		"a buffered send": {
			begin + "MPI_Bsend:100:9:100000:1,4,4:1:5:0,0,2:101\nMPI_Recv:101:9:1:1,4,4:1:5:0,0,2:102\n",
			`0 send 400000 to 1 tag 5 {"mpi":{"mode":"buffered"}} @0s-1us
1 recv 4 from 1 tag 5 with 0 @1us-2us
`},
		"modes": {
			begin + "MPI_Ssend:100:9:2:1,4,4:1:5:0,0,2:101\nMPI_Ibsend:101:9:2:1,4,4:1:6:0,0,2:800:102\n" +
				"MPI_Wait:102:800:0:103\n", `0 send 8 to 1 tag 5 {"mpi":{"mode":"synchronous"}} @0s-1us
1 send 8 to 1 tag 6 {"mpi":{"mode":"buffered"}} after 0 @1us-2us
2 calc 0s after 1 with 1 @2us-3us
`},
		"Fortran names and handles": {
			"mpi_init_:-:100\nMPI_SEND:100:9:2:1,4,4:1:5:-2080374784,0,2:101\n", `0 send 8 to 1 tag 5 @0s-1us
`},
		"partners and tags of SMPI": {
			begin + "MPI_Recv:100:9:1:1,4,4:-555:-444:0,0,2:0:101\nMPI_Recv:101:9:1:1,4,4:-666:5:0,0,2:0:102\n" +
				"MPI_Send:102:9:1:1,4,4:-666:5:0,0,2:103\n", `0 recv 4 from -1 tag -1 @0s-1us
`},
		"exchange of clocks at the end": {
			begin + "MPI_Barrier:100:0,0,2:101\n# Finalize clockdiff: 0.000000\nMPI_Finalize:150:-\n",
			`0 coll barrier 0 @0s-1us
`},
		"computation behind a clock difference": {
			begin + "# Finalize clockdiff: 0.000000\nMPI_Barrier:105:0,0,2:106\nMPI_Finalize:150:-\n",
			`0 calc 5us @0s-5us
1 coll barrier 0 after 0 @5us-6us
2 calc 44us after 1 @6us-50us
`},
		"counts of an alltoallv": {
			begin + "MPI_Alltoallv:100:9:9:3,1:9:0,3:1,4,4:9:9:3,2:9:0,3:1,4,4:0,0,2:101\n",
			`0 coll alltoallv 16/20 {"counts":{"send":[12,4],"recv":[12,8]}} @0s-1us
`},
		"null partners of Open MPI": {
			begin + "MPI_Sendrecv:110:9:1:1,4,4:1:5:9:1:1,4,4:-2:5:0,0,2:0:120\nMPI_Recv:120:9:1:1,4,4:-1:-1:0,0,2:0:121\n",
			`0 calc 10us @0s-10us
1 send 4 to 1 tag 5 after 0 @10us-20us
2 recv 4 from -1 tag -1 after 1 @20us-21us
`},
		"null partners of MPICH": {
			begin + "MPI_Sendrecv:110:9:1:1,4,4:-1:5:9:1:1,4,4:-2:-1:1140850688,0,2:0:120\n" +
				"MPI_Recv:120:9:1:1,4,4:-1:-1:1140850688,0,2:0:121\nMPI_Irecv:121:9:1:1,4,4:-1:0:1140850688,0,2:8:122\n" +
				"MPI_Wait:122:8:0:123\n", `0 calc 10us @0s-10us
1 recv 4 from -1 tag -1 after 0 @10us-20us
`},
		"Sendrecv_replace": {
			begin + "MPI_Sendrecv_replace:100:9:3:1,4,4:1:5:0:6:0,0,2:0:120\n", `0 send 12 to 1 tag 5 @0s-20us
1 recv 12 from 0 tag 6 @0s-20us
`},
		"probes": {
			begin + "MPI_Probe:110:-1:7:0,0,2:0:130\nMPI_Get_count:130:9:1,4,4:9:131\n" +
				"MPI_Recv:131:9:1:1,4,4:1:7:0,0,2:0:133\nMPI_Probe:133:1:-1:0,0,2:0:140\nMPI_Probe:140:1:8:0,0,2:0:142\n" +
				"MPI_Barrier:142:0,0,2:143\nMPI_Irecv:143:9:1:1,4,4:1:8:0,0,2:800:144\nMPI_Wait:144:800:0:145\n",
			`0 calc 10us @0s-10us
1 calc 0s after 0 @10us-30us
2 calc 1us {"mpi":{"calls_ps":1000000}} after 1 @30us-31us
3 recv 4 from 1 tag 7 after 2 @31us-33us
4 calc 0s after 3 @33us-40us
5 calc 0s after 4 @40us-42us
6 coll barrier 0 after 5 @42us-43us
7 recv 4 from 1 tag 8 after 6 @43us-44us
8 calc 0s after 7 with 7 @44us-45us
`},
		"probes of SMPI": {
			"# uname: SMPI (SimGrid 3.32)\n" + begin + "MPI_Probe:100:1:7:0,0,2:0:400\n" +
				"MPI_Recv:400:9:1:1,4,4:1:7:0,0,2:0:401\n",
			`0 calc 100us {"mpi":{"calls_ps":100000000}} @0s-300us
1 recv 4 from 1 tag 7 after 0 @300us-301us
`},
		"probes without a receive": {
			begin + "MPI_Probe:110:1:7:0,0,2:0:130\nMPI_Recv:130:9:1:1,4,4:1:8:0,0,2:0:133\nMPI_Probe:133:-2:7:0,0,2:0:134\n" +
				"MPI_Recv:134:9:1:1,4,4:0:7:0,0,2:0:135\nMPI_Probe:0:1\n",
			`0 calc 10us @0s-10us
1 calc 20us {"mpi":{"calls_ps":20000000}} after 0 @10us-30us
2 recv 4 from 1 tag 8 after 1 @30us-33us
3 calc 1us {"mpi":{"calls_ps":1000000}} after 2 @33us-34us
4 recv 4 from 0 tag 7 after 3 @34us-35us
`},
		"a request that a test completes": {
			begin + "MPI_Irecv:100:9:1:1,4,4:1:5:0,0,2:800:101\nMPI_Test:111:800:0:0:112\nMPI_Test:121:800:0:0:122\n" +
				"MPI_Barrier:132:0,0,2:133\nMPI_Test:133:800:0:0:134\n" + end, `0 recv 4 from 1 tag 5 @0s-1us
1 calc 21us {"mpi":{"calls_ps":2000000}} with 0 @1us-22us
2 calc 10us after 1 @22us-32us
3 coll barrier 0 after 2 @32us-33us
4 calc 1us {"mpi":{"calls_ps":1000000}} after 3 @33us-34us
5 calc 866us after 4 after 0 @34us-900us
`},
		"the last test before the variable is used again": {
			begin + "MPI_Irecv:100:9:1:1,4,4:1:5:0,0,2:800:101\nMPI_Test:111:800:0:0:112\nMPI_Test:121:800:0:0:122\n" +
				"MPI_Irecv:132:9:1:1,4,4:1:6:0,0,2:800:133\nMPI_Wait:143:800:0:144\n", `0 recv 4 from 1 tag 5 @0s-1us
1 calc 21us {"mpi":{"calls_ps":2000000}} with 0 @1us-22us
2 calc 10us after 1 after 0 @22us-32us
3 recv 4 from 1 tag 6 after 2 @32us-33us
4 calc 10us with 3 @33us-43us
5 calc 0s after 4 after 3 @43us-44us
`},
		"Waitany until one is left": {
			begin + "MPI_Irecv:100:9:1:1,4,4:1:5:0,0,2:800:101\nMPI_Irecv:101:9:1:1,4,4:1:6:0,0,2:808:102\n" +
				"MPI_Waitany:112:2:800:0:0:122\nMPI_Waitany:132:2:800:0:0:142\n" + end, `0 recv 4 from 1 tag 5 @0s-1us
1 recv 4 from 1 tag 6 with 0 @1us-2us
2 calc 10us with 1 @2us-12us
3 calc 0s after 2 after 0 @12us-22us
4 calc 10us after 3 @22us-32us
5 calc 0s after 4 after 1 @32us-42us
6 calc 858us after 5 @42us-900us
`},
		"Waitsome with one request": {
			begin + "MPI_Irecv:100:9:1:1,4,4:1:5:0,0,2:804:101\nMPI_Waitsome:101:3:800:0:0:0:122\n",
			`0 recv 4 from 1 tag 5 @0s-1us
1 calc 0s after 0 with 0 @1us-22us
`},
		"requests of four bytes, some of them null": {
			begin + "MPI_Isend:100:9:1:1,4,4:1:5:0,0,2:800:100\nMPI_Isend:100:9:1:1,4,4:1:6:0,0,2:804:100\n" +
				"MPI_Isend:100:9:1:1,4,4:1:7:0,0,2:812:100\nMPI_Waitall:100:3:800:0:100\nMPI_Waitall:100:1000000:800:0:100\n",
			`0 send 4 to 1 tag 5 @0s-0s
1 send 4 to 1 tag 6 with 0 @0s-0s
2 send 4 to 1 tag 7 with 1 @0s-0s
3 calc 0s after 0 after 1 with 2 @0s-0s
4 calc 0s after 3 after 2 @0s-0s
`},
		"persistent requests": {
			begin + "MPI_Send_init:100:9:1:1,4,4:1:5:0,0,2:800:101\nMPI_Recv_init:100:9:1:1,4,4:1:5:0,0,2:808:101\n" +
				"MPI_Recv_init:100:9:1:1,4,4:-2:5:0,0,2:816:101\n" +
				"MPI_Startall:100:3:800:101\nMPI_Waitall:101:3:800:0:102\nMPI_Start:102:800:103\nMPI_Wait:103:800:0:104\n",
			`0 send 4 to 1 tag 5 {"mpi":{"persistent":true}} @0s-1us
1 recv 4 from 1 tag 5 with 0 @0s-1us
2 calc 0s after 0 after 1 with 1 @1us-2us
3 send 4 to 1 tag 5 {"mpi":{"persistent":true}} after 2 @2us-3us
4 calc 0s after 3 with 3 @3us-4us
`},
		"nonblocking collectives": {
			begin + "MPI_Ibarrier:100:0,0,2:800:101\nMPI_Iallgather:101:9:2:1,4,4:9:2:1,4,4:0,0,2:808:102\n" +
				"MPI_Waitall:102:2:800:0:103\n", `0 coll barrier 0 @0s-1us
1 coll allgather 8/16 with 0 @1us-2us
2 calc 0s after 0 after 1 with 1 @2us-3us
`},
		"nonblocking collectives of SMPI": {
			"# uname: SMPI (SimGrid 3.32)\n" + begin + "MPI_Irecv:100:9:1:1,4,4:1:5:0,0,2:800:100\n" +
				"MPI_Ibarrier:100:0,0,2:808:101\nMPI_Iallgather:101:9:2:1,4,4:9:2:1,4,4:0,0,2:816:102\n" +
				"MPI_Waitall:102:3:800:0:104\n" +
				"MPI_Ibarrier:104:0,0,2:808:105\nMPI_Ibarrier:105:0,0,2:816:106\nMPI_Waitall:107:3:800:0:108\n",
			`0 recv 4 from 1 tag 5 @0s-0s
1 coll barrier 0 with 0 @0s-1us
2 coll allgather 8/16 with 1 @1us-2us
3 calc 0s after 1 with 2 @2us-2us
4 calc 0s after 3 after 2 @2us-2us
5 calc 0s after 4 after 0 @2us-4us
6 coll barrier 0 after 5 @4us-5us
7 coll barrier 0 with 6 @5us-6us
8 calc 1us with 7 @6us-7us
9 calc 0s after 8 after 6 @7us-7us
10 calc 0s after 9 after 7 @7us-8us
`},
		"collectives": {
			begin + "MPI_Bcast:100:9:2:1,4,4:0:0,0,2:100\nMPI_Bcast:100:9:2:1,4,4:1:0,0,2:100\n" +
				"MPI_Reduce:100:8:9:2:1,4,4:3:0:0,0,2:100\nMPI_Scan:100:8:9:2:1,4,4:3:0,0,2:100\n" +
				"MPI_Gather:100:9:2:1,4,4:9:2:1,4,4:0:0,0,2:100\nMPI_Gather:100:1:-7:1,4,4:9:2:1,4,4:0:0,0,2:100\n" +
				"MPI_Gather:100:9:2:1,4,4:9:-7:1,4,4:1:0,0,2:100\n" +
				"MPI_Gatherv:100:9:3:1,4,4:9:77:3,5:78:0,3:1,4,4:0:0,0,2:100\n" +
				"MPI_Gatherv:100:9:3:1,4,4:9:77:-3,5:78:0,3:1,4,4:1:0,0,2:100\n" +
				"MPI_Scatter:100:9:2:1,4,4:9:2:1,4,4:0:0,0,2:100\nMPI_Scatter:100:9:2:1,4,4:9:2:1,4,4:1:0,0,2:100\n" +
				"MPI_Scatterv:100:9:77:3,5:78:0,3:1,4,4:9:3:1,4,4:0:0,0,2:100\n" +
				"MPI_Allgatherv:100:1:0:1,4,4:9:77:3,5:78:0,3:1,4,4:0,0,2:100\n" +
				"MPI_Alltoall:100:9:2:1,4,4:9:2:1,4,4:0,0,2:100\n" +
				"MPI_Alltoallv:100:9:76:1,1:77:0,1:1,4,4:9:78:4,4:79:0,4:1,4,4:0,0,2:100\n" +
				"MPI_Reduce_scatter:100:8:9:77:3,5:1,4,4:3:0,0,2:100\nMPI_Reduce_scatter_block:100:8:9:3:1,4,4:3:0,0,2:100\n",
			`0 coll bcast 8 root 0 @0s-0s
1 coll bcast 0/8 root 1 after 0 @0s-0s
2 coll reduce 8/8 root 0 {"element":4} after 1 @0s-0s
3 coll scan 8 after 2 @0s-0s
4 coll gather 8/16 root 0 after 3 @0s-0s
5 coll gather 8/16 root 0 after 4 @0s-0s
6 coll gather 8 root 1 after 5 @0s-0s
7 coll gatherv 12/32 root 0 after 6 @0s-0s
8 coll gatherv 12 root 1 after 7 @0s-0s
9 coll scatter 16/8 root 0 after 8 @0s-0s
10 coll scatter 0/8 root 1 after 9 @0s-0s
11 coll scatterv 32/12 root 0 after 10 @0s-0s
12 coll allgatherv 12/32 {"element":4} after 11 @0s-0s
13 coll alltoall 16/16 after 12 @0s-0s
14 coll alltoallv 8/32 after 13 @0s-0s
15 coll reducescatter 32/12 {"element":4} after 14 @0s-0s
16 coll reducescatter 24/12 {"element":4} after 15 @0s-0s
`},
		"collectives in place": {
			begin + "MPI_Allgather:100:18446744073709551394:0:0,0,0:9:2:1,4,4:0,0,2:100\n" +
				"MPI_Allgatherv:100:140737488355328:0:0,0,0:9:77:3,5:78:0,3:1,4,4:0,0,2:100\n" +
				"MPI_Gather:100:18446744073709551394:0:0,0,0:9:2:1,4,4:0:0,0,2:100\n" +
				"MPI_Gatherv:100:140737488355328:0:0,0,0:9:77:3,5:78:0,3:1,4,4:0:0,0,2:100\n" +
				"MPI_Scatter:100:9:2:1,4,4:140737488355328:0:0,0,0:0:0,0,2:100\n" +
				"MPI_Scatterv:100:9:77:3,5:78:0,3:1,4,4:18446744073709551394:0:0,0,0:0:0,0,2:100\n" +
				"MPI_Alltoall:100:140737488355328:0:0,0,0:9:2:1,4,4:0,0,2:100\n" +
				"MPI_Alltoallv:100:18446744073709551394:76:7,7:77:0,1:0,0,0:9:78:4,4:79:0,4:1,4,4:0,0,2:100\n",
			`0 coll allgather 8/16 @0s-0s
1 coll allgatherv 12/32 {"element":4} after 0 @0s-0s
2 coll gather 8/16 root 0 after 1 @0s-0s
3 coll gatherv 12/32 root 0 after 2 @0s-0s
4 coll scatter 16/8 root 0 after 3 @0s-0s
5 coll scatterv 32/12 root 0 after 4 @0s-0s
6 coll alltoall 16/16 after 5 @0s-0s
7 coll alltoallv 32/32 after 6 @0s-0s
`},
		"liballprof2": {
			"MPI_Init:0.00:0x7ffe:0x7fff:100.00  # backtrace [0x40:  (main+0x10) <- ]\n" +
				"MPI_Send:101.25:0x55:2:1275069445:1:7:1140850688:102.50  # backtrace [0x40:  (main+0x10) <- ]\n" +
				"MPI_Alltoallv:102.50:0x55:0x56,2[1;1;]:0x57,2[0;1;]:1275069445:0x58:0x59,2[4;4;]:0x5a,2[0;4;]:1275069445:" +
				"1140850688:103.00\nMPI_Finalize:103.00:0.00\n", `0 calc 1.25us @0s-1.25us
1 send 8 to 1 tag 7 after 0 @1.25us-2.5us
2 coll alltoallv 8/32 after 1 @2.5us-3us
`},
	} {
		t.Run(name, func(t *testing.T) {
			trace := mustRead(t, c.text, "# nothing\n")
			if got := list(trace.Ranks[0]); got != c.want {
				t.Errorf("read\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// TestWaitsomeOfSMPI checks that calls of MPI_Waitsome which tested requests keep their time, with a warning.
func TestWaitsomeOfSMPI(t *testing.T) {
	text := "# uname: SMPI (SimGrid 3.32)\n" + begin + "MPI_Irecv:100:9:1:1,4,4:1:5:0,0,2:800:101\n" +
		"MPI_Irecv:101:9:1:1,4,4:1:6:0,0,2:808:101\nMPI_Waitsome:101:2:800:0:0:0:204\n" +
		"MPI_Waitsome:204:2:800:0:0:0:210\nMPI_Finalize:306:-\n"
	trace, warnings, err := readTexts(format.ReadOptions{}, text, begin+"MPI_Finalize:306:-\n")
	const share = "(once in all, 25 % of the time of the ranks)"
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], share) {
		t.Fatalf("warnings %q (%v), expected one with %q", warnings, err, share)
	}
	const want = `0 recv 4 from 1 tag 5 @0s-1us
1 recv 4 from 1 tag 6 with 0 @1us-1us
2 calc 103us {"mpi":{"calls_ps":103000000}} with 1 @1us-104us
3 calc 96us after 2 after 0 after 1 @110us-206us
`
	if got := list(trace.Ranks[0]); got != want {
		t.Errorf("read\n%s, want\n%s", got, want)
	}
}

// TestWaitany checks which request each call of MPI_Waitany completes on rank 0.
func TestWaitany(t *testing.T) {
	recv := func(start int, from, tag, variable int) string {
		return fmt.Sprintf("MPI_Irecv:%d:9:1:1,4,4:%d:%d:0,0,3:%d:%d\n", start, from, tag, variable, start+1)
	}
	send := func(start, bytes, tag, variable int) string {
		return fmt.Sprintf("MPI_Isend:%d:9:%d:1,1,1:1:%d:0,0,3:%d:%d\n", start, bytes, tag, variable, start+1)
	}
	anyOf := func(start int) string { return fmt.Sprintf("MPI_Waitany:%d:3:800:0:0:%d\n", start, start+1) }
	const smpi = "# uname: SMPI (SimGrid 3.32)\n"
	partner := func(rank, sent, tag int) string {
		return fmt.Sprintf("MPI_Init:-:1:2:100\nMPI_Recv:%d:9:1:1,4,4:0:9:0,%d,3:%d\n"+
			"MPI_Send:%d:9:1:1,4,4:0:%d:0,%d,3:%d\n", sent, rank, sent+1, sent+1, tag, rank, sent+2)
	}
	for name, test := range map[string]struct{ text, want string }{
		"the message sent first": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + anyOf(110) + anyOf(120), "1 0",
		},
		"as many calls as requests, then none": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + anyOf(110) + anyOf(120) + anyOf(130), "1 0",
		},
		"a variable that is used again": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + anyOf(110) + recv(115, 1, 6, 800) + anyOf(120) + anyOf(130),
			"0 1 2",
		},
		"both variables are used again": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + anyOf(110) + anyOf(120) + recv(125, 1, 6, 800) +
				recv(126, 2, 6, 808) + anyOf(130) + anyOf(135), "1 0 2 3",
		},
		"another call completes the rest": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + anyOf(110) + "MPI_Waitall:130:2:800:0:131\n", "1 0",
		},
		"another call completes a request": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + send(103, 4, 7, 816) + anyOf(110) +
				"MPI_Wait:120:800:0:121\n" + anyOf(130), "2 0 1",
		},
		"fewer calls than variables that are used again": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + anyOf(110) + recv(125, 1, 6, 800) +
				recv(126, 2, 6, 808), "0,1",
		},
		"a small send of SMPI is complete at once": {
			smpi + begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + send(200, 4, 9, 816) + anyOf(210) + anyOf(220) +
				anyOf(230), "2 1 0",
		},
		"a small send of another library ends with its call": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + send(200, 4, 9, 816) + anyOf(210) + anyOf(220) +
				anyOf(230), "1 0 2",
		},
		"receives and large sends": {
			begin + recv(101, 1, 5, 800) + recv(102, 2, 5, 808) + send(200, 1<<20, 9, 816) + anyOf(210) + anyOf(220) +
				anyOf(230) + "MPI_Send:231:9:1:1,4,4:1:5:0,0,3:232\n", "0,1,2",
		},
	} {
		trace, _, err := readTexts(format.ReadOptions{}, test.text, partner(1, 110, 5), partner(2, 105, 5))
		if err != nil {
			t.Fatal(name, err)
		}
		r := trace.Ranks[0]
		messages := map[int]int{} // op to number
		var got []string
		for i, kind := range r.Kind {
			if kind != dag.Calc {
				messages[i] = len(messages)
			}
			var ends []string
			for _, off := range r.Deps.Of(i) {
				if k, ok := messages[i-int(off)]; ok {
					ends = append(ends, strconv.Itoa(k))
				}
			}
			if len(ends) > 0 {
				got = append(got, strings.Join(ends, ","))
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: calls complete %q, expected %q\n%s", name, strings.Join(got, " "), test.want, list(r))
		}
	}
}

// Communicators are found.
func TestCommunicators(t *testing.T) {
	members := func(t *testing.T, trace *dag.Trace) string {
		var all []string
		for _, c := range trace.Comms[1:] {
			all = append(all, fmt.Sprint(c.Members()))
		}
		return strings.Join(all, " ")
	}
	each := func(ranks int, text func(rank int) string) (texts []string) {
		for rank := range ranks {
			texts = append(texts, text(rank))
		}
		return texts
	}
	barrier := func(handle, rank, size int) string {
		return fmt.Sprintf("MPI_Barrier:1:%d,%d,%d:1\n", handle, rank, size)
	}
	// grid splits four ranks into rows and columns; the ranks on the diagonal cannot tell them apart by rank and size.
	grid := func(use func(rank, row, column int) string) []string {
		return each(4, func(rank int) string {
			row, column := rank/2, rank%2
			return fmt.Sprintf("MPI_Comm_split:1:0,%d,4:%d:%d:77:1\nMPI_Comm_split:1:0,%d,4:%d:%d:88:1\n", rank, row, rank, rank,
				column, rank) + use(rank, row, column)
		})
	}
	for name, c := range map[string]struct {
		texts []string
		want  string
	}{
		"the world": {each(3, func(rank int) string { return barrier(7+rank, rank, 3) }), ""},
		"a duplicate": {each(3, func(rank int) string {
			return fmt.Sprintf("MPI_Comm_dup:1:0,%d,3:77:1\n", rank) + barrier(5, rank, 3) + barrier(0, rank, 3)
		}), "[0 1 2]"},
		"a split with keys": {each(4, func(rank int) string {
			return fmt.Sprintf("MPI_Comm_split:1:0,%d,4:%d:%d:77:1\n", rank, rank%2, -rank) + barrier(5+rank, 1-rank/2, 2)
		}), "[2 0] [3 1]"},
		"split without some": {each(4, func(rank int) string {
			if rank == 1 {
				return "MPI_Comm_split:1:0,1,4:-32766:0:77:1\n"
			}
			return fmt.Sprintf("MPI_Comm_split:1:0,%d,4:7:0:77:1\n", rank) + barrier(5, max(0, rank-1), 3)
		}), "[0 2 3]"},
		"rows and columns": {grid(func(rank, row, column int) string {
			return barrier(5, column, 2) + barrier(6, row, 2)
		}), "[0 1] [0 2] [1 3] [2 3]"},
		"columns first": {grid(func(rank, row, column int) string {
			return barrier(6, row, 2) + barrier(5, column, 2)
		}), "[0 2] [0 1] [1 3] [2 3]"},
		"a handle used again": {each(2, func(rank int) string {
			return fmt.Sprintf("MPI_Comm_split:1:0,%d,2:0:0:77:1\n", rank) + barrier(5, rank, 2) + "MPI_Comm_free:1:77:1\n" +
				fmt.Sprintf("MPI_Comm_split:1:0,%d,2:0:%d:77:1\n", rank, -rank) + barrier(5, 1-rank, 2)
		}), "[0 1] [1 0]"},
		"a split of a split": {each(4, func(rank int) string {
			return fmt.Sprintf("MPI_Comm_split:1:0,%d,4:%d:0:77:1\n", rank, rank/2) +
				fmt.Sprintf("MPI_Comm_split:1:5,%d,2:0:%d:88:1\n", rank%2, -rank) + barrier(6, 1-rank%2, 2)
		}), "[1 0] [3 2]"},
		"itself": {each(2, func(rank int) string { return barrier(0, rank, 2) + barrier(1, 0, 1) }), "[0] [1]"},
		"one that only its handle shows": {each(4, func(rank int) string {
			text := barrier(0, rank, 4) + fmt.Sprintf("MPI_Cart_sub:1:0,%d,4:9:77:1\n", rank)
			if rank > 0 {
				text += barrier(5, rank-1, 3)
			}
			return text
		}), "[1 2 3]"},
	} {
		t.Run(name, func(t *testing.T) {
			trace := mustRead(t, c.texts...)
			if got := members(t, trace); got != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
			for _, problem := range dag.Validate(trace) {
				t.Errorf("unsound: %v", problem)
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		texts := each(4, func(rank int) string {
			return "MPI_Barrier:9:0,0,4:9\n" + fmt.Sprintf("MPI_Send:10:9:1:1,4,4:%d:5:5,%d,2:11\n", 1-rank%2, rank%2)
		})
		_, _, err := readTexts(format.ReadOptions{}, texts...)
		if err == nil || !strings.Contains(err.Error(), "x-0.txt:2: call: expected supported calls only") ||
			!strings.Contains(err.Error(), "calls on communicators of 2 ranks that the trace does not identify (4 times)") {
			t.Errorf("error %v", err)
		}
		trace, warnings, err := readTexts(format.ReadOptions{Lenient: true}, texts...)
		if err != nil || len(warnings) != 2 || !strings.Contains(warnings[0], "x-0.txt:2: skipped: calls on") {
			t.Fatalf("error %v, warnings %q", err, warnings)
		}
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Errorf("unsound: %v", problems)
		}
	})
}

// Errors name the line. Lenient mode skips those that allow it.
func TestErrors(t *testing.T) {
	const leftOut = "call: expected supported calls only (--lenient skips others), found "
	for _, c := range []struct{ text, want string }{
		{"hello\n", `1: line: expected a comment or a call of MPI, such as MPI_Send:START:...:END, found "hello"`},
		{"MPI_Barrier\n", `1: line: expected a comment or a call`},
		{"MPI_Barrier:1\n", `1: line: expected ":" and another field in MPI_Barrier, found ""`},
		{"MPI_Barrier:1:0,0,2\n", `1: line: expected ":" and the time of the end in MPI_Barrier`},
		{"MPI_Barrier:1:0,0,2:\n", `1: line: expected a time in microseconds in MPI_Barrier`},
		{"MPI_Barrier:1:0,0,2:3x\n", `1: line: expected the end of the line in MPI_Barrier, found "x"`},
		{"MPI_Barrier:-:0,0,2:3\n", `1: line: expected the times of the start and of the end, found "-"`},
		{
			"MPI_Barrier:1:0,2,2:3\n",
			`1: line: expected a rank in a communicator, and its size in MPI_Barrier, found "2,2:3"`,
		},
		{
			"MPI_Barrier:1:0,0,3:3\n",
			`1: files: expected a file for each of the 3 ranks of a communicator, found no file of rank 2`,
		},
		{"MPI_Barrier:1:0,0:3\n", `1: line: expected "," and the size of the communicator`},
		{
			"MPI_Barrier:1:5:3\n",
			`1: call: expected a communicator as HANDLE,RANK,SIZE, found only the handle 5, as liballprof2`,
		},
		{"MPI_Bcast:1:9:-1:1,4,4:0:0,0,2:3\n", `1: value: expected a count of 0 or more, found -1`},
		{"MPI_Bcast:1:9:1:1,-4,4:0:0,0,2:3\n", `1: value: expected a datatype of 0 bytes or more, found -4`},
		{"MPI_Bcast:1:9:1:7:0:0,0,2:3\n", `1: call: expected a datatype as CODE,SIZE,EXTENT, found only a handle`},
		{"MPI_Bcast:1:9:1:1,4,4:2:0,0,2:3\n", `1: value: expected a root in 0..1, found 2`},
		{"MPI_Bcast:1:9:9e9:1,4,4:0:0,0,2:3\n", `1: line: expected ":" and another field`},
		{
			"MPI_Send:1:9:9223372036854775807:1,2,4:1:0:0,0,2:3\n",
			`1: value: expected a size of 63 bits, found 9223372036854775807 times 2 bytes`,
		},
		{"MPI_Send:1:9:99999999999999999999:1,2,4:1:0:0,0,2:3\n", `1: line: expected a whole number below 2^64`},
		{
			"MPI_Send:1:9:1:1,4,4:2:0:0,0,2:3\n",
			`1: value: expected a partner in 0..1, MPI_ANY_SOURCE or MPI_PROC_NULL, found 2`,
		},
		{"MPI_Send:1:9:1:1,4,4:1:-1:0,0,2:3\n", `1: value: expected a tag, found -1`},
		{"MPI_Recv:1:9:1:1,4,4:1:-2:0,0,2:0:3\n", `1: value: expected a tag, found -2`},
		{"MPI_Waitall:1:-1:800:0:3\n", `1: value: expected a number of requests`},
		{
			"MPI_Barrier:1:0,0,2:99999999999999\n",
			`1: value: expected a time within 50 days of the first time of the file, found 99999999999999 us`,
		},
		{
			"MPI_Allgatherv:1:9:1:1,4,4:9:7:1,2,3:8:0,1,2:1,4,4:0,0,2:3\n",
			`1: value: expected 2 counts, one for each member of the communicator, found 3`,
		},
		{
			"MPI_Allgatherv:1:9:1:1,4,4:9:7:1,-2:8:0,1:1,4,4:0,0,2:3\n",
			`1: value: expected counts of 0 or more, with a sum of 63 bits, found "1,-2"`,
		},
		{"# clockdiff: soon\n", `1: value: expected a difference of clocks in seconds, found "soon"`},
		{
			"\n\nMPI_Put:1:2:3\nMPI_Put:1:2:3\nMPI_Win_fence:1:0:2\nMPI_Finalize:9:-\nMPI_Barrier:10:0,0,2:11\n",
			"3: " + leftOut + `MPI_Put, an unknown function (2 times), MPI_Win_fence, an unknown function (once), ` +
				`calls after MPI_Finalize (once)`,
		},
		{
			"MPI_Alltoallw:1:9:76:1:77:0:78:9:9:76:1:77:0:78:9:0,0,2:2\nmpi_ialltoallw_:2:9:3\n", "1: " + leftOut +
				"MPI_Alltoallw, whose trace does not have the sizes of its datatypes (once), " +
				"mpi_ialltoallw_, whose trace does not have the sizes of its datatypes (once)",
		},
		{"MPI_Start:1:800:2\n", "1: " + leftOut + `starts of requests that were not prepared (once)`},
		{
			"MPI_Send:1:0x9:2:1275069445:1:7:0:2\nMPI_Wait:2:738197504:0:3\n",
			"2: " + leftOut + `MPI_Wait of liballprof2, which omits the requests (once)`,
		},
	} {
		text, want := c.text, "x-0.txt:"+c.want
		_, _, err := readTexts(format.ReadOptions{}, text, "")
		var syntax *format.SyntaxError
		if err == nil || !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
		trace, warnings, err := readTexts(format.ReadOptions{Lenient: true}, text+"MPI_Send:5:9:1:1,4,4:1:7:0,0,2:6\n", "")
		if err != nil || len(warnings) == 0 || !strings.HasPrefix(warnings[0], "x-0.txt:") {
			t.Errorf("%.40q, lenient: error %v, warnings %q", text, err, warnings)
			continue
		}
		if r := trace.Ranks[0]; !strings.Contains(text, "Finalize") && (r.Len() == 0 || r.Kind[r.Len()-1] != dag.Send) {
			t.Errorf("%.40q, lenient: the next line is lost, too:\n%s", text, list(r))
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"MPI_Barrier:110:0,0,1:120\nMPI_Barrier:115:0,0,1:130\n", "x-0.txt:3: a call starts before the end of " +
			"the previous one, or ends before its start; its gap counts as 0 (once in all)"},
		{"MPI_Barrier:110:0,0,1:105\nMPI_Barrier:120:0,0,1:130\n", "x-0.txt:2: a call starts before"},
		{"MPI_Isend:110:9:1:1,4,4:0:7:0,0,1:8:120\n", "x-0.txt:2: a request is never completed (once in all)"},
	} {
		trace, warnings, err := readTexts(format.ReadOptions{}, begin+c.text)
		if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], c.want) {
			t.Errorf("%q: error %v, warnings %q, want %q", c.text, err, warnings, c.want)
			continue
		}
		for _, d := range trace.Ranks[0].Duration {
			if d < 0 {
				t.Errorf("%q: a calc of %v", c.text, d)
			}
		}
	}
}

// Measured times of all ranks are on the clock of rank 0.
func TestClocks(t *testing.T) {
	file := func(head string, start int) string {
		return fmt.Sprintf("%sMPI_Init:-:1:2:%d\nMPI_Finalize:%d:-\n", head, start, start+10)
	}
	starts := func(texts ...string) (all []dag.Time, warnings []string) {
		trace, warnings, err := readTexts(format.ReadOptions{}, texts...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range trace.Ranks {
			all = append(all, trace.Ranks[i].MeasuredStart[0])
		}
		return all, warnings
	}
	got, _ := starts(file("", 1000), file("# clockdiff: 0.000050 s (relative to rank 0)\n", 900),
		file("# Init clockdiff: -1.5\n", 1600000))
	want := []dag.Time{50 * dag.Microsecond, 0, (1600000 - 1500000 - 950) * dag.Microsecond}
	if !slices.Equal(got, want) {
		t.Errorf("the ranks start at %v, want %v", got, want)
	}
	got, warnings := starts(file("", 1000), file("", 1<<50))
	if !slices.Equal(got, []dag.Time{0, 0}) || len(warnings) != 1 ||
		!strings.Contains(warnings[0], "its clock differs by 1125899906 s") {
		t.Errorf("the ranks start at %v, warnings %q", got, warnings)
	}
}

// The differences of clocks that the tracer measured are not used if messages would be received before they are sent.
func TestClocksOfMessages(t *testing.T) {
	const comm = "0,%d,2"
	file := func(head string, rank int, call string) string {
		return head + "MPI_Init:-:1:2:1000\n" + strings.ReplaceAll(call, "COMM", fmt.Sprintf(comm, rank)) +
			"MPI_Finalize:1400:-\n"
	}
	send := file("", 0, "MPI_Send:1100:1:8:1,1:1:0:COMM:1101\n")
	for name, receive := range map[string]string{
		"blocking": "MPI_Recv:1050:1:8:1,1:0:0:COMM:0:1120\n",
		"waited":   "MPI_Irecv:1050:1:8:1,1:0:0:COMM:8:1050\nMPI_Wait:1060:8:0:1120\n",
	} {
		for _, c := range []struct {
			difference string
			start      dag.Time
			warning    string
		}{
			{"-0.000010", -10 * dag.Microsecond, ""},
			{"-0.000100", 0, "with them, a message is received 80us before it is sent, without them 0s"},
		} {
			trace, warnings, err := readTexts(format.ReadOptions{}, send,
				file("# clockdiff: "+c.difference+" s (relative to rank 0)\n", 1, receive))
			if err != nil {
				t.Fatal(err)
			}
			start := trace.Ranks[1].MeasuredStart[0] - trace.Ranks[0].MeasuredStart[0]
			text := strings.Join(warnings, "\n")
			if start != c.start || !strings.Contains(text, c.warning) || (c.warning == "") != (text == "") {
				t.Errorf("%s, %s: rank 1 starts at %v, warnings %q", name, c.difference, start, warnings)
			}
		}
	}
}

// The trace is the same on any number of processors.
func TestDeterminism(t *testing.T) {
	var texts []string
	for rank := range 4 {
		texts = append(texts, string(program(rank, 200)))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	first := binary(t, withoutCollectives(mustRead(t, texts...)))
	runtime.GOMAXPROCS(8)
	for range 3 {
		if !bytes.Equal(first, binary(t, withoutCollectives(mustRead(t, texts...)))) {
			t.Fatal("the trace depends on GOMAXPROCS")
		}
	}
}

// withoutCollectives makes the collectives of a trace calcs, which GOAL can hold.
func withoutCollectives(trace *dag.Trace) *dag.Trace {
	for i := range trace.Ranks {
		r := trace.Ranks[i]
		for op, kind := range r.Kind {
			if kind == dag.Coll {
				r.Kind[op] = dag.Calc
			}
		}
	}
	return trace
}

func TestDetect(t *testing.T) {
	for head, want := range map[string]bool{
		"# htor's PMPI Tracer 0.9 Output File\n": true,
		"# collprof 0.9 output file\n# Sat":      true,
		"# own\n\nMPI_Init:-:1:2:3\n":            true,
		"MPI_Init:-":                             true,
		"mpi_init_:-:4\r\n":                      true,
		"# own\n":                                false,
		"MPI_: x":                                false,
		"MPI_Init\n":                             false,
		"MPI Init:\n":                            false,
		"num_ranks 2\n\nrank 0 {\nMPI_Init: calc 5\n": false,
	} {
		if got := detect([]byte(head)); got != want {
			t.Errorf("%q: %v, want %v", head, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, c := range []struct {
		name, folder, want, err string
	}{
		{"", "x-2.txt x-0.txt README x-1.txt", "x-0.txt x-1.txt x-2.txt", ""},
		{"", "x-02.txt.gz x-00.txt x-01.txt.zst x-10.txt", "x-00.txt x-01.txt.zst x-02.txt.gz x-10.txt", ""},
		{"", "README notes.txt", "", ""},
		{"", "x-0.txt y-0.txt", "", "expected one trace in the folder, found x-*.txt and y-*.txt"},
		{"x-0.txt", "x-0.txt y-0.txt x-1.txt x-1.dat", "x-0.txt x-1.txt", ""},
		{"x-00.txt.gz", "x-00.txt.gz y-0.txt x-01.txt.gz", "x-00.txt.gz x-01.txt.gz", ""},
		{"lap2-trace-rank-0-of-2.txt", "lap2-trace-rank-0-of-2.txt lap2-trace-rank-1-of-2.txt other-0-of-2.txt",
			"lap2-trace-rank-0-of-2.txt lap2-trace-rank-1-of-2.txt", ""},
		{"x-1.txt", "x-0.txt x-1.txt", "x-1.txt", ""},
		{"trace", "x-0.txt trace", "trace", ""},
	} {
		got, err := files(c.name, strings.Fields(c.folder))
		if strings.Join(got, " ") != c.want || (c.err == "") != (err == nil) ||
			err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%q of %q: %q, error %v; want %q, %q", c.name, c.folder, got, err, c.want, c.err)
		}
	}
}

func TestMissingFiles(t *testing.T) {
	for names, want := range map[string]string{
		"x-0.txt x-2.txt":         "x-0.txt: files: the file of rank 1 is missing",
		"x-1.txt":                 "x-1.txt: files: the file of rank 0 is missing",
		"x-0.txt x-00.txt":        "x-00.txt: files: expected one file of rank 0, found also x-0.txt",
		"x-0.txt y.txt":           "y.txt: files: expected a file name with a rank number",
		"x-0.txt x-2147483647.gz": "x-0.txt: files: the file of rank 1 is missing",
	} {
		var inputs []*format.Input
		for _, name := range strings.Fields(names) {
			inputs = append(inputs, &format.Input{Name: name, Reader: strings.NewReader("")})
		}
		if _, err := read(inputs, format.ReadOptions{Warn: t.Logf}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", names, err, want)
		}
	}
	stdin := []*format.Input{{Name: "<stdin>", Reader: strings.NewReader(begin)}}
	if _, err := read(stdin, format.ReadOptions{Warn: t.Logf}); err != nil {
		t.Errorf("one file of any name: %v", err)
	}
}

// TestForeignFiles checks that files of another run are named, unless the trace does not show that they are.
func TestForeignFiles(t *testing.T) {
	barrier := func(handle, rank, size int) string {
		return fmt.Sprintf(begin+"MPI_Barrier:9:%d,%d,%d:9\n", handle, rank, size)
	}
	const two, one, calls = "x-2.txt: files: expected 2 files", "x-2.txt: files: expected files of one run",
		"x-0.txt:2: call: expected supported calls"
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{[]string{barrier(0, 0, 2), barrier(0, 1, 2), barrier(0, 1, 2)}, two},
		{[]string{barrier(7, 0, 2), barrier(8, 1, 2), begin}, two},
		{[]string{barrier(7, 0, 2), barrier(8, 1, 2), "", ""}, two},
		{[]string{barrier(7, 0, 2), barrier(8, 1, 2), barrier(9, 2, 4), begin}, one},
		{[]string{barrier(7, 1, 2), barrier(7, 1, 2), barrier(9, 1, 3), ""}, calls},
		{[]string{barrier(7, 0, 3), barrier(8, 1, 3), ""}, ""},
		{[]string{begin, begin}, ""},
	} {
		_, _, err := readTexts(format.ReadOptions{}, c.texts...)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: error %v, expected %q", c.texts, err, c.want)
		}
	}
	lenient := format.ReadOptions{Lenient: true}
	if _, _, err := readTexts(lenient, barrier(7, 0, 2), barrier(8, 1, 2), begin); err != nil {
		t.Errorf("lenient: %v", err)
	}
}

// TestSteps checks that MPI_Pcontrol begins a step, on each rank for itself.
func TestSteps(t *testing.T) {
	const barrier = "MPI_Barrier:%d:0,%d,2:%d\n"
	text := func(rank int, marks ...string) (text string) {
		text = "MPI_Init:-:1:2:100\n"
		for i, mark := range marks {
			text += mark + fmt.Sprintf(barrier, 110+20*i, rank, 120+20*i)
		}
		return text
	}
	trace := mustRead(t, text(0, "", "MPI_Pcontrol:125:1:126\n", "", "mpi_pcontrol_:165:0:166\n"), text(1, "", "", "", ""))
	for rank, want := range [][]int32{{0, 0, 1, 1, 1, 1, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 0}} {
		r := trace.Ranks[rank]
		for i := range r.Len() {
			if got := r.Step.At(i); i >= len(want) || got != want[i] {
				t.Errorf("rank %d: op %d of %d has step %d, expected %v", rank, i, r.Len(), got, want)
			}
		}
	}
	if trace.Steps != 2 {
		t.Errorf("%d steps, expected 2", trace.Steps)
	}
}

// TestWorseClocks checks that measured times use the clock differences of the tracer, unless a rank would leave an
// allreduce before another one enters it.
func TestWorseClocks(t *testing.T) {
	for difference, want := range map[string]dag.Time{"0.000004": 4 * dag.Microsecond, "0.000009": 0} {
		var warnings []string
		var inputs []*format.Input
		for rank, clock := range []string{"0.000000", difference} {
			inputs = append(inputs, &format.Input{Name: fmt.Sprintf("pmpi-trace-rank-%d.txt", rank),
				Reader: strings.NewReader("# clockdiff: " + clock + " s (relative to rank 0)\n" +
					"MPI_Init:-:1:2:100\n" + fmt.Sprintf("MPI_Barrier:101:0,%d,2:106\n", rank) + end)})
		}
		trace, err := Format.Read(inputs, format.ReadOptions{Warn: func(text string, args ...any) {
			warnings = append(warnings, fmt.Sprintf(text, args...))
		}})
		if err != nil {
			t.Fatal(err)
		}
		start, _ := trace.Ranks[1].Measured(0)
		if first, _ := trace.Ranks[0].Measured(0); start-first != want {
			t.Errorf("difference of %s s: rank 1 starts %v after rank 0, expected %v", difference, start-first, want)
		}
		if worse := want == 0; worse != (len(warnings) == 1 && strings.Contains(warnings[0],
			"enters it 4us after another one has left it, without them 0s")) {
			t.Errorf("difference of %s s: warnings %q", difference, warnings)
		}
	}
}

// TestCallTime checks the time of calls that become no op in each gap: of a split, of another local call, and of tests,
// the last of which completes a receive.
func TestCallTime(t *testing.T) {
	const end = "MPI_Finalize:150:-\n"
	trace, _, err := readTexts(format.ReadOptions{},
		"MPI_Init:-:1:2:100\n"+
			"MPI_Comm_split:103:0,0,2:0:0:77:110\n"+
			"MPI_Irecv:115:9:8:1,1,1:1:7:0,0,2:8:116\n"+
			"MPI_Test:120:8:0:0:124\n"+
			"MPI_Get_count:125:0:0,1,1:0:127\n"+
			"MPI_Test:130:8:0:0:131\n"+
			"MPI_Send:140:9:8:1,1,1:1:7:0,0,2:141\n"+end,
		"MPI_Init:-:1:2:100\n"+
			"MPI_Comm_split:103:0,1,2:0:0:77:110\n"+
			"MPI_Sendrecv:115:9:8:1,1,1:0:7:9:8:1,1,1:0:7:0,1,2:0:116\n"+end)
	if err != nil {
		t.Fatal(err)
	}
	type calc struct{ all, calls dag.Time }
	var got []calc
	r := trace.Ranks[0]
	for i, kind := range r.Kind {
		if kind == dag.Calc {
			got = append(got, calc{r.CalcTime(i), dag.Time(attr.ParseCallTime(r.Attrs.At(i)))})
		}
	}
	const us = dag.Microsecond
	if want := []calc{{15 * us, 7 * us}, {15 * us, 7 * us}, {9 * us, 0}, {9 * us, 0}}; !slices.Equal(got, want) {
		t.Errorf("calcs %v, expected %v", got, want)
	}
	if offsets := r.Deps.Of(3); !slices.Contains(offsets, 2) {
		t.Errorf("the op after the tests waits for ops at the offsets %v, expected the receive, 2", offsets)
	}
}

// TestClosingGap checks that the time before MPI_Finalize is computation unless the tracer may have measured clocks
// there on all ranks.
func TestClosingGap(t *testing.T) {
	text := func(gap int) string {
		return fmt.Sprintf("MPI_Init:-:1:2:100\nMPI_Barrier:100:0,0,1:150\n# Finalize clockdiff: 0.0\n"+
			"MPI_Finalize:%d:-\n", 150+gap)
	}
	for _, c := range []struct {
		gaps []int // microseconds
		ops  int
	}{{[]int{20, 30}, 1}, {[]int{20, 0}, 2}, {[]int{0, 0}, 1}, {[]int{20}, 1}} {
		var texts []string
		for _, gap := range c.gaps {
			texts = append(texts, text(gap))
		}
		trace, _, err := readTexts(format.ReadOptions{}, texts...)
		if err != nil {
			t.Fatal(err)
		}
		if r := trace.Ranks[0]; r.Len() != c.ops || c.ops == 2 && r.CalcTime(1) != 20*dag.Microsecond {
			t.Errorf("gaps %v: ops\n%s", c.gaps, list(r))
		}
	}
}
