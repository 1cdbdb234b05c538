package mpi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// TestIndirectHandles: MPICH's any source is -2 also on a communicator of the kind that it makes when it has run out of
// others, as a signed or an unsigned number.
func TestIndirectHandles(t *testing.T) {
	for _, handle := range []string{"3288334336", "-1006632960", "2214592513", "1140850688"} {
		file := func(rank int, call string) string {
			return fmt.Sprintf("MPI_Init:-:1:2:0\nMPI_Comm_dup:1:1140850688,%d,2:900:1\n", rank) + call +
				fmt.Sprintf("MPI_Barrier:9:1140850688,%d,2:9\nMPI_Finalize:9:-\n", rank)
		}
		trace := mustRead(t, file(0, "MPI_Send:2:9:4:1,4,4:1:5:"+handle+",0,2:3\n"),
			file(1, "MPI_Recv:2:9:4:1,4,4:-2:5:"+handle+",1,2:0:3\n"))
		found := false
		for i, kind := range trace.Ranks[1].Kind {
			found = found || kind == dag.Recv && trace.Ranks[1].Peer.At(i) == dag.AnySource
		}
		if !found {
			t.Errorf("handle %s: no receive from any source:\n%s", handle, list(trace.Ranks[1]))
		}
	}
}

// TestRequestsOfNoProcess: requests of messages to no process count for how far apart requests are.
func TestRequestsOfNoProcess(t *testing.T) {
	const comm = "1140850688,0,2"
	trace := mustRead(t, "MPI_Init:-:1:2:0\n"+
		"MPI_Irecv:1:9:4:1,4,4:1:5:"+comm+":5000:1\nMPI_Irecv:1:9:4:1,4,4:-1:5:"+comm+":5004:1\n"+
		"MPI_Isend:1:9:4:1,4,4:1:5:"+comm+":5008:1\nMPI_Isend:1:9:4:1,4,4:-1:5:"+comm+":5012:1\n"+
		"MPI_Waitall:2:2:5000:0:2\nMPI_Waitall:4:2:5008:0:5\nMPI_Finalize:9:-\n",
		"MPI_Init:-:1:2:0\nMPI_Send:1:9:4:1,4,4:0:5:1140850688,1,2:1\nMPI_Recv:1:9:4:1,4,4:0:5:1140850688,1,2:0:1\nMPI_Finalize:9:-\n")
	// The gap between the two calls of MPI_Waitall waits for the receive alone, the one after both for the send, too.
	r := trace.Ranks[0]
	var recv, send int
	for i, kind := range r.Kind {
		switch kind {
		case dag.Recv:
			recv = i
		case dag.Send:
			send = i
		}
	}
	waits := map[int][]int{}
	for i, kind := range r.Kind {
		if kind != dag.Calc {
			continue
		}
		for _, off := range r.Deps.Of(i) {
			waits[i-int(off)] = append(waits[i-int(off)], i)
		}
	}
	if len(waits[recv]) != 1 || len(waits[send]) != 1 || waits[recv][0] >= waits[send][0] {
		t.Errorf("the receive %d and the send %d are waited for by %v:\n%s", recv, send, waits, list(r))
	}
}

// grid returns the files of a square of ranks that splits the world into rows and columns, whose handles are pointers
// that differ from rank to rank. The calls on them are barriers of rows ("r") and columns ("c"), one after another.
// Clocks are behind by the given microseconds per rank, as the tracer has measured.
func grid(side, behind int, calls ...string) (files []string) {
	n := side * side
	for rank := range n {
		row, column := rank/side, rank%side
		call := func(name, handle string, position, at int) string {
			at -= rank * behind
			return fmt.Sprintf("%s:%d:%s,%d,%d:%d\n", name, at, handle, position, side, at+4)
		}
		world := fmt.Sprintf("94000%05d,%d,%d", 16*rank, rank, n)
		start := 100_000 - rank*behind
		text := fmt.Sprintf("# clockdiff: %.6f s (relative to rank 0)\n", float64(rank*behind)*1e-6) +
			fmt.Sprintf("MPI_Init:-:1:2:%d\n", start) +
			fmt.Sprintf("MPI_Comm_split:%d:%s:%d:%d:700:%d\n", start, world, row, column, start) +
			fmt.Sprintf("MPI_Comm_split:%d:%s:%d:%d:708:%d\n", start, world, column, row, start)
		for k, c := range calls {
			at := start + rank*behind + 5*k
			if c == "r" {
				text += call("MPI_Barrier", fmt.Sprint(94100000000+160*rank), column, at+row%2)
			} else {
				text += call("MPI_Barrier", fmt.Sprint(94200000000+160*rank), row, at+column%2)
			}
		}
		files = append(files, text+fmt.Sprintf("MPI_Finalize:%d:-\n", start+5*len(calls)+1))
	}
	return files
}

// TestGrid: rows and columns of a square grid are told apart, though the ranks of its diagonal have the same place in
// both, and call the same collectives, whichever comes first.
func TestGrid(t *testing.T) {
	const side = 4
	for name, c := range map[string]struct {
		calls  string
		behind int
	}{
		"by history":           {calls: "rcr"},
		"rows first":           {calls: "rc"},
		"columns first":        {calls: "cr"},
		"columns first, often": {calls: "crcrcr"},
		"clocks apart":         {calls: "crcr", behind: 1000},
	} {
		trace, warnings, err := readTexts(format.ReadOptions{}, grid(side, c.behind, strings.Split(c.calls, "")...)...)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: error %v, warnings %q", name, err, warnings)
			continue
		}
		for rank, r := range trace.Ranks {
			k := 0
			for i, kind := range r.Kind {
				if kind != dag.Coll {
					continue
				}
				var want []int32
				for j := range int32(side) {
					if c.calls[k] == 'r' {
						want = append(want, int32(rank)/side*side+j)
					} else {
						want = append(want, int32(rank)%side+side*j)
					}
				}
				if members := trace.Comms[r.Comm.At(i)].Members(); !slices.Equal(members, want) {
					t.Errorf("%s: rank %d, barrier %d is of %v, expected %v", name, rank, k, members, want)
				}
				k++
			}
			if k != len(c.calls) {
				t.Errorf("%s: rank %d has %d barriers", name, rank, k)
			}
		}
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Error(problems[0])
		}
	}
}

// TestGuess: a warning gives the effect and the remedy if neither calls nor times tell communicators apart.
func TestGuess(t *testing.T) {
	files := grid(2, 0, "c", "r")
	for i := range files { // all calls at the same time
		lines := strings.Split(files[i], "\n")
		for k, line := range lines {
			if name, rest, _ := strings.Cut(line, ":"); name == "MPI_Barrier" {
				lines[k] = "MPI_Barrier:100000:" + strings.Split(rest, ":")[1] + ":100002"
			}
		}
		files[i] = strings.Join(lines, "\n")
	}
	_, warnings, err := readTexts(format.ReadOptions{}, files...)
	if err != nil || !slices.ContainsFunc(warnings, func(w string) bool {
		return strings.Contains(w, "several candidates") && strings.Contains(w, "may be wrong") &&
			strings.Contains(w, "Record a grid")
	}) {
		t.Errorf("error %v, warnings %q", err, warnings)
	}
}

// TestStrides: members of communicators from MPI_Cart_sub and MPI_Comm_create are found if they are a stride apart.
func TestStrides(t *testing.T) {
	const n = 12
	for name, c := range map[string]struct {
		place func(rank int) (number, size int) // in the communicator; size 0: not a member
		want  func(rank int) (first, stride int)
	}{
		"rows": {func(rank int) (int, int) { return rank % 4, 4 },
			func(rank int) (int, int) { return rank / 4 * 4, 1 }},
		"columns": {func(rank int) (int, int) { return rank / 4, 3 }, func(rank int) (int, int) { return rank % 4, 4 }},
		"of three dimensions": {func(rank int) (int, int) { return rank / 2 % 3, 3 },
			func(rank int) (int, int) { return rank/6*6 + rank%2, 2 }},
		"range": {func(rank int) (int, int) {
			if rank < 3 || rank > 9 || rank%2 == 0 {
				return 0, 0
			}
			return rank/2 - 1, 4
		}, func(int) (int, int) { return 3, 2 }},
		"no stride": {func(rank int) (int, int) { return []int{0, 1, 2, 2, 1, 0}[rank%6], 3 }, nil},
	} {
		var files []string
		for rank := range n {
			text := fmt.Sprintf("MPI_Init:-:1:2:0\nMPI_Cart_sub:1:94000%05d,%d,%d:600:700:1\n", 16*rank, rank, n)
			if number, size := c.place(rank); size > 0 {
				comm := fmt.Sprintf("%d,%d,%d", 94100000000+160*rank, number, size)
				text += fmt.Sprintf("MPI_Barrier:3:%s:4\nMPI_Comm_free:5:900:5\nMPI_Barrier:6:%s:7\n", comm, comm)
			}
			files = append(files, text+"MPI_Finalize:9:-\n")
		}
		trace, warnings, err := readTexts(format.ReadOptions{}, files...)
		if c.want == nil {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			continue
		}
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "a fixed stride apart") {
			t.Errorf("%s: warnings %q, error %v", name, warnings, err)
			continue
		}
		for rank, r := range trace.Ranks {
			for i, kind := range r.Kind {
				if kind != dag.Coll {
					continue
				}
				first, stride := c.want(rank)
				_, size := c.place(rank)
				for k, member := range trace.Comms[r.Comm.At(i)].Members() {
					if int(member) != first+k*stride || trace.Comms[r.Comm.At(i)].Size() != size {
						t.Errorf("%s: rank %d is with %v", name, rank, trace.Comms[r.Comm.At(i)].Members())
						break
					}
				}
			}
		}
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems[0])
		}
	}
}

// TestUnfinished: files that are cut off are named, whatever they end with.
func TestUnfinished(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "cut": "MPI_Init:-:1:2:0\nMPI_Barrier:1:0,1,2:2\n", "carriage returns": "# x\rMPI_Init:-:1:2:0\r",
	} {
		var warnings []string
		_, _ = read([]*format.Input{
			{Name: "x-0.txt", Reader: strings.NewReader("MPI_Init:-:1:2:0\nMPI_Barrier:1:0,0,2:2\nMPI_Finalize:9:-\n")},
			{Name: "x-1.txt", Reader: strings.NewReader(text)},
		}, format.ReadOptions{Warn: func(m string, args ...any) { warnings = append(warnings, fmt.Sprintf(m, args...)) }, Lenient: true})
		if len(warnings) == 0 || !strings.Contains(strings.Join(warnings, "\n"), "x-1.txt") {
			t.Errorf("%s: warnings %q", name, warnings)
		}
	}
}

// TestManyCommunicators: tens of thousands of communicators and requests take no time to speak of.
func TestManyCommunicators(t *testing.T) {
	const n = 20_000
	var files []string
	for rank := range 2 {
		var b strings.Builder
		b.WriteString("MPI_Init:-:1:2:0\n")
		for i := range n {
			fmt.Fprintf(&b, "MPI_Comm_split:1:1140850688,%d,2:0:%d:%d:1\n", rank, rank, 9000+4*i)
		}
		for i := range n {
			fmt.Fprintf(&b, "MPI_Barrier:2:%d,%d,2:2\n", 2214592512+i, rank)
		}
		for i := range n {
			fmt.Fprintf(&b, "MPI_Irecv:3:9:4:1,4,4:%d:5:1140850688,%d,2:%d:3\n", 1-rank, rank, 500_000+4*i)
		}
		for range n {
			fmt.Fprintf(&b, "MPI_Test:4:%d:9:0:4\n", 500_000)
		}
		b.WriteString("MPI_Finalize:9:-\n")
		files = append(files, b.String())
	}
	trace, _, err := readTexts(format.ReadOptions{}, files...)
	if err != nil || len(trace.Comms) != n+1 {
		t.Errorf("error %v", err)
	}
}

// TestSetUp checks the warning about the time of calls that create communicators.
func TestSetUp(t *testing.T) {
	for end, want := range map[string]string{
		"100": "", // 0.9 % of the time
		"101": "x-0.txt:2: calls that create communicators, such as MPI_Comm_split, keep their recorded time on any " +
			"machine (2 times in all, 1 % of the time of the ranks)",
	} {
		text := "MPI_Init:-:1:2:0\nMPI_Comm_split:91:0,%d,2:0:0:77:" + end + "\nMPI_Barrier:1000:0,%d,2:1000\n" +
			"MPI_Finalize:1000:-\n"
		_, warnings, err := readTexts(format.ReadOptions{}, fmt.Sprintf(text, 0, 0), fmt.Sprintf(text, 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(warnings, "\n"); got != want {
			t.Errorf("end %s: warnings %q, expected %q", end, got, want)
		}
	}
}
