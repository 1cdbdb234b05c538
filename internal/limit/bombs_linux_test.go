package limit_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tracedag/tracedag"
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/units"
)

var all = flag.Bool("bombs.all", false, "run all bombs, which takes minutes")

const (
	limit = 64 << 20 // of the programs

	// margin is the memory beyond the limit that a program may take: code and data of the program, which the limit does
	// not count, and what it fills between two samples and during a garbage collection.
	margin = 128 << 20
)

// roleEnv says what the process of the test does instead of the tests: run a program, or launch and measure one.
const (
	roleEnv = "TRACEDAG_TEST_BOMBS"
	program = "program"
	launch  = "launch"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case program:
		os.Exit(tracedag.Main(os.Args, tracedag.Extensions{}))
	case launch:
		os.Exit(launched())
	}
	os.Exit(m.Run())
}

// launched runs a program and writes its peak memory to file 3. Linux counts the memory of the process that starts
// another one as that of the other, so the tests, which make large files, do not start programs themselves.
func launched() int {
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), roleEnv+"="+program)
	err := cmd.Run()
	if cmd.ProcessState == nil {
		panic(err)
	}
	fmt.Fprint(os.NewFile(3, "peak"), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
	return cmd.ProcessState.ExitCode()
}

// result is the end of a program.
type result struct {
	status int
	stderr string
	peak   int64 // resident memory in bytes
}

// start runs a program in a folder. The folder "tmp" in it is that of temporary files.
func start(t *testing.T, folder string, stdin io.Reader, args ...string) result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	peak, err := os.Create(filepath.Join(folder, "peak"))
	if err != nil {
		t.Fatal(err)
	}
	defer peak.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(self, append(args, "--max-memory", units.FormatSize(limit))...)
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = folder, stdin, &stderr, []*os.File{peak}
	cmd.Env = append(os.Environ(), roleEnv+"="+launch, "TMPDIR="+filepath.Join(folder, "tmp"), "GOMEMLIMIT=off")
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	r := result{status: cmd.ProcessState.ExitCode(), stderr: stderr.String()}
	if text, err := os.ReadFile(peak.Name()); err != nil {
		t.Fatal(err)
	} else if r.peak, err = strconv.ParseInt(string(text), 10, 64); err != nil {
		t.Fatal(err)
	}
	return r
}

// A bomb is a command whose input or parameters ask for much more memory than the limit.
type bomb struct {
	name    string
	stdin   io.Reader
	args    []string
	message string // pattern in the error; "": one that names the limit or explains the file
	fine    bool   // the trace needs little memory, although its file is large: the program succeeds
	rare    bool   // runs with -bombs.all only
}

const (
	tooMuch  = `more (memory )?than the limit of 64MiB; set a higher limit with --max-memory`
	longLine = `expected a shorter line, found more than 4MiB, 1/16 of the limit of memory; set a higher limit with ` +
		`--max-memory`
)

// Each bomb ends with an error that names its file, the limit and the remedy, or that the file is wrong. The memory of
// the process remains below the limit and a margin, and no file remains.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: the race detector changes what is allocated")
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	write := func(name string, content ...[]byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), bytes.Join(content, nil), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range bombs(write) {
		if b.rare && !*all {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			r := start(t, folder, b.stdin, b.args...)
			if r.peak > limit+margin {
				t.Errorf("%q takes %d MiB", b.args, r.peak>>20)
			}
			if b.fine != (r.status == 0) || r.status > 1 {
				t.Errorf("%q: status %d, %.300s", b.args, r.status, r.stderr)
			}
			if strings.Contains(r.stderr, "goroutine") || strings.Contains(r.stderr, "internal error") {
				t.Errorf("%q: %.1000s", b.args, r.stderr)
			}
			if !regexp.MustCompile(b.message).MatchString(r.stderr) {
				t.Errorf("%q: %.300s, want %s", b.args, r.stderr, b.message)
			}
			if left := leftovers(t, folder); len(left) > 0 {
				t.Errorf("%q left %q", b.args, left)
			}
		})
	}
}

// leftovers removes outputs and temporary files and returns their names.
func leftovers(t *testing.T, folder string) (left []string) {
	t.Helper()
	for _, pattern := range []string{"tmp/*", "out*", ".tracedag*"} {
		names, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			left = append(left, filepath.Base(name))
			os.Remove(name)
		}
	}
	return left
}

// bombs creates the files of the bombs and returns them.
func bombs(write func(name string, content ...[]byte)) []bomb {
	return slices.Concat(compressed(write), objects(write), counts(write), parameters(write), pipes())
}

// compressed are small files with large contents, for every format.
func compressed(write func(name string, content ...[]byte)) (list []bomb) {
	const size = 4 << 30
	for _, c := range []struct {
		name string
		byte byte
		size int64
	}{{"zeros", 0, size}, {"nines", '9', size}, {"brackets", '[', size}, {"quotes", '"', size}, {"ones", 1, size},
		{"lines", '\n', 64 << 20}} {
		write(c.name+".zst", repeated(c.byte, c.size))
		for _, f := range formats.All.Readable() {
			if f.Name == "nsys" && c.byte == '"' {
				continue // a table without columns, see nsys.csv
			}
			b := bomb{name: f.Name + "/" + c.name, args: []string{"tracecat", "--from", f.Name, c.name + ".zst"}}
			b.message = c.name + `\.zst`
			b.rare = c.byte != 0 || !slices.Contains([]string{"store", "goal", "chakra", "trafpycsv", "pytorch"}, f.Name)
			b.fine = c.name == "lines" && f.Name == "mpi" // a rank without calls
			list = append(list, b)
		}
	}
	write("wide.zst", []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 3, 0, 0}) // window of 3.75 TiB
	write("zeros.gz", gzipped(make([]byte, 1<<20), 1<<6))
	write("nested.zst", zstdFrame(gzipped(make([]byte, 1<<20), 1<<6)))
	goal := []byte("num_ranks 1\nrank 0 {\ncalc 1\n}\n")
	write("blank.goal.zst", zstdFrame(goal[:12]), repeated('\n', 256<<20), zstdFrame(goal[12:]))
	write("calcs.goal.zst", zstdFrame([]byte("num_ranks 1\nrank 0 {\n")), zstdFrame(bytes.Repeat([]byte("calc 1\n"), 1<<12), 1<<11))
	write("reads.spc.zst", zstdFrame(bytes.Repeat([]byte("0,1,512,R,0.5\n"), 1<<12), 1<<11))
	write("flows.txt.zst", zstdFrame([]byte("9000000000\n")), zstdFrame(bytes.Repeat([]byte("0 1 3 100 5000 2.0\n"), 1<<12), 1<<11))
	return append(list,
		bomb{name: "window", args: []string{"tracecat", "wide.zst"}, message: `wide\.zst: .*window`},
		bomb{name: "detected", args: []string{"tracecat", "zeros.zst"}, message: "unknown format"},
		bomb{name: "gzip", args: []string{"tracecat", "--from", "chakra", "zeros.gz"}, message: tooMuch},
		bomb{name: "gzip line", args: []string{"tracecat", "--from", "goal", "zeros.gz"}, message: longLine},
		bomb{name: "nested", args: []string{"tracecat", "nested.zst"}, message: "unknown format"},
		bomb{name: "blank lines", args: []string{"tracecat", "blank.goal.zst"}, fine: true, rare: true},
		bomb{name: "GOAL ops", args: []string{"traceconv", "calcs.goal.zst", "-o", "out.bin"},
			message: `calcs\.goal\.zst: .*` + tooMuch},
		bomb{name: "block-storage accesses", args: []string{"traceconv", "--from", "spc", "reads.spc.zst", "-o", "out"},
			message: `reads\.spc\.zst: .*` + tooMuch},
		bomb{name: "flows", args: []string{"simulate", "--from", "hpcc", "flows.txt.zst"},
			message: `flows\.txt\.zst: .*` + tooMuch},
	)
}

// objects are texts of JSON in which one value takes much memory, or is nested deeply.
func objects(write func(name string, content ...[]byte)) (list []bomb) {
	heads := map[string][2]string{
		"pytorch":       {`{"schema":"1.1.1-chakra.1.0.0","pid":1,"nodes":[`, `{"schema":"1.1.1-chakra.1.0.0","x":`},
		"stg":           {`{"schema":"1","nodes":[`, `{"schema":`},
		"workloadgraph": {`{"workload_name": "w", "workload_graph": [`, `{"workload_name": `},
		"chakrajson":    {`{"version":"1"}` + "\n", `{"version":`},
		"trafpy":        {`{"flow_id": [`, `{"flow_id": [`},
		"nsys":          {`{"Type":`, `{"Type":`},
	}
	for _, f := range []string{"pytorch", "stg", "workloadgraph", "chakrajson", "trafpy", "nsys"} {
		for _, c := range []struct{ name, unit string }{
			{"list", "0,"}, {"string", ""}, {"depth", "["}, {"objects", `{"id":1},`}, {"names", `{"a":`},
		} {
			b := bomb{name: f + "/" + c.name, rare: f != "stg" || c.name != "string"}
			if b.rare && !*all { // its file takes time
				continue
			}
			name := f + "-" + c.name + ".jsonl.zst"
			text := zstdFrame(bytes.Repeat([]byte(c.unit), 1<<15), 1<<11)
			switch c.name {
			case "string":
				text = slices.Concat(zstdFrame([]byte(heads[f][1]+`"`)), repeated('a', 1<<30))
			default:
				text = slices.Concat(zstdFrame([]byte(heads[f][0])), text)
			}
			write(name, text)
			b.args, b.message = []string{"tracecat", "--from", f, name}, regexp.QuoteMeta(name)
			list = append(list, b)
		}
	}
	write("run.et", []byte{0})
	write("groups.json.zst", zstdFrame([]byte(`{"1": [`)), zstdFrame(bytes.Repeat([]byte("0,"), 1<<15), 1<<11))
	return append(list, bomb{name: "groups", args: []string{"tracecat", "--comm-groups", "groups.json.zst", "run.et"},
		message: `groups\.json\.zst`})
}

// counts are headers that claim large numbers.
func counts(write func(name string, content ...[]byte)) (list []bomb) {
	add := func(name, message string, args ...string) {
		list = append(list, bomb{name: name, args: args, message: message})
	}
	for _, n := range []string{"1000000000", "4611686018427387904"} {
		text := func(name, content string) string {
			name = n[:2] + name
			write(name, []byte(fmt.Sprintf(content, n)))
			return name
		}
		for _, c := range []struct{ name, content string }{
			{"ranks.goal", "num_ranks %s\nrank 0 {\n}\n"},
			{"tasks.vef", "VEF3 %s 1 0 0 0 FALSE 1000\n0 0 1 8 0 10 -1\n"},
			{"messages.vef", "VEF3 2 %s 0 0 0 FALSE 1000\n"},
			{"comms.vef", "VEF3 2 1 %s 0 0 FALSE 1000\nC0 0 1\n"},
			{"model.vef", "VEF3 16 %s 0 0 0 FALSE 1000\nEXT DCNW\nGOOGLE_ALL\n"},
			{"tasks-model.vef", "VEF3 %s 100 0 0 0 FALSE 1000\nEXT DCNW\nGOOGLE_ALL\n"},
			{"nodes.cm", "Nodes %s\nConnections 1\n0->1 id 1 start 0 size 1\n"},
			{"connections.cm", "Nodes 2\nConnections %s\n0->1 id 1 start 0 size 1\n"},
			{"source.cm", "0->%s id 1 start 0 size 1\n"},
			{"flows.flow", "%s\n0 1 3 100 5000 2.0\n"},
			{"destination.flow", "1\n0 %s 3 100 5000 2.0\n"},
		} {
			name := text(c.name, c.content)
			list = append(list, bomb{name: "count " + name, args: []string{"tracecat", name},
				message: regexp.QuoteMeta(name), rare: len(list)%4 != 0})
		}
	}
	for k, b := range [][]byte{
		binaryGOAL(4_000_000_000),
		binaryGOAL(1, 30, 1<<40, 1<<31-1, 0),
		binaryGOAL(1, 30, 1<<40, 1<<30, 1<<30),
		binaryGOAL(1, 30, 39*(1<<30)+30, 1<<30, 0),
	} {
		list = append(list, bomb{name: fmt.Sprintf("goalbin %d", k), stdin: bytes.NewReader(b), args: []string{"tracecat"},
			message: "<stdin>"})
	}
	var file bytes.Buffer
	claim := &dag.Trace{Comms: []dag.Comm{dag.World(1)}, Ranks: dag.NewRanks(1)}
	claim.Ranks[0].Kind = make([]dag.Kind, 16<<20)
	if err := store.Write(&file, claim); err != nil {
		panic(err)
	}
	write("ops.parquet", file.Bytes())
	add("rows of a store", `ops\.parquet: 16777216 ops of one batch need at least 151MB of memory, `+tooMuch, "tracecat",
		"ops.parquet")
	add("rows of a store, simulated", `ops\.parquet: 16777216 ops of one batch .*`+tooMuch, "simulate", "ops.parquet")
	return list
}

// binaryGOAL returns the beginning of a GOAL binary: its number of ranks, start and end of rank 0, and its numbers of
// ops and roots.
func binaryGOAL(ranks uint32, more ...uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, 4223)
	b = append(binary.LittleEndian.AppendUint32(b, ranks), 0, 0)
	if len(more) == 4 {
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, more[0]-8), more[1]-8)
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(more[2])), uint32(more[3]))
	}
	return append(b, make([]byte, 1<<16)...)
}

// parameters are flags that ask for large traces, networks and results.
func parameters(write func(name string, content ...[]byte)) (list []bomb) {
	write("small.goal", []byte("num_ranks 2\nrank 0 {\nsend 8b to 1 tag 0\n}\nrank 1 {\nrecv 8b from 0 tag 0\n}\n"))
	write("all.goal", []byte("num_ranks 2\nrank 0 {\ncalc 1\n}\nrank 1 {\ncalc 1\n}\n"))
	write("layers.txt", []byte("DATA\n1\nl -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n"))
	for _, command := range []string{
		"tracegen collective --repeat 1000000000 -o out.parquet",
		"tracegen collective --ranks 16777216 -o out.goal",
		"tracegen pattern ring --ranks 16777216 -o out.bin",
		"tracegen pattern alltoall --iterations 16777216 -o out.bin",
		"tracegen schedgen allreduce_ring --ranks 16777216 -o out.parquet",
		"tracegen masterworker --tasks 100000000 -o out.parquet",
		"tracegen nbody --steps 16777216 -o out.parquet",
		"tracegen stencil --iterations 10000000 -o out.parquet",
		"tracegen fft --iterations 1048576 -o out.parquet",
		"tracegen horovod --gatherv-total-bytes 1000000 -o out.goal",
		"tracegen dcnw --ranks 1048576 --messages 1048576 -o out.parquet",
		"tracegen storage --records 16777216 -o out.spc",
		"traceconv --repeat 100000000 small.goal -o out.parquet",
		"traceconv --job small.goal,count=1000000 -o out.parquet",
		"traceconv --from astratext --ranks 4000000 layers.txt -o out.goal",
		"simulate --backend packet --topology torus:dims=100x100x100 small.goal",
		"simulate --backend packet --topology fattree:k=128 small.goal",
		"simulate --backend packet --topology star:hosts=4000000 small.goal",
		"simulate --backend flit --topology dragonfly:p=16,a=32,h=16 small.goal",
		"simulate --backend flit --topology torus:dims=100x100x100 small.goal",
	} {
		args := strings.Fields(command)
		b := bomb{name: command, args: args, message: tooMuch}
		b.rare = len(list)%5 != 0
		list = append(list, b)
	}
	return list
}

// pipes are endless pipes.
func pipes() (list []bomb) {
	for _, c := range []struct{ name, head, from, message string }{
		{"endless store", "", "store", `<stdin>: offset 0: expected "PAR1"`},
		{"endless Parquet", "PAR1", "", "<stdin>: .*temporary file.* limit of 64MiB"},
		{"endless database", "", "nsys", "<stdin>: expected an nsys export"},
		{"endless SQLite", "SQLite format 3\x00", "", "<stdin>: .*temporary file.* limit of 64MiB"},
		{"endless zeros", "", "", "<stdin>: unknown format"},
		{"endless Chakra", "", "chakra", "<stdin>: .*" + tooMuch},
		{"endless line", "num_ranks 1", "", "<stdin>:1: " + longLine},
	} {
		b := bomb{name: c.name, stdin: &endless{head: c.head}, args: []string{"tracecat"}, message: c.message}
		if c.from != "" {
			b.args = append(b.args, "--from", c.from)
		}
		list = append(list, b)
	}
	return list
}

// endless is a reader of zeros after a head. Reading more than the limit and a margin panics.
type endless struct {
	head string
	read atomic.Int64
}

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	at := e.read.Load()
	if at < int64(len(e.head)) {
		b = b[:copy(b, e.head[at:])]
	}
	if e.read.Add(int64(len(b))) > limit+margin {
		return 0, fmt.Errorf("read more than %d bytes", limit+margin)
	}
	return len(b), nil
}

// repeated returns a zstd frame of n times a byte, for a multiple of 128 KiB. Each 128 KiB take four bytes of it.
func repeated(b byte, n int64) []byte {
	const block, windowOfBlock = 1 << 17, (17 - 10) << 3
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, windowOfBlock}
	for ; n > 0; n -= block {
		head := uint32(block<<3 | 1<<1)
		if n <= block {
			head |= 1
		}
		frame = append(frame, byte(head), byte(head>>8), byte(head>>16), b)
	}
	return frame
}

// zstdFrame returns a zstd frame of the text, once or a number of times.
func zstdFrame(text []byte, times ...int) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err)
	}
	defer w.Close()
	for range append(times, 1)[0] {
		w.Write(text)
	}
	w.Close()
	return out.Bytes()
}

// gzipped returns the text a number of times, compressed.
func gzipped(text []byte, times int) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		panic(err)
	}
	for range times {
		w.Write(text)
	}
	w.Close()
	return out.Bytes()
}
