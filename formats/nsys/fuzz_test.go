package nsys

import (
	"bytes"
	"database/sql/driver"
	"os"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// seedAnnotations are annotations of each kind.
var seedAnnotations = []string{
	"commHash 0x7c21e0a94d11b302 commId 0x93b1cc02 rank 0 nranks 2 pid 40008",
	"commHash 0x7c21e0a94d11b302 Rings [0] 1->0->1 pid 40008",
	"commHash 0x7c21e0a94d11b302 Trees [0] 1/-1/-1->0->-1 pid 40008",
	"2 coll channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer, pid 40008",
	"ncclAllReduce(): commHash 0x7c21e0a94d11b302, stream 0x55d0c0114000, data_size 1048576, type_size 4, red_op 0, pid 40008",
	"collType 4 root 0 redOp 0 algo 1 proto 2 commHash 0x7c21e0a94d11b302 stream 0x55d0c0114000 data_size 1048576 type_size 4 " +
		"chunkSize 2097152 chunkCount 524288 chunkSteps 4 sliceSteps 2 stepSize 524288 pid 40008",
	"nWarps 17 count 262144 chunkCount 524288 workCount 262144 lastChunkCount 65536 workOffset 0 sendbuff 139637976727552 " +
		"recvbuff 139642271694848 pid 40008",
	"ncclLaunchKernel(): pid 40008",
	"ncclGroupStart(): pid 40008",
	"ncclSend(): commHash 0x7c21e0a94d11b302, stream (nil), data_size 200000, type_size 4, receiver_rank 1, pid 40008",
	"ncclRecv(): commHash 0x7c21e0a94d11b302, stream (nil), data_size 200000, type_size 4, sender_rank 1, pid 40008",
	"ncclGroupEnd(): pid 40008",
	"Bytes 200000 nWarps 20 p2pType 1 peer 1 proto 2 countHi32 0 countLo32 200000 chunkSize 65536 pid 40008",
	"Bytes 200000 nWarps 20 p2pType 2 peer 1 proto 2 countHi32 0 countLo32 200000 chunkSize 65536 pid 40008",
	"nsys profiling start, pid: 40008",
	"nsys profiling stopped, pid: 40008",
	"Not executed in ncclkernel: comm->nRanks == 1 pid 40008",
	"comm 0x55d0c0114000 commId 0x93b1cc02 rank 1 nranks 2 pid 40008",
	"comm 0x55d0c0114000 commHash 0x7c21e0a94d11b302 Rings [0] 0->1->0 pid 40008",
	"ncclAllReduce(): comm 0x55d0c0114000, stream 0x55d0c0114000, data_size 1048576, type_size 4, red_op 0, pid 40008",
	"collType 4 root 0 redOp 0 algo 1 proto 2 comm 0x55d0c0114000 stream 0x55d0c0114000 data_size 1048576 type_size 4 " +
		"chunkSize 2097152 chunkCount 524288 chunkSteps 4 sliceSteps 2 stepSize 524288 pid 40008",
	"ncclCommInitRank", "ncclAllReduce",
}

func FuzzAnnotation(f *testing.F) {
	for _, text := range seedAnnotations {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n annotation
		if err := parseAnnotation(text, &n); err != nil {
			if n.kind == noAnnotation {
				t.Errorf("%q: an error of a text that is no note", text)
			}
			return
		}
		if n.bytes < 0 || n.nranks < 0 || n.rank < -1 || n.peer < -1 || n.channel < 0 {
			t.Errorf("%q: %+v", text, n)
		}
		if n.kind != noAnnotation && !strings.Contains(text, "pid") {
			t.Errorf("%q: a note without pid", text)
		}
	})
}

// FuzzMachine feeds sequences of annotations, each byte of the input one of those above: its text, time and thread.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 1, 2, 4, 5, 6, 7})
	f.Add([]byte{0, 8, 9, 8, 11, 10, 8, 11, 11, 12, 13, 7, 14, 4, 5, 6, 7, 15})
	f.Add([]byte{0, 1, 17, 18, 4, 5, 6, 7, 64 + 19, 64 + 20, 64 + 6, 64 + 7})
	f.Add([]byte{17, 18, 19, 5, 6, 6, 7, 7, 12, 11, 11, 128, 140, 255})
	f.Fuzz(func(t *testing.T, sequence []byte) {
		if len(sequence) > 100 {
			return // takes long, and shows nothing new
		}
		for _, lenient := range []bool{false, true} {
			r := newReport("x", &reportOptions{lenient: lenient})
			for i := range len(sequence) { // a kernel for each launch there may be
				row := kernelRow{start: int64(1000 * i), end: int64(1000*i + 500), stream: int64(i % 3), correlation: int64(i),
					device: int64(sequence[i] >> 6 & 1), globalPid: 40008 << 24, kind: kernelKind(i % 10)}
				if i%5 == 0 {
					row.graphNode = int64(i)
				}
				if err := r.addKernel(&row); err != nil {
					t.Fatal(err)
				}
			}
			index := r.byCorrelation()
			for i := range sequence {
				r.addLaunch(index, int64(100*i+10), 40008<<24|int64(sequence[i]>>6&1), int64(i))
				if i%7 == 0 {
					r.addGraphNode(int64(100*i+10), 40008<<24, int64(i), int64(i-5))
				}
			}
			r.sortLaunches()
			m := newMachine(r)
			failed := false
			for i, b := range sequence {
				row := annotationRow{start: int64(100 * i), end: int64(100*i + 50),
					globalTid: 40008<<24 | int64(b>>6&1),
					text:      seedAnnotations[int(b&31)%len(seedAnnotations)]}
				if b >= 128 {
					row.end = unknownTime
				}
				if m.annotation(&row) != nil {
					failed = true
					break
				}
			}
			if failed || m.finish() != nil || r.link() != nil {
				continue
			}
			finish(t, r)
		}
	})
}

// finish makes a trace of a report, which may fail.
func finish(t *testing.T, r *report) {
	r.host = "x"
	own := &Options{KeepEnds: true, AlignClocks: true, SyncEdges: true, MergeNonOverlap: true}
	j, err := newJob(t.Context(), []*report{r}, own, func(string, ...any) {})
	if err != nil || j.resolve() != nil {
		return
	}
	trace, err := j.trace()
	if err != nil {
		return
	}
	checkTrace(t, trace)
}

// checkTrace fails if the trace is not well-formed.
func checkTrace(t *testing.T, trace *dag.Trace) {
	t.Helper()
	for _, p := range dag.Validate(trace) {
		t.Errorf("%v", p)
	}
}

// readAny reads files, which may fail. Errors begin with the name of a file.
func readAny(t *testing.T, files ...fuzzFile) {
	for _, lenient := range []bool{false, true} {
		var inputs []*format.Input
		for _, f := range files {
			inputs = append(inputs, &format.Input{Name: f.name, Reader: bytes.NewReader(f.data), Head: f.data[:min(len(f.data), 100)]})
		}
		trace, err := Format.Read(inputs, format.ReadOptions{Lenient: lenient, Warn: func(string, ...any) {}})
		switch {
		case err == nil:
			checkTrace(t, trace)
		case strings.Contains(err.Error(), "internal error"):
			t.Error(err)
		}
	}
}

type fuzzFile struct {
	name string
	data []byte
}

const jsonStrings = `{"data":["","ncclDevKernel_SendRecv(ncclDevComm *)","ncclDevKernel_AllReduce"]}` + "\n"

// jsonSeeds are lines after the strings: a communicator, a send with its kernel, and lines that lack members.
var jsonSeeds = []string{
	`{"NvtxEvent":{"Timestamp":"1100","Text":"commHash 0xf2 commId 0xc0 rank 0 nranks 2 pid 1","GlobalTid":"16777217","EndTimestamp":"1500"}}
{"NvtxEvent":{"Timestamp":"1200","Text":"commHash 0xf2 Rings [0] 1->0->1 pid 1","GlobalTid":"16777217"}}
{"NvtxEvent":{"Timestamp":"1600","Text":"ncclSend(): commHash 0xf2, stream 0x5, data_size 20, type_size 4, receiver_rank 1, pid 1",` +
		`"GlobalTid":"16777217","EndTimestamp":"2600"}}
{"NvtxEvent":{"Timestamp":"2000","Text":"Bytes 20 nWarps 2 p2pType 1 peer 1 proto 2 countHi32 0 countLo32 20 chunkSize 6 pid 1",` +
		`"GlobalTid":"16777217"}}
{"NvtxEvent":{"Timestamp":"2100","Text":"ncclLaunchKernel(): pid 1","GlobalTid":"16777217","EndTimestamp":"2400"}}
{"TraceProcessEvent":{"startNs":"2200","correlationId":1,"globalTid":"16777217"}}
{"CudaEvent":{"startNs":"3000","endNs":"4000","correlationId":1,"deviceId":0,"streamId":"7","globalPid":"16777216",` +
		`"kernel":{"demangledName":"1"}}}
`,
	`{"NvtxEvent":{"Timestamp":1.0,"TextId":2}}`,
	`{"NvtxEvent":{"Text":"x"}}` + "\n\n" + `{"CudaEvent":{"kernel":{"shortName":2}}}` + "\n{}\n[",
}

func FuzzJSONLines(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
		f.Add([]byte(jsonStrings + seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isJSONLines(data) {
			data = append([]byte(jsonStrings), data...)
		}
		readAny(t, fuzzFile{"x.jsonl", data})
	})
}

func FuzzTables(f *testing.F) {
	tables := []string{tableAnnotations, tableKernel, tableStrings}
	f.Add([]byte(`start,end,text,globalTid
1100,1500,commHash 0xf2 commId 0xc0 rank 0 nranks 2 pid 1,16777217
1200,,commHash 0xf2 Rings [0] 1->0->1 pid 1,16777217
1600,2600,"ncclSend(): commHash 0xf2, stream 0x5, data_size 20, type_size 4, receiver_rank 1, pid 1",16777217
2000,,Bytes 20 nWarps 2 p2pType 1 peer 1 proto 2 countHi32 0 countLo32 20 chunkSize 6 pid 1,16777217
2100,2400,ncclLaunchKernel(): pid 1,16777217
`), []byte("start,end,deviceId,streamId,correlationId,globalPid,demangledName\n3000,4000,0,7,1,16777216,2\n"),
		[]byte("id,value\n2,ncclDevKernel_SendRecv(ncclDevComm *)\n"))
	f.Add([]byte("start,text\nx,\"a\nb\"\n"), []byte("end\r\n\r\n"), []byte("value,id,,\n\"\"\"\",1\n"))
	f.Fuzz(func(t *testing.T, annotations, kernels, strings []byte) {
		readAny(t, fuzzFile{"x." + tables[0] + ".csv", annotations}, fuzzFile{"x." + tables[1] + ".csv", kernels},
			fuzzFile{"x." + tables[2] + ".csv", strings})
	})
}

// FuzzDatabase reads databases in memory. Its seeds have pages of 512 bytes.
func FuzzDatabase(f *testing.F) {
	one := newMaker("a")
	p := one.process(1)
	p.init(0xabc, 0x1, 0, 1)
	p.allReduce(0xabc, 0x10, 400, 0, 7, 5000, 6000)
	texts := newMaker("b")
	texts.textIDs, texts.epoch = true, 0
	texts.process(1).init(0xabc, 0x1, 0, 2)
	for _, m := range []*maker{one, texts, newMaker("c")} {
		file, err := os.ReadFile(m.write(f, f.TempDir()))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := checkHeader(bytes.NewReader(file), int64(len(file))); err != nil {
			return
		}
		open := func(library *sqlite.Driver) (driver.Conn, error) {
			conn, err := library.Open(":memory:")
			if err != nil {
				return nil, err
			}
			return conn, conn.(interface{ Deserialize([]byte) error }).Deserialize(file)
		}
		for _, lenient := range []bool{false, true} {
			r, err := readExport("x.sqlite", open, reportOptions{lenient: lenient, syncs: true})
			if err == nil && r.link() == nil {
				finish(t, r)
			}
		}
	})
}
