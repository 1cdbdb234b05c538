package nsys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

func TestKeepEnds(t *testing.T) {
	m := plain(func(p *testProcess, rank int) {
		p.allReduce(0xabc, 0x20, 400, 0, 8, 5500, int64(7000+100*rank))
	})
	m.add(tableAnalysis, 0, 10000)
	var o format.ReadOptions
	o.Own = &Options{KeepEnds: true}
	trace, warnings, err := readFiles(o, m.write(t, t.TempDir()))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 5us stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
0.2 calc 5.5us stream 2
0.3 coll allreduce comm 1 400/0 root 0 stream 2 <2
0.4 calc 3us stream 2 <1 <3
1.0 calc 5us stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.2 calc 5.5us stream 2
1.3 coll allreduce comm 1 400/0 root 0 stream 2 <2
1.4 calc 2.9us stream 2 <1 <3
`
	if got := list(trace); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// TestSyncEdges has three streams: 7 and 9 with kernels of NCCL, and 8, which waits for 7 and for which 9 waits.
func TestSyncEdges(t *testing.T) {
	for _, named := range []bool{true, false} {
		m := twoProcesses(func(p *testProcess, rank int) {
			p.init(0xabc, 0x1, rank, 2)
			p.allReduce(0xabc, 0x10, 400, 0, 7, 5000, 6000)
			sync := func(api string, stream, event int64) {
				p.api(api)
				if strings.HasPrefix(api, "cudaEventRecord") {
					if !named {
						event = 99
					}
					p.add(tableCUDAEvent, 0, 0, 1, stream, p.corr, p.tid&^0xffffff, event)
				} else {
					p.add(tableSync, 9000, 9100, 0, 1, stream, p.corr, p.tid&^0xffffff, 2, event)
				}
			}
			sync("cudaEventRecord_v3020", 7, 1)
			sync("cudaStreamWaitEvent_v3020", 8, 1)
			sync("cudaEventRecord_v3020", 8, 2)
			sync("cudaStreamWaitEvent_v3020", 9, 2)
			p.allReduce(0xabc, 0x20, 400, 0, 9, 6500, 7000)
			p.allReduce(0xabc, 0x20, 400, 0, 9, 7500, 8000)
			p.allReduce(0xabc, 0x10, 400, 0, 7, 6600, 9000)
		})
		var o format.ReadOptions
		o.Own = &Options{SyncEdges: true}
		trace, warnings, err := readFiles(o, m.write(t, t.TempDir()))
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		want := `0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
0.2 calc 1.5us stream 2
0.3 coll allreduce comm 1 400/0 root 0 stream 2 <2 <1
0.4 calc 500ns stream 2 <3
0.5 coll allreduce comm 1 400/0 root 0 stream 2 <4
0.6 calc 600ns stream 1 <1
0.7 coll allreduce comm 1 400/0 root 0 stream 1 <6
`
		if got := list(trace); !strings.Contains(got, want) {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
}

// TestClocks has two hosts whose sessions begin 5 us apart, one with a clock that is 2 us late.
func TestClocks(t *testing.T) {
	folder := t.TempDir()
	var paths []string
	for rank, host := range []string{"a", "b"} {
		m := newMaker(host)
		m.epoch += int64(5000 * rank)
		p := m.process(101)
		p.init(0xabc, 0x1, rank, 2)
		for i := range int64(3) {
			p.allReduce(0xabc, 0x10, 400, 0, 7, 10000+1000*i, 10500+1000*i-int64(7000*rank))
			m.rows[tableKernel][i][0] = m.rows[tableKernel][i][1].(int64) - 500
		}
		paths = append(paths, m.write(t, folder))
	}
	for _, align := range []bool{false, true} {
		var o format.ReadOptions
		o.Own = &Options{AlignClocks: align}
		trace, warnings, err := readFiles(o, paths...)
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		_, a := trace.Ranks[0].Measured(1)
		_, b := trace.Ranks[1].Measured(1)
		want := -2 * dag.Microsecond
		if align {
			want = 0
		}
		if a != 10500*dag.Nanosecond || b-a != want {
			t.Errorf("align %v: ends at %v and %v, want them %v apart", align, a, b, want)
		}
	}
}

func TestHosts(t *testing.T) {
	folder := t.TempDir()
	var paths []string
	for rank, host := range []string{"a.domain", "b"} {
		m := newMaker(host)
		p := m.process(101)
		p.init(0xabc, 0x1, rank, 2)
		p.allReduce(0xabc, 0x10, 400, 0, 7, 5000, 6000)
		paths = append(paths, m.write(t, folder))
	}
	var o format.ReadOptions
	o.Own = &Options{Hosts: map[string]string{"nsys_report_b": "a.domain"}}
	trace, _, err := readFiles(o, paths...)
	if err != nil {
		t.Fatal(err)
	}
	if trace.Nodes[1] != 0 || !strings.Contains(trace.Attrs, `"hosts":["a.domain"]`) {
		t.Errorf("nodes %v, attributes %s", trace.Nodes, trace.Attrs)
	}
}

// TestOrderOfRows reads an export whose rows are in no order.
func TestOrderOfRows(t *testing.T) {
	path := vectors + "/17_regroup"
	want := readFolder(t, path, format.ReadOptions{})
	folder := t.TempDir()
	for _, file := range folderFiles(t, path, "") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := filepath.Join(folder, filepath.Base(file))
		if err := os.WriteFile(shuffled, data, 0o666); err != nil {
			t.Fatal(err)
		}
		shuffle(t, shuffled)
	}
	got := readFolder(t, folder, format.ReadOptions{})
	if list(got) != list(want) {
		t.Errorf("got\n%s, want\n%s", list(got), list(want))
	}
}
