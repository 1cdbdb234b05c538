package kineto

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// uneven is an alltoall of three ranks of one file each, by the splits of each rank.
type uneven struct {
	name   string
	splits [3][2]string // texts of the parts that the rank gives and gets
	sums   [3][2]int    // elements that the rank gives and gets
	want   [3]string    // attributes
}

var threeCounts = [3]string{
	`{"counts":{"send":[4,8,0],"recv":[4,0,12]}}`,
	`{"counts":{"send":[0,0,20],"recv":[8,0,4]}}`,
	`{"counts":{"send":[12,4,0],"recv":[0,20,0]}}`,
}

var unevens = []uneven{
	{"stated", [3][2]string{{"[1, 2, 0]", "[1, 0, 3]"}, {"[0, 0, 5]", "[2, 0, 1]"}, {"[3, 1, 0]", "[0, 5, 0]"}},
		[3][2]int{{3, 4}, {5, 3}, {4, 5}}, threeCounts},
	{"disagreement", [3][2]string{{"[1, 2, 0]", "[1, 0, 3]"}, {"[0, 0, 5]", "[1, 0, 2]"}, {"[3, 1, 0]", "[0, 5, 0]"}},
		[3][2]int{{3, 4}, {5, 3}, {4, 5}}, [3]string{}},
	{"cut", [3][2]string{{"[1, 2, ...]", "[1, 0, 3]"}, {"[0, 0, 5]", "[2, 0, 1]"}, {"[3, 1, 0]", "[0, 5, 0]"}},
		[3][2]int{{3, 4}, {5, 3}, {4, 5}}, [3]string{}},
	{"short", [3][2]string{{"[1, 2]", "[1, 0, 3]"}, {"[0, 0, 5]", "[2, 0, 1]"}, {"[3, 1, 0]", "[0, 5, 0]"}},
		[3][2]int{{3, 4}, {5, 3}, {4, 5}}, [3]string{}},
	{"another sum", [3][2]string{{"[1, 2, 0]", "[1, 0, 3]"}, {"[0, 0, 5]", "[2, 0, 1]"}, {"[3, 1, 0]", "[0, 5, 0]"}},
		[3][2]int{{9, 4}, {5, 3}, {4, 5}}, [3]string{}},
	{"one without", [3][2]string{{"[1, 2, 0]", "[1, 0, 3]"}, {"[]", "[]"}, {"[3, 1, 0]", "[0, 5, 0]"}},
		[3][2]int{{3, 4}, {5, 3}, {4, 5}}, [3]string{}},
	{"one even", [3][2]string{{"[1, 2, 3]", "[1, 2, 3]"}, {"[]", "[]"}, {"[3, 2, 1]", "[3, 2, 1]"}},
		[3][2]int{{6, 6}, {6, 6}, {6, 6}}, [3]string{
			`{"counts":{"send":[4,8,12],"recv":[4,8,12]}}`, "", `{"counts":{"send":[12,8,4],"recv":[12,8,4]}}`}},
	{"one list even", [3][2]string{{"[1, 1, 1]", "[1, 2, 3]"}, {"[2, 2, 2]", "[1, 2, 3]"}, {"[3, 3, 3]", "[1, 2, 3]"}},
		[3][2]int{{3, 6}, {6, 6}, {9, 6}}, [3]string{
			`{"counts":{"send":[4,4,4],"recv":[4,8,12]}}`, `{"counts":{"send":[8,8,8],"recv":[4,8,12]}}`,
			`{"counts":{"send":[12,12,12],"recv":[4,8,12]}}`}},
	{"even", [3][2]string{{"[2, 2, 2]", "[2, 2, 2]"}, {"[]", "[]"}, {"[2, 2, 2]", "[2, 2, 2]"}},
		[3][2]int{{6, 6}, {6, 6}, {6, 6}}, [3]string{}},
}

// input returns the file of a rank.
func (u *uneven) input(rank int) *format.Input {
	text := fmt.Sprintf(`{"distributedInfo":{"rank":%d,"world_size":3},"traceEvents":[{"ph":"X","cat":"kernel",`+
		`"name":"ncclDevKernel_SendRecv(x)","pid":0,"tid":7,"ts":10,"dur":5,"args":{"stream":7,"device":0,`+
		`"Collective name":"all_to_allv","In msg nelems":%d,"Out msg nelems":%d,"dtype":"Float","In split size":%q,`+
		`"Out split size":%q,"Process Group Name":"0","Process Group Ranks":"[0, 1, 2]","Group size":3}}]}`,
		rank, u.sums[rank][0], u.sums[rank][1], u.splits[rank][0], u.splits[rank][1])
	return &format.Input{Name: fmt.Sprintf("rank%d.json", rank), Reader: strings.NewReader(text)}
}

func TestCounts(t *testing.T) {
	for _, u := range unevens {
		inputs := []*format.Input{u.input(0), u.input(1), u.input(2)}
		trace, err := read(inputs, format.ReadOptions{Warn: func(string, ...any) {}})
		if err != nil {
			t.Fatalf("%s: %v", u.name, err)
		}
		for i, r := range trace.Ranks {
			op := r.Op(0)
			if r.Len() != 1 || op.Subkind != dag.Alltoallv || op.Attrs != u.want[i] ||
				op.Bytes != int64(4*u.sums[i][0]) || op.RecvBytes != int64(4*u.sums[i][1]) {
				t.Errorf("%s: rank %d: %+v, want %s", u.name, i, op, u.want[i])
			}
		}
	}
}

// TestCountsOfManyMembers checks that a number of members takes no memory unless a list has as many parts.
func TestCountsOfManyMembers(t *testing.T) {
	var r recording
	a := &commArgs{out: 3, element: 4, gets: r.texts.number([]byte("[1, 2]"))}
	if c := r.counts(a, 1<<60); c != nil {
		t.Errorf("counts %v", c)
	}
}

// TestCountsOfPresent checks that communicators without some members state no counts.
func TestCountsOfPresent(t *testing.T) {
	for _, replicate := range []bool{false, true} {
		own := newOptions()
		own.OnlyPresent, own.Replicate = !replicate, replicate
		u := &unevens[0]
		trace, err := read([]*format.Input{u.input(0), u.input(1)},
			format.ReadOptions{Own: own, Warn: func(string, ...any) {}})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range trace.Ranks {
			if op := r.Op(0); op.Kind != dag.Coll || op.Attrs != "" {
				t.Errorf("replicate %v: rank %d: %+v", replicate, i, op)
			}
		}
	}
}

// checkPartners checks that the uneven alltoalls of a trace state the bytes by partner, and returns their number.
func checkPartners(t *testing.T, trace *dag.Trace) (found int) {
	t.Helper()
	for i, r := range trace.Ranks {
		for k := range r.Len() {
			op := r.Op(k)
			if op.Subkind != dag.Alltoallv {
				continue
			}
			c, ok := attr.ParseCounts(op.Attrs)
			send, recv := int64(0), int64(0)
			for j := range c.Send {
				send, recv = send+c.Send[j], recv+c.Recv[j]
			}
			if !ok || send != op.Bytes || recv != op.RecvBytes {
				t.Errorf("rank %d, op %d: %+v", i, k, op)
			}
			found++
		}
	}
	return found
}
