package formats

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// inline returns a sample of one file.
func inline(name, text string) sample { return sample{files: []file{{name, text}}} }

// stored returns a sample of files of the repository.
func stored(folder string, names ...string) sample {
	var s sample
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			panic(err)
		}
		s.files = append(s.files, file{name, string(text)})
	}
	return s
}

// limited returns a sample with a limited number of damaged variants, because it is large or slow to read.
func limited(s sample, limit int) sample {
	s.limit = limit
	return s
}

// lossy returns a sample whose trace the format cannot hold as it is.
func lossy(s sample) sample {
	s.loses = true
	return s
}

// model returns a sample that describes a workload model. It may ask for a trace of any size, which the model's own
// limits bound, so that the suite does not raise its numbers.
func model(s sample) sample {
	s.model = true
	return s
}

// madeOf returns a sample that the format writes.
func madeOf(trace func() *dag.Trace) sample { return sample{trace: trace} }

// exchange returns a trace of two ranks that compute and send each other a message. Every format of messages holds it.
func exchange() *dag.Trace {
	b := dag.NewBuilder(2)
	first, second := b.Rank(0), b.Rank(1)
	first.Send(1, 4096, 0, first.Calc(2*dag.Millisecond))
	first.Recv(1, 512, 1)
	second.Send(0, 512, 1, second.Calc(5*dag.Millisecond, second.Recv(0, 4096, 0)))
	return b.Trace()
}

// flows returns a trace of messages that are sent at given times. Every list of flows holds it.
func flows() *dag.Trace {
	b := dag.NewBuilder(3)
	for k, f := range []struct{ source, destination int32 }{{0, 1}, {2, 0}, {1, 2}} {
		b.Rank(int(f.source)).Add(dag.Op{Kind: dag.Send, Peer: f.destination, Bytes: 1000 * int64(k+1), Tag: int64(k),
			Release: dag.Time(k) * 7 * dag.Microsecond})
		b.Rank(int(f.destination)).Recv(f.source, 1000*int64(k+1), int64(k))
	}
	return b.Trace()
}

// accesses returns a trace of storage accesses of two units. Every format of storage accesses holds it.
func accesses() *dag.Trace {
	b := dag.NewBuilder(2)
	for k := range 5 {
		unit := k % 2
		b.Rank(unit).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read + dag.Subkind(k%2), Peer: int32(unit), Tag: int64(k) * 4096,
			Bytes: 512, Release: dag.Time(k) * 13 * dag.Microsecond})
	}
	return b.Trace()
}

// everything returns a trace with a value of every field on ops of every kind.
func everything() *dag.Trace {
	b := dag.NewBuilder(3)
	*b.Meta() = dag.Meta{Title: "everything", Nodes: []int32{1, 0, 0}, Jobs: []string{"a", "b"}, Attrs: `{"x":1}`}
	pair := b.AddComm(dag.NewComm("pair", []int32{1, 0}))
	for rank := range 2 {
		r := b.Rank(rank)
		r.KeepOrder()
		r.Add(dag.Op{Duration: 3 * dag.Microsecond, Flops: 1e6, Stream: 2, Host: 1, Name: "calc é", Job: 1})
		r.Add(dag.Op{Kind: dag.Send, Peer: int32(1 - rank), Bytes: 100, Tag: 7, Comm: pair, NIC: 1, Release: 5}, 0)
		r.Add(dag.Op{Kind: dag.Recv, Peer: int32(1 - rank), Bytes: 100, Tag: 7, Comm: pair, Timed: true,
			MeasuredStart: 10, MeasuredEnd: 20})
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Bytes: 10, RecvBytes: 20, Comm: pair, Dims: 3,
			Priority: -2}, 0, 1)
		r.Add(dag.Op{Kind: dag.Mem, Subkind: dag.Store, Bytes: 64, Attrs: `{"y":[2]}`})
		r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Write, Bytes: 512, Tag: 4096, Peer: 1})
		r.Requires(5, 0)
		r.Requires(4, 0)
		r.RequiresStart(5, 1)
	}
	return b.Trace()
}

// pytorchNode returns a node of an execution trace of PyTorch.
func pytorchNode(id, name, caller, more string) string {
	return `{"id":` + id + `,"name":"` + name + `","ctrl_deps":` + caller +
		`,"inputs":{"values":[],"shapes":[],"types":[]},"outputs":{"values":[],"shapes":[],"types":[]},"attrs":[` +
		`{"name":"rf_id","value":1},{"name":"fw_parent","value":0},{"name":"seq_id","value":1},{"name":"scope","value":0},` +
		`{"name":"tid","value":1},{"name":"fw_tid","value":0},{"name":"op_schema","value":""}]` + more + "}"
}

var pytorchSample = `{"schema":"1.1.1-chakra.1.0.0","pid":1,"time":"t","start_ts":1,"finish_ts":2,"nodes":[` + "\n" +
	strings.Join([]string{
		pytorchNode("1", "[pytorch|profiler|execution_trace|thread]", "0", ""),
		pytorchNode("2", "aten::mm", "1", `,"exclusive_dur":3`),
		pytorchNode("3", "kernel", "2", `,"cat":"kernel","exclusive_dur":8.5,"stream":7`),
	}, ",\n") + "\n]}\n"

const (
	workloadGraph = `{"workload_name": "w", "workload_graph": [
{"Id": 5, "Name": "a", "NodeType": 4, "data_deps": [], "ctrlDeps": [], "runtime": 7, "is_cpu_op": true,
 "tensor_size": 9},
{"Id": 6, "Name": "b", "NodeType": 7, "data_deps": [5], "is_cpu_op": false, "comm_type": 2, "comm_size": 64},
{"Id": 10, "Name": "d", "NodeType": 2, "data_deps": [6], "runtime": 1}
], "ngpus": 8, "soc": "s"}
`
	spcSample = "0,303567,3584,w,0.000000\n1,1458,4096,R,0.026214\n0,303574,512,r,0.026214\n"
	msrSample = "128166372003061629,hm,0,Read,383496192,32768,413\n128166372003061629,hm,1,Write,7014609920,24576,0\n" +
		"128166372013061630,web,0,write,0,0,1\n"
	blkparseSample = `  8,0    1        2     0.000000500  3013  Q   R 63 + 8 [dd]
  8,0    1        4     0.000004000  3013  D   R 63 + 8 [dd]
259,10   3        1     0.000005000     0  D FWFSM 4096 + 16 [kworker/3:1H]
CPU0 (sda):
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB
`
	fioSample = `fio version 3 iolog
2 /dev/sdb add
2 b,1 add
3 /dev/sdb open
3 b,1 open
878 b,1 write 0 16384
900 /dev/sdb read 4096 512
903 /dev/sdb write 4096 512
901 b,1 sync 0 0
950 b,1 close
950 /dev/sdb close
`
	fioSample2      = "fio version 2 iolog\nf add\nf open\nf write 0 512\nf wait 150 0\nf read 0 512\nf close\n"
	diskSimSample   = "0.000000 1 303567 7 0\n26.214001 0 303574 8 1\n26.214001 1 0 16 1\n"
	mqSimSample     = "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n"
	blktracerSample = "Attaching 3 probes...\n1,2048,4096,R,1500\n0,8,512,WS,1500\n0,0,0,FN,1600\n" +
		"3,16,8192,FWFSM,2000000001\n"
	trafpyJSON = `{"flow_id": ["flow_2", "flow_1"], "sn": ["server_0", "server_3"], ` +
		`"dn": ["server_3", "server_1"], "flow_size": [25.0, 100.0], "event_time": [0.0, 12.5], ` +
		`"establish": [1, 1], "index": [0, 1]}`
	trafpyCSV = ",flow_id,sn,dn,flow_size,event_time,establish,index\n0,flow_2,server_0,server_3,25.0,0.0,1,0\n" +
		"1,\"a,b\",server_3,server_1,100.0,12.5,1,1\n"
	htsimSample = `Nodes 16
Connections 4
Triggers 2
Failures 1
0->5 id 1 start 1000000 size 65536 send_done_trigger 1
5->10 id 2 trigger 1 size 65536 send_done_trigger 2
5->15 id 3 trigger 2 size 65536
2->0 id 4 start 0 size 1500
trigger id 1 oneshot
trigger id 2 oneshot
failure switch_type TOR switch_id 1 link_id 2
`
	hpccSample = "3\n0 1 3 100 5000 2.000000000\n2 1 3 100 70 2.000000100\n1 0 4 200 9 2.5\n"
)

// schedule are the problems of a schedule as a whole. Formats with dependencies and the two ends of each message do not
// look for them: they read what a damaged file says.
var schedule = []dag.Class{dag.BadPeer, dag.Cycle, dag.BadCollective, dag.UnmatchedSend, dag.UnmatchedRecv}

// subjects returns the formats in the order of the registry, with their samples.
func subjects() []subject {
	return []subject{
		// The store holds every trace, and tracecat checks it.
		{format: "store", unsound: append(schedule, dag.BadComm, dag.BadTrace), samples: []sample{madeOf(everything)}},
		// GOAL has sends with any tag.
		{format: "goalbin", unsound: append(schedule, dag.BadField), claims: []string{
			"\x7f\x10\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x01\x01" + strings.Repeat("\xff", 64),
		}, samples: []sample{
			stored("goal/testdata/vectors", "spec_example.bin"), madeOf(exchange),
		}},
		{format: "goal", unsound: append(schedule, dag.BadField), claims: []string{
			"num_ranks 4294967295\nrank 0 {\n}\n", "num_ranks 1\nrank 0 {\ncalc 18446744073709551616\n}\n",
		}, samples: []sample{
			stored("goal/testdata/vectors", "spec_example.goal"),
			lossy(stored("goal/testdata/vectors", "syntax_quirks.goal")), // names of ops are no labels
			madeOf(exchange),
		}},
		// Flows and messages of VEF have one size: Losses reports no receive that is larger than its message.
		// VEF has records in the order of their times. Computation becomes the delays of records. The round trip of bytes is
		// checked here, that of the timeline in package vef.
		{format: "vef", rewrites: true, oneSize: true, claims: []string{
			"VEF3 2147483647 1 1 0 0 FALSE 1000\nC0 0 1\n0 0 1 8 0 10 -1\n", "VEF3 2 9223372036854775807 0 0 0 FALSE 1000\n",
			"VEF3 2 1 2147483647 0 0 FALSE 1000\nC0 0 1\n",
		}, samples: []sample{
			stored("vef/testdata/vectors", "p2p-recv-dep.vef"), stored("vef/testdata/vectors", "mixed.vef"),
			model(stored("vef/testdata/vectors", "ext-dcnw-defaults.vef")),
		}},
		{format: "nsys", samples: []sample{
			limited(stored("nsys/testdata/vectors/08_p2p_single/derived", "nsys_report_node00.NVTX_EVENTS.csv",
				"nsys_report_node00.CUPTI_ACTIVITY_KIND_KERNEL.csv", "nsys_report_node00.StringIds.csv",
				"nsys_report_node01.NVTX_EVENTS.csv", "nsys_report_node01.CUPTI_ACTIVITY_KIND_KERNEL.csv",
				"nsys_report_node01.StringIds.csv"), 400),
			limited(stored("nsys/testdata/vectors/08_p2p_single", "nsys_report_node00.sqlite", "nsys_report_node01.sqlite"), 60),
		}},
		{format: "mpi", unsound: schedule, samples: []sample{
			stored("mpi/testdata/own-timeback", "pmpi-trace-rank-0.txt", "pmpi-trace-rank-1.txt"),
		}},
		// Messages have streams of their own. The attributes of ops that were read are those of nodes.
		{format: "chakra", unsound: schedule, ownAttrs: []string{"*"}, samples: []sample{
			stored("chakra/testdata/et", "deps_mixed.et"), lossy(madeOf(exchange)),
		}},
		{format: "chakrajson", unsound: schedule, ownAttrs: []string{"*"}, samples: []sample{lossy(madeOf(exchange))}},
		{format: "astratext", samples: []sample{stored("chakra/astratext/testdata", "micro.txt")}},
		{format: "simai", claims: []string{
			"HYBRID_TRANSFORMER all_gpus: 9223372036854775807\n1\na -1 1 ALLREDUCE 1 1 NONE 0 1 ALLREDUCE 9 1\n",
			"HYBRID_TRANSFORMER all_gpus: 1048576\n1\na -1 1 ALLREDUCE 1 1 NONE 0 1 ALLREDUCE 9 1\n",
		}, samples: []sample{stored("../testdata/simai", "moe.txt")}},
		// Requests that are waited for become calcs. Lines keep what the ops alone do not tell.
		{format: "simgrid", unsound: append(schedule, dag.BadField), rewrites: true, ownAttrs: []string{"simgrid"},
			claims: []string{
				"0 init\n16777215 init\n", "0 init\n0 alltoall 9007199254740992 9007199254740992 14 14 14\n0 finalize\n",
			}, samples: []sample{stored("../testdata/simgrid", "stencil.ti"), lossy(madeOf(exchange))}},
		{format: "pytorch", unsound: schedule, samples: []sample{inline("trace.0.json", pytorchSample)}},
		{format: "stg", unsound: schedule, samples: []sample{stored("chakra/stg/testdata", "plain.0.json", "plain.1.json")}},
		{format: "workloadgraph", unsound: schedule, samples: []sample{inline("graph.json", workloadGraph)}},
		{format: "kineto", samples: []sample{limited(stored("../testdata/kineto", "rank0.json", "rank1.json"), 400)}},
		// Attributes keep a line that is not in the style of the others, and the place among records of the same time.
		{format: "spc", sorted: true, ownAttrs: []string{"spc", "tie"}, samples: []sample{
			inline("x.spc", spcSample), madeOf(accesses),
		}},
		{format: "msr", samples: []sample{inline("x.csv", msrSample)}},
		{format: "blkparse", samples: []sample{inline("x.txt", blkparseSample)}},
		{format: "fio", sorted: true, ownAttrs: []string{"tie"}, samples: []sample{
			inline("x.log", fioSample), inline("y.log", fioSample2), madeOf(accesses),
		}},
		{format: "disksim", samples: []sample{inline("x.trc", diskSimSample)}},
		// Whole times may be the milliseconds of DiskSim as well as the nanoseconds of MQSim.
		{format: "mqsim", detected: []string{"disksim", "mqsim"}, samples: []sample{inline("x.trace", mqSimSample)}},
		{format: "blktracer", samples: []sample{inline("x.csv", blktracerSample)}},
		{format: "trafpy", sorted: true, oneSize: true, ownAttrs: []string{"trafpy"}, samples: []sample{
			inline("x.json", trafpyJSON), madeOf(flows),
		}},
		{format: "trafpycsv", sorted: true, oneSize: true, ownAttrs: []string{"trafpy"}, samples: []sample{
			inline("x.csv", trafpyCSV), madeOf(flows),
		}},
		{format: "htsim", sorted: true, oneSize: true, ownAttrs: []string{"htsim"}, claims: []string{
			"Nodes 1048576\nConnections 1\n0->1 id 1 start 0 size 1\n",
			"Nodes 2\nConnections 2147483647\n0->1 id 1 start 0 size 1\n",
		}, samples: []sample{inline("x.cm", htsimSample), madeOf(flows)}},
		{format: "hpcc", sorted: true, oneSize: true, ownAttrs: []string{"hpcc"}, claims: []string{
			"9223372036854775807\n0 1 3 100 5000 2.0\n", "1\n1048575 1 3 100 5000 2.0\n",
		}, samples: []sample{inline("x.flow", hpccSample), madeOf(flows)}},
	}
}
