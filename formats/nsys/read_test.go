package nsys

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// list writes a trace as text, an op a line.
func list(t *dag.Trace) string {
	var s strings.Builder
	fmt.Fprintf(&s, "nodes %v\n", t.Nodes)
	for _, c := range t.Comms[1:] {
		fmt.Fprintf(&s, "comm %s %v\n", c.Name, c.Members())
	}
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for i := range r.Kind {
			op := r.Op(i)
			fmt.Fprintf(&s, "%d.%d %v", rank, i, op.Kind)
			switch op.Kind {
			case dag.Calc:
				fmt.Fprintf(&s, " %v", op.Duration)
			case dag.Coll:
				fmt.Fprintf(&s, " %v comm %d %d/%d root %d", op.Subkind, op.Comm, op.Bytes, op.RecvBytes, op.Peer)
			default:
				fmt.Fprintf(&s, " comm %d %d peer %d tag %d", op.Comm, op.Bytes, op.Peer, op.Tag)
			}
			fmt.Fprintf(&s, " stream %d", op.Stream)
			for _, off := range r.Deps.Of(i) {
				fmt.Fprintf(&s, " <%d", i-int(off))
			}
			if strings.Contains(op.Attrs, "in_place") {
				s.WriteString(" in place")
			}
			if strings.Contains(op.Attrs, "grouped") {
				s.WriteString(" grouped")
			}
			s.WriteString("\n")
		}
	}
	return s.String()
}

// twoProcesses makes an export of two processes on one host, and has each do the same.
func twoProcesses(do func(p *testProcess, rank int)) *maker {
	m := newMaker("a")
	for rank := range 2 {
		do(m.process(int64(101+rank)), rank)
	}
	return m
}

func TestRead(t *testing.T) {
	const hash = 0xabc
	tests := []struct {
		name     string
		make     func() *maker
		options  format.ReadOptions
		want     string
		warnings int
	}{
		{name: "one process with two devices", make: func() *maker {
			m := newMaker("a")
			p := m.process(101)
			p.init(hash, 0x1, 0, 2)
			p.init(hash, 0x1, 1, 2)
			p.groupStart()
			p.call("AllReduce", hash, 0x10, 400, "red_op 0,")
			p.call("AllReduce", hash, 0x20, 400, "red_op 0,")
			g := p.push("ncclGroupEnd():")
			p.detail(opAllReduce, hash, 0x10, 400)
			p.detail(opAllReduce, hash, 0x20, 400)
			p.launch("AllReduce_x", 3, 7, 1000, 2000)
			p.launch("AllReduce_x", 5, 7, 1100, 2000)
			p.pop(g)
			return m
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.0 calc 0s stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
`},
		{name: "two communicators in one group, a kernel each", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				p.init(0xdef, 0x2, 1-rank, 2)
				p.groupStart()
				p.call("AllReduce", hash, 0x10, 400, "red_op 0,")
				p.call("AllGather", 0xdef, 0x20, 800, "")
				g := p.push("ncclGroupEnd():")
				p.detail(opAllReduce, hash, 0x10, 400)
				p.detail(opAllGather, 0xdef, 0x20, 800)
				p.launch("AllReduce_x", int64(rank), 7, 1000, 2000)
				p.launch("AllGather_x", int64(rank), 8, 1500, 3000)
				p.pop(g)
			})
		}, want: `nodes [0 0]
comm 0x1 [0 1]
comm 0x2 [1 0]
0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
0.2 calc 500ns stream 2
0.3 coll allgather comm 2 800/1600 root 0 stream 2 <2
1.0 calc 0s stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.2 calc 500ns stream 2
1.3 coll allgather comm 2 800/1600 root 0 stream 2 <2
`},
		{name: "messages of two communicators in one group", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				p.init(0xdef, 0x2, rank, 2)
				p.groupStart()
				for i, h := range []uint64{hash, 0xdef} {
					for _, name := range []string{"Send", "Recv"} {
						more := map[string]string{"Send": "receiver_rank %d,", "Recv": "sender_rank %d,"}[name]
						c := p.push("nccl%s(): commHash %#x, stream 0x10, data_size %d, type_size 4, "+more, name, h, 1000*(i+1), 1-rank)
						p.groupStart()
						p.pop(p.push("ncclGroupEnd():"))
						p.pop(c)
					}
				}
				g := p.push("ncclGroupEnd():")
				for i := range 2 {
					for range 2 {
						p.piece(2, 1-rank, int64(500*(i+1)))
						p.piece(1, 1-rank, int64(500*(i+1)))
					}
					p.launch("SendRecv", int64(rank), 7, int64(1000+1000*i), int64(1900+1000*i))
				}
				p.pop(g)
			})
		}, want: `nodes [0 0]
comm 0x1 [0 1]
comm 0x2 [0 1]
0.0 calc 0s stream 1
0.1 recv comm 1 500 peer 1 tag 0 stream 1 <0
0.2 send comm 1 500 peer 1 tag 0 stream 1 <0 grouped
0.3 recv comm 1 500 peer 1 tag 1 stream 1 <0 grouped
0.4 send comm 1 500 peer 1 tag 1 stream 1 <0 grouped
0.5 calc 100ns stream 1 <1 <2 <3 <4
0.6 recv comm 2 1000 peer 1 tag 0 stream 1 <5
0.7 send comm 2 1000 peer 1 tag 0 stream 1 <5 grouped
0.8 recv comm 2 1000 peer 1 tag 1 stream 1 <5 grouped
0.9 send comm 2 1000 peer 1 tag 1 stream 1 <5 grouped
1.0 calc 0s stream 1
1.1 recv comm 1 500 peer 0 tag 0 stream 1 <0
1.2 send comm 1 500 peer 0 tag 0 stream 1 <0 grouped
1.3 recv comm 1 500 peer 0 tag 1 stream 1 <0 grouped
1.4 send comm 1 500 peer 0 tag 1 stream 1 <0 grouped
1.5 calc 100ns stream 1 <1 <2 <3 <4
1.6 recv comm 2 1000 peer 0 tag 0 stream 1 <5
1.7 send comm 2 1000 peer 0 tag 0 stream 1 <5 grouped
1.8 recv comm 2 1000 peer 0 tag 1 stream 1 <5 grouped
1.9 send comm 2 1000 peer 0 tag 1 stream 1 <5 grouped
`},
		{name: "a collective and a message in one group, with one kernel", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				p.groupStart()
				p.call("AllReduce", hash, 0x10, 400, "red_op 0,")
				p.call("Send", hash, 0x10, 0, fmt.Sprintf("receiver_rank %d,", 1-rank))
				p.call("Recv", hash, 0x10, 0, fmt.Sprintf("sender_rank %d,", 1-rank))
				g := p.push("ncclGroupEnd():")
				p.detail(opAllReduce, hash, 0x10, 400)
				p.piece(2, 1-rank, 0)
				p.piece(1, 1-rank, 0)
				p.launch("AllReduce_x", int64(rank), 7, 1000, 2000)
				p.pop(g)
			})
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
0.2 recv comm 1 0 peer 1 tag 0 stream 1 <0 grouped
0.3 send comm 1 0 peer 1 tag 0 stream 1 <0 grouped
1.0 calc 0s stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.2 recv comm 1 0 peer 0 tag 0 stream 1 <0 grouped
1.3 send comm 1 0 peer 0 tag 0 stream 1 <0 grouped
`},
		{name: "several threads, negative hardware number, texts in StringIds, foreign notes, one-rank and empty calls",
			make: func() *maker {
				m := newMaker("a")
				m.textIDs = true
				for rank := range 2 {
					p := m.process(int64(101 + rank))
					p.tid = -1<<56 | p.pid<<24 | p.pid
					p.init(hash, 0x1, rank, 2)
					p.init(0xeee, uint64(0x10+rank), 0, 1)
					p.mark("a note that contains")
					p.annotation(p.tick(), nil, eventMark, "pid 7")
					p.annotation(p.tick(), nil, eventRange, "ncclGroupStart(): pid 9999")
					p.pop(p.push("ncclGroupEnd():"))
					p.call("AllReduce", hash, 0x10, 0, "red_op 0,")
					p.call("AllReduce", 0xeee, 0x10, 64, "red_op 0,")
					p.mark("Not executed in ncclkernel: comm->nRanks == 1")
					q := p.thread(1)
					p.groupStart()
					p.call("AllReduce", hash, 0x10, 400, "red_op 0,")
					q.groupStart() // another thread between
					q.call("AllReduce", hash, 0x20, 800, "red_op 0,")
					g := p.push("ncclGroupEnd():")
					p.detail(opAllReduce, hash, 0x10, 400)
					h := q.push("ncclGroupEnd():")
					q.detail(opAllReduce, hash, 0x20, 800)
					p.launch("AllReduce_x", 0, 7, 1000, 2000)
					p.pop(g)
					q.launch("AllReduce_x", 0, 8, 2500, 3000)
					q.pop(h)
				}
				return m
			}, want: `nodes [0 0]
comm 0x1 [0 1]
comm 0x10 [0]
comm 0x11 [1]
0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
0.2 calc 1.5us stream 2
0.3 coll allreduce comm 1 800/0 root 0 stream 2 <2
1.0 calc 0s stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.2 calc 1.5us stream 2
1.3 coll allreduce comm 1 800/0 root 0 stream 2 <2
`},
		{name: "graph", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				for i := range int64(2) { // captured
					c := p.push("ncclAllReduce(): commHash %#x, stream 0x10, data_size %d, type_size 4, red_op 0,", uint64(hash), 400*(i+1))
					p.detail(opAllReduce, hash, 0x10, 400*(i+1))
					l := p.push("ncclLaunchKernel():")
					p.api("cudaLaunchKernelExC_v11060")
					p.add(tableGraphNodes, p.tick(), p.tid, 11+i, nil)
					p.pop(l)
					p.pop(c)
				}
				p.add(tableGraphNodes, p.tick(), p.tid, 21, 11) // instantiated
				p.add(tableGraphNodes, p.tick(), p.tid, 22, 12)
				for i := range int64(2) {
					p.api("cudaGraphLaunch_v10000")
					p.kernel("AllReduce_x", 0, 7, 1000+1000*i, 1200+1000*i, 21)
					p.kernel("AllReduce_x", 0, 7, 1300+1000*i, 1400+1000*i, 22)
				}
			})
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
0.2 calc 100ns stream 1 <1
0.3 coll allreduce comm 1 800/0 root 0 stream 1 <2
0.4 calc 600ns stream 1 <3
0.5 coll allreduce comm 1 400/0 root 0 stream 1 <4
0.6 calc 100ns stream 1 <5
0.7 coll allreduce comm 1 800/0 root 0 stream 1 <6
1.0 calc 0s stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.2 calc 100ns stream 1 <1
1.3 coll allreduce comm 1 800/0 root 0 stream 1 <2
1.4 calc 600ns stream 1 <3
1.5 coll allreduce comm 1 400/0 root 0 stream 1 <4
1.6 calc 100ns stream 1 <5
1.7 coll allreduce comm 1 800/0 root 0 stream 1 <6
`},
		{name: "old columns, texts with addresses", make: func() *maker {
			m := newMaker("a")
			m.epoch = 0
			m.columns = map[string]string{}
			for table, columns := range standard {
				m.columns[table] = columns
			}
			for rank := range 2 {
				p := m.process(int64(101 + rank))
				address := 0x55d0c0000000 + rank
				p.push("comm %#x commId 0x1 rank %d nranks 2", address, rank)
				p.mark("comm %#x commHash 0xabc Rings [0] %d->%d->%d", address, 1-rank, rank, 1-rank)
				p.push("ncclBroadcast(): comm %#x, stream (nil), data_size 400, type_size 4, root 1,", address)
				p.mark("collType 0 root 1 redOp 0 algo 1 proto 0 comm %#x stream (nil) data_size 400 type_size 1 chunkSize 32768 "+
					"chunkCount 32768 chunkSteps 1 sliceSteps 1 stepSize 65536", address)
				p.mark("nWarps 8 count 400 chunkCount 32768 workCount 400 lastChunkCount 32768 workOffset 0")
				p.launch("Broadcast_RING_LL", 0, 7, 1000, 2000)
			}
			for i, row := range m.rows[tableAnnotations] { // nothing is NULL
				if row[1] == nil {
					row[1] = []int64{0, -1}[i%2]
				}
				row[4] = 0
			}
			for _, row := range m.rows[tableKernel] {
				row[8] = []any{0, -1}[row[6].(int64)>>24&1]
			}
			return m
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 0s stream 1
0.1 coll bcast comm 1 0/400 root 1 stream 1 <0
1.0 calc 0s stream 1
1.1 coll bcast comm 1 400/0 root 1 stream 1 <0
`},
		{name: "NVIDIA's NCCL, payloads as JSON", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.pop(p.stock("ncclCommInitRank", fmt.Sprintf(`{"NCCL communicator ID": 77, "No. of ranks": 2, "Rank": %d, `+
					`"CUDA device": 0}`, rank)))
				i := p.stock("ncclBroadcast", `{"payload": {"NCCL communicator ID": "0x4d", "Message size [bytes]": "400", "Root": 1}}`)
				p.api("cudaLaunchKernelExC_v11060")
				p.pop(i)
				p.kernel("Broadcast_x", 0, 7, 1000, 1500, nil)
				p.pop(p.stock("ncclGroupStart", ""))
				p.pop(p.stock("ncclSend", fmt.Sprintf(`{"NCCL communicator ID": 77, "Message size [bytes]": 300, "Peer rank": %d}`, 1-rank)))
				p.pop(p.stock("ncclRecv", fmt.Sprintf(`{"NCCL communicator ID": 77, "Message size [bytes]": 300, "Peer rank": %d}`, 1-rank)))
				i = p.stock("ncclGroupEnd", "")
				p.api("cudaLaunchKernelExC_v11060")
				p.pop(i)
				p.kernel("SendRecv", 0, 7, 2000, 2500, nil)
			})
		}, want: `nodes [0 0]
comm 0x4d [0 1]
0.0 calc 0s stream 1
0.1 coll bcast comm 1 0/400 root 1 stream 1 <0
0.2 calc 500ns stream 1 <1
0.3 send comm 1 300 peer 1 tag 0 stream 1 <2
0.4 recv comm 1 300 peer 1 tag 0 stream 1 <2 grouped
1.0 calc 0s stream 1
1.1 coll bcast comm 1 400/0 root 1 stream 1 <0
1.2 calc 500ns stream 1 <1
1.3 send comm 1 300 peer 0 tag 0 stream 1 <2
1.4 recv comm 1 300 peer 0 tag 0 stream 1 <2 grouped
`},
		{name: "NVIDIA's NCCL, binary payloads, one process with two devices in other order", make: func() *maker {
			m := newMaker("a")
			for i, name := range []string{"NCCL communicator ID", "No. of ranks", "Rank", "CUDA device"} {
				m.add(tableEntries, 1, 5, i, 18, name, 8*i)
			}
			m.add(tableEntries, 1, 6, 0, 18, "NCCL communicator ID", nil)
			m.add(tableEntries, 1, 6, 1, 22, "Message size [bytes]", nil)
			p := m.process(101)
			for rank := range uint64(2) {
				i := p.stock("ncclCommInitRankConfig", "")
				m.rows[tableAnnotations][i][8] = binaryPayload(5, 1<<63|5, 2, rank, 1-rank)
				p.pop(i)
			}
			p.pop(p.stock("ncclGroupStart", ""))
			for range 2 {
				i := p.stock("ncclReduceScatter", "")
				m.rows[tableAnnotations][i][8] = binaryPayload(6, 1<<63|5, 4096)
				p.pop(i)
			}
			i := p.stock("ncclGroupEnd", "")
			for device := range int64(2) {
				p.api("cudaLaunchKernelExC_v11060")
				p.kernel("ReduceScatter_x", device, 7, 1000+device, 1500, nil)
			}
			p.pop(i)
			return m
		}, want: `nodes [0 0]
comm 0x8000000000000005 [1 0]
0.0 calc 0s stream 1
0.1 coll reducescatter comm 1 8192/4096 root 0 stream 1 <0
1.0 calc 0s stream 1
1.1 coll reducescatter comm 1 8192/4096 root 0 stream 1 <0
`},
		{name: "window", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				for i := range int64(4) {
					if i == 1 {
						p.clock = 10000
						p.annotation(p.tick(), nil, eventMark, fmt.Sprintf("nsys profiling start, pid: %d", p.pid))
					}
					if i == 3 && rank == 1 { // the last one is in the window of rank 0 only
						p.annotation(15000, nil, eventMark, fmt.Sprintf("nsys profiling stopped, pid: %d", p.pid))
						p.clock = 16000
					}
					p.allReduce(hash, 0x10, 400*(i+1), 0, 7, 5000+6000*i, 6000+6000*i)
				}
				if rank == 0 {
					p.annotation(40000, nil, eventMark, fmt.Sprintf("nsys profiling stopped, pid: %d", p.pid))
				}
				p.clock = 1000
			})
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 990ns stream 1
0.1 coll allreduce comm 1 800/0 root 0 stream 1 <0
1.0 calc 990ns stream 1
1.1 coll allreduce comm 1 800/0 root 0 stream 1 <0
`, warnings: 1},
		{name: "cut at the end", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				p.allReduce(hash, 0x10, 400, 0, 7, 5000, 6000)
				p.clock = 10000
				if rank == 0 {
					p.allReduce(hash, 0x10, 400, 0, 7, 15000, 16000)
				} else { // its kernel is not there
					p.call("AllReduce", hash, 0x10, 400, "red_op 0,")
					p.detail(opAllReduce, hash, 0x10, 400)
					p.launch("", 0, 7, 0, 0)
				}
				p.clock = 2000
			})
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.0 calc 0s stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
`, warnings: 1},
		{name: "without the table of calls", make: func() *maker {
			m := twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				for i := range int64(2) {
					p.allReduce(hash, 0x10, 400, 0, 8, 5000+1000*i, 5500+1000*i)
					p.allReduce(hash, 0x20, 800, 0, 7, 5100+1000*i, 5700+1000*i)
				}
			})
			delete(m.rows, tableRuntime)
			return m
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
0.2 calc 100ns stream 2
0.3 coll allreduce comm 1 800/0 root 0 stream 2 <2
0.4 calc 500ns stream 1 <1
0.5 coll allreduce comm 1 400/0 root 0 stream 1 <4
0.6 calc 400ns stream 2 <3
0.7 coll allreduce comm 1 800/0 root 0 stream 2 <6
1.0 calc 0s stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.2 calc 100ns stream 2
1.3 coll allreduce comm 1 800/0 root 0 stream 2 <2
1.4 calc 500ns stream 1 <1
1.5 coll allreduce comm 1 400/0 root 0 stream 1 <4
1.6 calc 400ns stream 2 <3
1.7 coll allreduce comm 1 800/0 root 0 stream 2 <6
`},
		{name: "messages to itself, and several to the same partner", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				p.groupStart()
				p.call("Send", hash, 0x10, 100, fmt.Sprintf("receiver_rank %d,", rank))
				p.call("Recv", hash, 0x10, 100, fmt.Sprintf("sender_rank %d,", rank))
				for i := range int64(3) {
					p.call([]string{"Send", "Recv"}[rank], hash, 0x10, 100*i, []string{"receiver_rank 1,", "sender_rank 0,"}[rank])
				}
				g := p.push("ncclGroupEnd():")
				p.piece(2, rank, 100)
				p.piece(1, rank, 100)
				for i := range int64(3) {
					p.piece(1+rank, 1-rank, 100*i)
				}
				p.launch("SendRecv", 0, 7, 1000, 2000)
				p.pop(g)
			})
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 0s stream 1
0.1 recv comm 1 100 peer 0 tag 0 stream 1 <0
0.2 send comm 1 100 peer 0 tag 0 stream 1 <0 grouped
0.3 send comm 1 0 peer 1 tag 0 stream 1 <0 grouped
0.4 send comm 1 100 peer 1 tag 1 stream 1 <0 grouped
0.5 send comm 1 200 peer 1 tag 2 stream 1 <0 grouped
1.0 calc 0s stream 1
1.1 recv comm 1 100 peer 1 tag 0 stream 1 <0
1.2 send comm 1 100 peer 1 tag 0 stream 1 <0 grouped
1.3 recv comm 1 0 peer 0 tag 0 stream 1 <0 grouped
1.4 recv comm 1 100 peer 0 tag 1 stream 1 <0 grouped
1.5 recv comm 1 200 peer 0 tag 2 stream 1 <0 grouped
`},
		{name: "kernels that overlap on a stream", make: func() *maker {
			return twoProcesses(func(p *testProcess, rank int) {
				p.init(hash, 0x1, rank, 2)
				p.allReduce(hash, 0x10, 400, 0, 7, 5000, 6000)
				p.allReduce(hash, 0x10, 400, 0, 7, 5900, 7000)
			})
		}, want: `nodes [0 0]
comm 0x1 [0 1]
0.0 calc 0s stream 1
0.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
0.2 calc 0s stream 1 <1
0.3 coll allreduce comm 1 400/0 root 0 stream 1 <2
1.0 calc 0s stream 1
1.1 coll allreduce comm 1 400/0 root 0 stream 1 <0
1.2 calc 0s stream 1 <1
1.3 coll allreduce comm 1 400/0 root 0 stream 1 <2
`, warnings: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := test.make().write(t, t.TempDir())
			trace, warnings, err := readFiles(test.options, path)
			if err != nil {
				t.Fatal(err)
			}
			if got := list(trace); got != test.want {
				t.Errorf("got\n%s, want\n%s", got, test.want)
			}
			if len(warnings) != test.warnings {
				t.Errorf("warnings: %q, want %d", warnings, test.warnings)
			}
			if problems := dag.Validate(trace); len(problems) > 0 {
				t.Errorf("not valid: %v", problems)
			}
			files, _ := filepath.Glob(filepath.Dir(path) + "/*")
			if len(files) != 1 {
				t.Errorf("files left: %q", files)
			}
		})
	}
}

func mustRead(t testing.TB, paths ...string) *dag.Trace {
	t.Helper()
	trace, _, err := readFiles(format.ReadOptions{}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// TestChannels has a group whose second collective is done by channel 1 alone, for the first has filled channel 0. That
// matters only where the channels' rings differ.
func TestChannels(t *testing.T) {
	for _, test := range []struct {
		second []int // ring of channel 1
		want   string
	}{
		{[]int{0, 1, 2}, `"channels":[[0,100000,524288,65536]],"grouped":true}}`},
		{[]int{0, 2, 1}, `"channels":[[1,100000,524288,65536]],"grouped":true}}`},
	} {
		m := newMaker("a")
		for rank := range 3 {
			p := m.process(int64(101 + rank))
			p.init(0xabc, 0x1, rank, 3)
			at := test.second[rank] // the ring is its own inverse
			p.mark("commHash 0xabc Rings [1] %d->%d->%d", test.second[(at+2)%3], rank, test.second[(at+1)%3])
			p.groupStart()
			p.call("AllReduce", 0xabc, 0x10, 400000, "red_op 0,")
			p.call("Broadcast", 0xabc, 0x10, 1600000, "root 2,")
			g := p.push("ncclGroupEnd():")
			p.mark("collType 0 root 2 redOp 0 algo 1 proto 2 commHash 0xabc stream 0x10 data_size 1600000 type_size 1 " +
				"chunkSize 524288 chunkCount 524288 chunkSteps 1 sliceSteps 1 stepSize 524288")
			for _, work := range []int{1003520, 596480} {
				p.mark("nWarps 17 count 1600000 chunkCount 524288 workCount %d lastChunkCount 524288 workOffset 0 sendbuff 1000 "+
					"recvbuff 1000", work)
			}
			p.detail(opAllReduce, 0xabc, 0x10, 400000)
			p.launch("Broadcast_x", int64(rank), 7, 1000, 2000)
			p.pop(g)
		}
		trace := mustRead(t, m.write(t, t.TempDir()))
		for rank := range trace.Ranks {
			r := trace.Ranks[rank]
			bcast := `"channels":[[0,1003520,524288,524288],[1,596480,524288,524288]],"in_place":true}}`
			if got := r.Attrs.At(1); !strings.HasSuffix(got, bcast) {
				t.Errorf("ring %v, rank %d: %s", test.second, rank, got)
			}
			if got := r.Attrs.At(2); !strings.HasSuffix(got, test.want) {
				t.Errorf("ring %v, rank %d: %s", test.second, rank, got)
			}
		}
		rings := fmt.Sprintf(`"rings":[[0,1,2],[%d,%d,%d]]`, test.second[0], test.second[1], test.second[2])
		if !strings.Contains(trace.Attrs, rings) {
			t.Errorf("%s, want %s", trace.Attrs, rings)
		}
	}
}
