package fit

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestRead reads the layouts of all tools.
func TestRead(t *testing.T) {
	tests := []struct {
		name, text, tool string
		want             []Measurement
	}{
		{"own", "test,where,bytes,ranks,seconds\npingpong,0-1,8,2,1.5e-6\r\nwindow16,0-1,8,2,2e-5\n", "csv", []Measurement{
			{Test: PingPong, Where: "0-1", Bytes: 8, Ranks: 2, Seconds: 1.5e-6},
			{Test: Window, Where: "0-1", Bytes: 8, Ranks: 2, Window: 16, Seconds: 2e-5}}},
		{"microseconds", "size,latency (us),stddev (us)\n0,1.25,0.5\n64,2,0\n", "csv", []Measurement{
			{Test: PingPong, Bytes: 0, Seconds: 1.25e-6}, {Test: PingPong, Bytes: 64, Seconds: 2e-6}}},
		{"rates", "# a comment\nbytes,bandwidth [MB/s]\n1000,10\n", "csv", []Measurement{
			{Test: PingPong, Bytes: 1000, Seconds: 1e-4}}},
		{"bits", "bytes,Mb/s\n1000,8\n", "csv", []Measurement{{Test: PingPong, Bytes: 1000, Seconds: 1e-3}}},
		{"osu latency", "\n# OSU MPI Latency Test v5.6.2\n# Size          Latency (us)\n0                       1.10\n" +
			"1024                    2.50\n", "osu", []Measurement{
			{Test: PingPong, Bytes: 0, Seconds: 1.1e-6}, {Test: PingPong, Bytes: 1024, Seconds: 2.5e-6}}},
		{"osu bandwidth", "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n# Datatype: MPI_CHAR.\n" +
			"1000                64.00\n", "osu", []Measurement{
			{Test: Window, Window: 64, Bytes: 1000, Seconds: 1e-3}}},
		{"osu collective", "# OSU MPI-CUDA Allreduce Latency Test v5.8\n" +
			"# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n" +
			"4                      20.50             19.00             22.00        1000\n", "osu", []Measurement{
			{Test: "allreduce", Bytes: 4, Seconds: 20.5e-6}}},
		{"netpipe", "       1 0.305176   0.00002500\n    1024 78.125  0.00010000\n", "netpipe", []Measurement{
			{Test: PingPong, Bytes: 1, Seconds: 2.5e-5}, {Test: PingPong, Bytes: 1024, Seconds: 1e-4}}},
		{"nccl-tests", `# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1234 on       host device  0 [0x07] NVIDIA A100
#  Rank  1 Group  0 Pid   1234 on       host device  1 [0x0a] NVIDIA A100
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    12.50    0.00    0.00      0    12.10    0.00    0.00      0
# Out of bounds values : 0 OK
`, "nccl-tests", []Measurement{{Test: "allreduce", Bytes: 8, Ranks: 2, Seconds: 12.5e-6}}},
		{"nccl-tests, blank columns", "# Collective test starting: sendrecv_perf\n" +
			"#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n" +
			"1048576  262144  float  -1  32.10  32.67  32.67  0  32.00  32.77  32.77  N/A\n" +
			"2097152  524288  float  64.20  32.67  32.67  0  64.00  32.77  32.77  N/A\n", "nccl-tests", []Measurement{
			{Test: "sendrecv", Bytes: 1 << 20, Seconds: 32.1e-6}, {Test: "sendrecv", Bytes: 2 << 20, Seconds: 64.2e-6}}},
		{"netgauge loggp", "# size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)\n# to get o: ...\n" +
			"1 16 5.000000 20.0 90.0 2.5 0.5 0.4 -nan -nan -nan\n1025 16 7.0 24.0 90.0 2.5 -0.1 0.4 1 0 0\n", "netgauge",
			[]Measurement{
				{Test: PingPong, Bytes: 1, Seconds: 2.5e-6}, {Test: Window, Window: 16, Bytes: 1, Seconds: 20e-6},
				{Test: SendCall, Bytes: 1, Seconds: 0.5e-6}, {Test: RecvLate, Bytes: 1, Seconds: 0.4e-6},
				{Test: PingPong, Bytes: 1025, Seconds: 3.5e-6}, {Test: Window, Window: 16, Bytes: 1025, Seconds: 23e-6},
				{Test: RecvLate, Bytes: 1025, Seconds: 0.4e-6}}},
		{"netgauge loggp, printed", "==== ALLOCATED NODES ====\n# Info:   (0): Netgauge v2.4.6 MPI enabled\n" +
			"Testing 1 bytes 100 times:\n" +
			"n is 1, d is 0.000000, o_r is 0, s is 1, the median latency in the test is 3.0 (us)\n" +
			"n is 10, d is 0.000000, o_r is 0, s is 1, the median latency in the test is 5.7 (us)\n" +
			"n is 10, d is 3.000000, o_r is 0, s is 1, the median latency in the test is 30.0 (us)\n" +
			"n is 10, d is 0.000000, o_r is 1, s is 1, the median latency in the test is 0.25 (us)\n" +
			" L=1.5  s=1  o_s=0.2  o_r=0.25  g=-nan  G=-nan (-nan GiB/s) lsqu(g,G)=-nan \n", "netgauge", []Measurement{
			{Test: PingPong, Bytes: 1, Seconds: 1.5e-6}, {Test: Window, Window: 10, Bytes: 1, Seconds: 5.7e-6},
			{Test: SendCall, Bytes: 1, Seconds: 0.2e-6}, {Test: RecvLate, Bytes: 1, Seconds: 0.25e-6}}},
		{"launcher", "-------\nWARNING: no OpenFabrics device, 1 of 2\n-------\n# OSU MPI Latency Test (Version 2.0)\n" +
			"# Size Latency (us)\n8 1.5\nmpirun: done\n", "osu", []Measurement{{Test: PingPong, Bytes: 8, Seconds: 1.5e-6}}},
		{"osu barrier", "# OSU MPI Barrier Latency Test v7.3\n# Avg Latency(us)\n             3.50\n", "osu",
			[]Measurement{{Test: "barrier", Seconds: 3.5e-6}}},
		{"osu one-sided", "# OSU MPI_Put Latency Test v5.6.2\n# Window creation: MPI_Win_allocate\n# Size  Latency (us)\n" +
			"8  1.5\n", "osu", []Measurement{{Test: "mpi_put latency", Bytes: 8, Seconds: 1.5e-6}}},
		{"osu several pairs", "# OSU MPI Multi Latency Test v5.6.2\n# Size          Latency (us)\n8  1.5\n", "osu",
			[]Measurement{{Test: "multi latency", Bytes: 8, Seconds: 1.5e-6}}},
		{"semicolons", "bytes;us\n8;1.5\n", "csv", []Measurement{{Test: PingPong, Bytes: 8, Seconds: 1.5e-6}}},
		{"kibibytes", "Size [KiB],us\n8,1.5\n", "csv", []Measurement{{Test: PingPong, Bytes: 8192, Seconds: 1.5e-6}}},
		{"tabs", "bytes\tus\n8\t1.5\n", "csv", []Measurement{{Test: PingPong, Bytes: 8, Seconds: 1.5e-6}}},
		{"netgauge one_one", "128 bytes \t -> 3.20 us \t == 320.00 Mbit/s\n", "netgauge", []Measurement{
			{Test: PingPong, Bytes: 128, Seconds: 3.2e-6}}},
		{"netgauge one_one, verbose", "## Netgauge v2.4 - mode mpi - 2 processes\n" +
			"8 - 0.10 0.20 0.30 0.40 - 1.00 2.00 3.00 4.00 - 1 2 3 4\n", "netgauge", []Measurement{
			{Test: PingPong, Bytes: 8, Seconds: 3e-6}}},
	}
	for _, tt := range tests {
		table, err := Read("t", []byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if table.Tool != tt.tool || len(table.Rows) != len(tt.want) {
			t.Errorf("%s: tool %s, rows %+v, expected %s, %+v", tt.name, table.Tool, table.Rows, tt.tool, tt.want)
			continue
		}
		for i, m := range table.Rows {
			if math.Abs(m.Seconds-tt.want[i].Seconds) > 1e-12*m.Seconds {
				t.Errorf("%s: %g s, expected %g", tt.name, m.Seconds, tt.want[i].Seconds)
			}
			m.Line, m.Step, m.Seconds = 0, 0, tt.want[i].Seconds
			if m != tt.want[i] {
				t.Errorf("%s: %+v, expected %+v", tt.name, m, tt.want[i])
			}
		}
	}
}

// TestReadErrors checks that an error names file, line, what was expected and what was found.
func TestReadErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "t: expected measurements, found none"},
		{"PAR1\x00\x01", "t: expected a text of ASCII or UTF-8, found a zero byte at offset 4"},
		{"\n# Size\n", "t:2: expected a header with a time or rate"},
		{"\nhello world\n", `t:2: expected a table of times, found "hello world"`},
		{"n is 10, d is 0.0, o_r is 0, s is 1, the median latency in the test is 5.7 (us)\n",
			"t:1: expected one message of 1 bytes before 10, found none"},
		{"bytes,time\n8,1\n", `t:1: the column "time" has no unit, expected one such as "time (us)" or "time (s)"`},
		{"Size (KB),us\n8,1\n", `t:1: the column "Size (KB)" has the unit "kb", expected bytes, KiB, MiB or GiB`},
		{"size (elements),us\n8,1\n", `t:1: the column "size (elements)" has the unit`},
		{"size,RTT (us)\n8,1\n", `t:1: the column "RTT (us)" has round trips`},
		{"size,round trip [us]\n8,1\n", `t:1: the column "round trip [us]" has round trips`},
		{"Size (GiB),us\n9999999999999,1\n", "t:2: expected a size of at most"},
		{"bytes,value\n8,1\n", "t:1: expected a header with a time or rate and its unit"},
		{"name,seconds\nx,1\n", "t:1: expected a header with a size"},
		{"bytes,seconds\n8\n", "t:2: expected 2 fields as in the header, found 1"},
		{"bytes,seconds\n8,0\n", "t:2: expected a time above 0, found 0 s"},
		{"bytes,seconds\n8,-1\n", "t:2: expected a time above 0, found -1 s"},
		{"bytes,us\n8,1e-300\n", "t:2: expected a time of at least 1 ps, found 1e-306 s"},
		{"bytes,seconds\n8,x\n", `t:2: expected a number, found "x"`},
		{"bytes,seconds\n-8,1\n", `t:2: expected a size in bytes, found "-8"`},
		{"bytes,MB/s\n0,1\n", "t:2: a rate of 0 bytes gives no time"},
		{"bytes,seconds\n", "t: expected measurements, found none"},
		{"# size count type redop time algbw busbw error\n8 2 float sum 12.5 0 0 0\n",
			"t:2: the collective is unknown: add a line such as"},
		{"# Collective test starting: all_reduce_perf\n# size count type redop time algbw busbw error\n" +
			"8 2 float 12.5 0 0\n",
			"t:3: expected 8 fields, or 7 without redop and root, found 6"},
		{"1024 10 0.001\n", "t:1: expected bytes, Mb/s and seconds of NetPIPE; 10 Mb/s are not 1024 bytes"},
	}
	for _, tt := range tests {
		_, err := Read("t", []byte(tt.text))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: error %v, expected %q", tt.text, err, tt.want)
		}
	}
}

// TestRounding checks that digits which a tool does not print are no segments of size.
func TestRounding(t *testing.T) {
	var text strings.Builder
	text.WriteString("# OSU MPI Latency Test v5.6.2\n# Size          Latency (us)\n")
	for bytes := 1; bytes <= 4<<20; bytes *= 2 {
		fmt.Fprintf(&text, "%d  %.2f\n", bytes, 1.5+1e-4*float64(bytes))
	}
	table, err := Read("t", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	points, _ := Points(table.Rows)
	segments, err := Split(points)
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v, segments %+v, expected one", err, segments)
	}
	if s := segments[0]; math.Abs(s.Start[0]-1.5e-6) > 3e-9 || math.Abs(s.PerByte-1e-10) > 1e-13 {
		t.Errorf("%+v, expected 1.5 us and 0.1 ns per byte", s)
	}
}

// TestSetRanks states the number of ranks of a table.
func TestSetRanks(t *testing.T) {
	table, err := Read("t", []byte("test,bytes,ranks,us\nallreduce,8,16,3\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := table.SetRanks(8); err == nil || !strings.Contains(err.Error(), "t:2: expected a time on 8 ranks") {
		t.Errorf("error %v", err)
	}
	table.Rows[0].Ranks = 0
	if err := table.SetRanks(8); err != nil || table.Rows[0].Ranks != 8 {
		t.Errorf("%v, %+v, expected 8 ranks", err, table.Rows)
	}
}

// FuzzRead checks that accepted tables have valid measurements and that errors name the file.
func FuzzRead(f *testing.F) {
	f.Add([]byte("test,where,bytes,ranks,seconds\npingpong,0-1,8,2,1.5e-6\n"))
	f.Add([]byte("# OSU MPI Latency Test v5.6.2\n# Size          Latency (us)\n0  1.10\n"))
	f.Add([]byte("1 0.305176 0.00002500\n"))
	f.Add([]byte("# nThread 1\n# size count type time\n8 2 float 1\n"))
	f.Add([]byte("128 bytes \t -> 3.20 us \t == 320.00 Mbit/s\n"))
	f.Add([]byte("n is 1, d is 0.0, o_r is 0, s is 1, the median latency in the test is 3.0 (us)\n" +
		"n is 9, d is 0.0, o_r is 0, s is 1, the median latency in the test is 5.7 (us)\n" +
		"L=1.5  s=1  o_s=0.2  o_r=0.25  g=-nan\n"))
	f.Add([]byte("# size n PRTT(1,0,s)\n1 16 5.0 20.0 90.0 2.5 0.5 0.4 1 0 0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Read("name", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "name:") {
				t.Fatalf("error %q does not name the file", err)
			}
			return
		}
		for _, m := range table.Rows {
			if m.Bytes < 0 || !(m.Seconds >= 0) || m.Seconds > 1e9 || m.Line < 1 {
				t.Fatalf("invalid measurement %+v", m)
			}
		}
		if file, err := LogGOPS([]*Table{table}, Options{Draws: 10}); err == nil {
			var b strings.Builder
			if err := file.Write(&b); err != nil {
				t.Fatal(err)
			}
			if _, err := Parse([]byte(b.String())); err != nil {
				t.Fatalf("%v in %s", err, b.String())
			}
		}
	})
}

// FuzzParse checks that accepted parameter files survive a round trip.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"backend":"loggops","model":"strict","parameters":{"g":{"value":0,"low":0,"high":1,"unit":"s"}},` +
		`"segments":[{"from":0,"to":8,"parameters":{}},{"from":8,"parameters":{}}],"seed":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			return
		}
		var b strings.Builder
		if err := file.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Parse([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		var c strings.Builder
		if err := again.Write(&c); err != nil || b.String() != c.String() {
			t.Fatalf("%v: %s became %s", err, b.String(), c.String())
		}
	})
}

// TestByteOrderMark checks that a table may begin with the mark of spreadsheets.
func TestByteOrderMark(t *testing.T) {
	table, err := Read("t.csv", []byte("\ufeffbytes,us\n1,5\n"))
	if err != nil || len(table.Rows) != 1 || table.Rows[0].Bytes != 1 {
		t.Errorf("table with a byte order mark: %v, %v", table, err)
	}
}
