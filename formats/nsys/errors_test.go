package nsys

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
)

// plain makes an export of two processes with one AllReduce each, which change may change.
func plain(change func(p *testProcess, rank int)) *maker {
	return twoProcesses(func(p *testProcess, rank int) {
		p.init(0xabc, 0x1, rank, 2)
		p.allReduce(0xabc, 0x10, 400, 0, 7, 5000, 6000)
		if change != nil {
			change(p, rank)
		}
	})
}

// TestErrors reads exports of which something is wrong, and again with --lenient where that passes over it.
func TestErrors(t *testing.T) {
	tests := []struct {
		name    string
		maker   *maker
		want    string
		lenient bool // passes over it with one warning
	}{
		{"no note table", func() *maker { m := plain(nil); delete(m.rows, tableAnnotations); return m }(),
			"expected an nsys export with NCCL annotations, found no table NVTX_EVENTS", false},
		{"no string table", func() *maker { m := plain(nil); delete(m.rows, tableStrings); return m }(),
			"expected a table StringIds with the names of kernels", false},
		{"no notes", func() *maker { m := plain(nil); m.rows[tableAnnotations] = nil; return m }(),
			"2 kernels of NCCL, but no annotation creates a communicator", false},
		{"no kernels", func() *maker { m := plain(nil); delete(m.rows, tableKernel); return m }(),
			"process 101: 1 NCCL calls, but no kernel of NCCL", false},
		{"malformed note", plain(func(p *testProcess, rank int) {
			if rank == 0 {
				p.mark("collType 4 root zero")
			}
		}), `NVTX_EVENTS, row 7: annotation "collType 4 root zero pid 101": expected a number at byte 16`, true},
		{"unknown communicator", plain(func(p *testProcess, rank int) {
			if rank == 0 {
				p.call("AllReduce", 0xbad, 0x10, 400, "red_op 0,")
			}
		}), "communicator 0xbad is unknown in process 101", true},
		{"piece without a call", plain(func(p *testProcess, rank int) { p.piece(1, 0, 10) }),
			"expected a call of ncclSend with peer 0 before it", false},
		{"channel without a collective", func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(0xabc, 0x1, rank, 2)
				p.mark("nWarps 17 count 1 chunkCount 1 workCount 1 lastChunkCount 1 workOffset 0")
			})
		}(), "expected an annotation of a collective before it", false},
		{"call without details", plain(func(p *testProcess, rank int) {
			p.call("AllReduce", 0xabc, 0x10, 400, "red_op 0,")
			p.allReduce(0xabc, 0x10, 400, 0, 7, 7000, 8000)
		}), "process 101, call at 1120 ns: expected an annotation for each collective, found 1 too few", true},
		{"piece missing", plain(func(p *testProcess, rank int) {
			p.call("Send", 0xabc, 0x10, 400, fmt.Sprintf("receiver_rank %d,", 1-rank))
			p.piece(1, 1-rank, 100)
			p.launch("SendRecv", 0, 7, 7000, 8000)
			p.allReduce(0xabc, 0x10, 400, 0, 7, 9000, 9100)
		}), "expected annotations of all pieces of ncclSend with peer 1, 300 bytes are missing", false},
		{"rank missing", func() *maker {
			m := newMaker("a")
			m.process(101).init(0xabc, 0x1, 1, 3)
			return m
		}(), "communicator 0x1: 2 of 3 ranks are missing, the first is rank 0", false},
		{"rank twice", func() *maker {
			return twoProcesses(func(p *testProcess, rank int) { p.init(0xabc, 0x1, 1, 2) })
		}(), "communicator 0x1: expected each rank once, found rank 1 in process 101 of ", false},
		{"unequal sizes", func() *maker {
			return twoProcesses(func(p *testProcess, rank int) { p.init(0xabc, 0x1, rank, 2+rank) })
		}(), "communicator 0x1: rank 1 (process 102) has a size of 3 ranks, others 2", false},
		{"contradicting ring", func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(0xabc, 0x1, rank, 2)
				p.mark("commHash 0xabc Rings [1] %d->%d->%d", 1, rank, 1)
			})
		}(), "communicator 0x1: ring of channel 1: rank 0 is followed by rank 1", false},
		{"ring in two", func() *maker {
			m := newMaker("a")
			for rank := range 4 {
				p := m.process(int64(101 + rank))
				i := p.push("commHash 0xabc commId 0x1 rank %d nranks 4", rank)
				p.mark("commHash 0xabc Rings [0] %d->%d->%d", rank^1, rank, rank^1)
				p.pop(i)
			}
			return m
		}(), "communicator 0x1: ring of channel 0: expected a ring of 4 ranks, found 2", false},
		{"contradicting tree", func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(0xabc, 0x1, rank, 2)
				p.mark("commHash 0xabc Trees [0] -1/-1/-1->%d->%d", rank, rank-1)
			})
		}(), "communicator 0x1: tree of channel 0: rank 1 has rank 0 as its parent", false},
		{"disagreeing sizes", plain(func(p *testProcess, rank int) {
			p.allReduce(0xabc, 0x10, int64(400*(rank+1)), 0, 7, 7000, 8000)
		}), "communicator 0x1: its collective number 1 (from 0): ranks 0 and 1 disagree: AllReduce of 400 bytes and of 800",
			false},
		{"disagreeing kinds", plain(func(p *testProcess, rank int) {
			p.call("AllReduce", 0xabc, 0x10, 400, "red_op 0,")
			p.detail([]opKind{opAllReduce, opReduce}[rank], 0xabc, 0x10, 400)
			p.launch("AllReduce_x", 0, 7, 7000, 8000)
		}), "ranks 0 and 1 disagree: AllReduce and Reduce", false},
		{"disagreeing messages", plain(func(p *testProcess, rank int) {
			name, more := "Send", "receiver_rank 1,"
			if rank == 1 {
				name, more = "Recv", "sender_rank 0,"
			}
			p.call(name, 0xabc, 0x10, int64(100+rank), more)
			p.piece(1+rank, 1-rank, int64(100+rank))
			p.launch("SendRecv", 0, 7, 7000, 8000)
		}), "piece number 0 (from 0) from rank 0 to rank 1: 100 bytes are sent, 101 received", false},
		{"kernel without a call", plain(func(p *testProcess, rank int) {
			if rank == 0 {
				p.api("cudaLaunchKernelExC_v11060")
				p.kernel("AllReduce_x", 0, 9, 7000, 8000, nil)
			}
		}), "1 kernels of NCCL belong to no call in the annotations (process 101, stream 9: 1)", true},
		{"call without a kernel", plain(func(p *testProcess, rank int) {
			p.call("AllReduce", 0xabc, 0x10, 400, "red_op 0,")
			p.detail(opAllReduce, 0xabc, 0x10, 400)
			p.launch("", 0, 7, 0, 0)
			p.clock = 4000
			p.allReduce(0xabc, 0x10, 400, 0, 7, 7000, 8000)
			p.clock = 2000
		}), "process 101: 1 NCCL calls have no kernel", false},
		{"no calls of the host, other kernels", func() *maker {
			m := plain(func(p *testProcess, rank int) { p.kernel("AllGather_x", 0, 7, 7000, 8000, nil) })
			delete(m.rows, tableRuntime)
			return m
		}(), "process 101: the launches in annotations (by stream address, 0x10: 1) do not match the kernels of NCCL (by stream, " +
			"7: 2)", false},
		{"graph without nodes", func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(0xabc, 0x1, rank, 2)
				p.detail(opAllReduce, 0xabc, 0x10, 400)
				l := p.push("ncclLaunchKernel():")
				p.add(tableGraphNodes, p.tick(), p.tid, 11, nil)
				p.pop(l)
				p.add(tableGraphRuns, 1, 2)
			})
		}(), "2 NCCL calls were captured in CUDA graphs, which ran 2 times", false},
		{"two devices in one kernel's place", func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(0xabc, 0x1, rank, 2)
				p.detail(opAllReduce, 0xabc, 0x10, 400)
				p.launch("AllReduce_x", 0, 7, 1000, 2000)
				p.launch("AllReduce_x", 1, 7, 1000, 2000)
			})
		}(), "one group has kernels on the devices 0 and 1", false},
		{"more devices than ranks", plain(func(p *testProcess, rank int) {
			p.allReduce(0xabc, 0x10, 400, 1, 7, 7000, 8000)
		}), "communicator 0x1: process 101 has 1 ranks, but kernels on 2 devices", false},
		{"root out of range", plain(func(p *testProcess, rank int) {
			p.call("Broadcast", 0xabc, 0x10, 400, "root 2,")
			p.mark("collType 0 root 2 redOp 0 algo 1 proto 2 commHash 0xabc stream 0x10 data_size 400 type_size 1 chunkSize 1 " +
				"chunkCount 1 chunkSteps 1 sliceSteps 1 stepSize 1")
			p.launch("Broadcast_x", 0, 7, 7000, 8000)
		}), "communicator 0x1: expected a rank below 2 as root or partner, found 2", false},
		{"impossible times", plain(func(p *testProcess, rank int) { p.allReduce(0xabc, 0x10, 400, 0, 7, 7000, 6000) }),
			"CUPTI_ACTIVITY_KIND_KERNEL, row 2: expected an end from 7000", false},
		{"NVIDIA's NCCL without payloads", func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.pop(p.stock("ncclCommInitRank", fmt.Sprintf(`{"No. of ranks": 2, "Rank": %d}`, rank)))
				i := p.stock("ncclAllReduce", "")
				p.api("cudaLaunchKernelExC_v11060")
				p.pop(i)
				p.kernel("AllReduce_x", 0, 7, 1000, 1500, nil)
			})
		}(), "2 NCCL calls have no payload with sizes, partners and roots", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := test.maker.write(t, t.TempDir())
			_, _, err := readFiles(format.ReadOptions{}, path)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("error %v, want one of %s with %q", err, path, test.want)
			}
			trace, warnings, err := readFiles(format.ReadOptions{Lenient: true}, path)
			if test.lenient && (err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], test.want)) {
				t.Errorf("lenient: %v, warnings %q", err, warnings)
			} else if test.lenient && len(trace.Ranks) != 2 {
				t.Errorf("lenient: %d ranks", len(trace.Ranks))
			}
		})
	}
}

// TestDamagedFiles reads files that are no whole, free databases.
func TestDamagedFiles(t *testing.T) {
	good := plain(nil).write(t, t.TempDir())
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	in := func(t *testing.T, name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(t *testing.T, path, want string) {
		t.Helper()
		_, _, err := readFiles(format.ReadOptions{}, path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+":") {
			t.Errorf("error %v, want one of %s with %q", err, path, want)
		}
	}
	t.Run("truncated", func(t *testing.T) {
		run(t, in(t, "a.sqlite", whole[:len(whole)/2]), fmt.Sprintf("truncated: expected %d bytes, as in the header, found %d",
			len(whole), len(whole)/2))
		run(t, in(t, "a.sqlite", whole[:50]), "truncated: expected 100 bytes or more, found 50")
	})
	t.Run("overwritten", func(t *testing.T) {
		damaged := append([]byte{}, whole...)
		for i := 4096; i < len(damaged); i++ {
			damaged[i] = 0xaa
		}
		run(t, in(t, "a.sqlite", damaged), "damaged: ")
	})
	t.Run("not a database", func(t *testing.T) {
		run(t, in(t, "a.sqlite", []byte("hello")), "expected an nsys export (SQLite database")
		run(t, in(t, "a.nsys-rep", []byte("hello")), "run nsys export --type sqlite a.nsys-rep")
	})
	t.Run("empty", func(t *testing.T) { run(t, in(t, "a.sqlite", nil), "truncated: expected 100 bytes or more, found 0") })
	t.Run("foreign", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.sqlite")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("CREATE TABLE people (name)"); err != nil {
			t.Fatal(err)
		}
		db.Close()
		run(t, path, "expected an nsys export with a table NVTX_EVENTS")
	})
	t.Run("locked", func(t *testing.T) {
		path := in(t, "a.sqlite", whole)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("BEGIN EXCLUSIVE"); err != nil {
			t.Fatal(err)
		}
		run(t, path, "locked by another program")
	})
	t.Run("interrupted", func(t *testing.T) {
		path := in(t, "a.sqlite", whole)
		journal := make([]byte, 1024+4096)
		copy(journal, "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
		copy(journal[8:], "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x02\x00\x00\x00\x10\x00")
		if err := os.WriteFile(path+"-journal", journal, 0o666); err != nil {
			t.Fatal(err)
		}
		run(t, path, "was interrupted")
	})
	t.Run("write-ahead log", func(t *testing.T) {
		path := in(t, "a.sqlite", whole)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("PRAGMA journal_mode=WAL"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("CREATE TABLE x (y)"); err != nil {
			t.Fatal(err)
		}
		run(t, path, "uncommitted changes in the write-ahead log a.sqlite-wal")
		db.Close() // which empties the log
		if _, _, err := readFiles(format.ReadOptions{}, path); err != nil {
			t.Error(err)
		}
		if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
			t.Errorf("files left: %q", files)
		}
	})
	t.Run("stats", func(t *testing.T) {
		run(t, vectors+"/08_p2p_single/derived/nsys_report_node00.gputrace.csv", "a table of nsys stats")
	})
	t.Run("table missing", func(t *testing.T) {
		run(t, vectors+"/08_p2p_single/derived/nsys_report_node00.NVTX_EVENTS.csv", "expected the table CUPTI_ACTIVITY_KIND_KERNEL")
	})
	t.Run("pipe", func(t *testing.T) { // without a path of its own
		want := list(mustRead(t, good))
		f, err := os.Open(good)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		trace, err := Format.Read([]*format.Input{{Name: "<stdin>", Reader: f, Head: whole[:4096]}},
			format.ReadOptions{Warn: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		if got := list(trace); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	})
}
