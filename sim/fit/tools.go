package fit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tool is a program that prints tables.
type tool struct {
	name  string
	parse func(p *parser, line string) error
}

// recognize returns the tool that printed the lines, nil if unknown, and the index of the first line of its table.
// Lines of launchers and of the tool's start may precede a title.
func recognize(lines []string) (*tool, int) {
	for i, line := range lines {
		if t := titled(strings.TrimSpace(line)); t != nil {
			return t, i
		}
	}
	for i, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case netgaugeShort.MatchString(line):
			return &tool{"netgauge", parseNetgauge}, i
		case strings.HasPrefix(strings.ToLower(line), "# size"):
			return &tool{"osu", parseOSU}, i
		case strings.HasPrefix(line, "#"):
		case separator(line) != "":
			return &tool{"csv", parseCSV}, i
		case len(strings.Fields(line)) == 3 && allNumbers(strings.Fields(line)):
			return &tool{"netpipe", parseNetPIPE}, i
		default:
			return nil, i
		}
	}
	return nil, 0
}

// titled returns the tool that prints a line above its table, or nil.
func titled(line string) *tool {
	lower := strings.ToLower(line)
	switch {
	case strings.HasPrefix(lower, "# nccl-tests"), strings.HasPrefix(lower, "# nthread "),
		strings.HasPrefix(lower, "# collective test starting"),
		strings.HasPrefix(line, "#") && strings.Contains(lower, "algbw"):
		return &tool{"nccl-tests", parseNCCL}
	case strings.HasPrefix(lower, "# osu "):
		return &tool{"osu", parseOSU}
	case strings.HasPrefix(lower, "# size n prtt("), strings.HasPrefix(lower, "## netgauge"),
		netgaugeRoundTrip.MatchString(line):
		return &tool{"netgauge", parseNetgauge}
	}
	return nil
}

func allNumbers(words []string) bool {
	for _, w := range words {
		if _, err := strconv.ParseFloat(w, 64); err != nil {
			return false
		}
	}
	return true
}

// column is the meaning of a column of a table.
type column struct {
	kind  string  // bytes, time, rate, test, where, ranks; empty: unused
	scale float64 // seconds, bytes per second, or bytes per unit
}

// roundTrip matches headers of columns whose times are no ping-pongs.
var roundTrip = regexp.MustCompile(`\brtt|_rtt|round[ _-]?trip`)

// unitsOfTime, unitsOfRate and unitsOfSize have lower-case names. KB is none, because it is 1000 or 1024 bytes.
var (
	unitsOfSize = map[string]float64{
		"b": 1, "byte": 1, "bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
	}
	unitsOfTime = map[string]float64{
		"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "ms": 1e-3, "msec": 1e-3, "milliseconds": 1e-3,
		"us": 1e-6, "usec": 1e-6, "usecs": 1e-6, "microseconds": 1e-6, "µs": 1e-6, "ns": 1e-9, "nsec": 1e-9,
		"nanoseconds": 1e-9,
	}
	unitsOfRate = map[string]float64{
		"b/s": 1, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9, "kib/s": 1 << 10, "mib/s": 1 << 20, "gib/s": 1 << 30,
		"bps": 1.0 / 8, "kbps": 1e3 / 8, "mbps": 1e6 / 8, "gbps": 1e9 / 8, "kbit/s": 1e3 / 8, "mbit/s": 1e6 / 8,
		"gbit/s": 1e9 / 8,
	}
)

// columnOf returns the meaning of a header. Units of time and rate are part of the header: "us", "time_us",
// "Latency (us)", "bandwidth [MB/s]". A capital B is bytes and "Mb/s" is bits, as tools write them.
func columnOf(header string) (column, error) {
	name := strings.TrimSpace(strings.Trim(strings.TrimSpace(header), `"#`))
	lower := strings.ToLower(name)
	word, unit := lower, ""
	if at := strings.IndexAny(lower, "(["); at > 0 {
		word, unit = strings.TrimSpace(lower[:at]), strings.Trim(lower[at:], "()[] ")
	} else if at := strings.LastIndexAny(lower, "_ "); at > 0 {
		if _, ok := unitsOfTime[lower[at+1:]]; ok || unitsOfRate[lower[at+1:]] != 0 {
			word, unit = lower[:at], lower[at+1:]
		}
	}
	if roundTrip.MatchString(lower) {
		return column{}, fmt.Errorf("the column %q has round trips; halve its times and rename it, such as to "+
			`"time (us)"`, name)
	}
	bits := strings.HasSuffix(name, "b/s") || strings.HasSuffix(name, "b/s)") || strings.HasSuffix(name, "b/s]")
	if unit == "" {
		unit = word
	}
	switch word {
	case "bytes", "size", "message size", "message_size", "msg_size", "nbytes":
		scale := unitsOfSize[unit]
		if unit == word {
			scale = 1
		}
		if scale == 0 {
			return column{}, fmt.Errorf("the column %q has the unit %q, expected bytes, KiB, MiB or GiB", name, unit)
		}
		return column{kind: "bytes", scale: scale}, nil
	case "test", "benchmark", "operation":
		return column{kind: "test"}, nil
	case "where", "pair", "path":
		return column{kind: "where"}, nil
	case "ranks", "nranks", "processes", "np":
		return column{kind: "ranks"}, nil
	case "time", "latency", "t":
		if unit == word {
			return column{}, fmt.Errorf("the column %q has no unit, expected one such as %q or %q", name,
				word+" (us)", word+" (s)")
		}
	}
	if scale, ok := unitsOfTime[unit]; ok {
		return column{kind: "time", scale: scale}, nil
	}
	if scale := unitsOfRate[unit]; scale != 0 {
		if bits {
			scale /= 8
		}
		return column{kind: "rate", scale: scale}, nil
	}
	return column{}, nil
}

// parseCSV parses a line of a table with a header.
func parseCSV(p *parser, line string) error {
	if strings.HasPrefix(line, "#") && !(p.columns == nil && separator(line) != "") {
		return nil
	}
	if p.columns == nil {
		p.separator = separator(line)
		return p.header(strings.Split(line, p.separator))
	}
	return p.row(strings.Split(line, p.separator))
}

// separator returns what separates the columns of a header: a comma, a semicolon or a tab; empty: nothing.
func separator(header string) string {
	for _, s := range []string{",", ";", "\t"} {
		if strings.Contains(header, s) {
			return s
		}
	}
	return ""
}

// header reads the headers of columns and keeps the first time, or else the first rate.
func (p *parser) header(fields []string) error {
	kinds := map[string]bool{}
	for _, f := range fields {
		c, err := columnOf(f)
		if err != nil {
			return err
		}
		if kinds[c.kind] {
			c = column{} // a further time, such as a deviation
		}
		kinds[c.kind] = true
		p.columns = append(p.columns, c)
	}
	switch {
	case !kinds["bytes"]:
		return fmt.Errorf("expected a header with a size, such as bytes,seconds, found %q", strings.Join(fields, ","))
	case !kinds["time"] && !kinds["rate"]:
		return fmt.Errorf("expected a header with a time or rate and its unit, such as seconds, us or MB/s, found %q",
			strings.Join(fields, ","))
	}
	return nil
}

// row reads the fields of a line below a header.
func (p *parser) row(fields []string) error {
	if len(fields) != len(p.columns) {
		return fmt.Errorf("expected %d fields as in the header, found %d", len(p.columns), len(fields))
	}
	m := Measurement{Test: p.test, Ranks: p.ranks, Window: p.window}
	rate := 0.0
	for i, c := range p.columns {
		f := strings.Trim(strings.TrimSpace(fields[i]), `"`)
		var err error
		switch c.kind {
		case "bytes":
			m.Bytes, err = size(f)
			if m.Bytes > math.MaxInt64>>30 {
				err = fmt.Errorf("expected a size of at most %d, found %s", int64(math.MaxInt64>>30), f)
			}
			m.Bytes *= int64(c.scale)
		case "time":
			m.Seconds, err = number(f)
			m.Seconds, m.Step = m.Seconds*c.scale, lastDigit(f)*c.scale
		case "rate":
			rate, err = number(f)
			rate *= c.scale
		case "test":
			m.Test, m.Window = testOf(f)
		case "where":
			m.Where = f
		case "ranks":
			m.Ranks, err = strconv.Atoi(f)
			if err != nil || m.Ranks < 1 {
				err = fmt.Errorf("expected a number of ranks, found %q", f)
			}
		}
		if err != nil {
			return err
		}
	}
	if m.Seconds == 0 && rate != 0 {
		if m.Bytes == 0 {
			return errors.New("a rate of 0 bytes gives no time")
		}
		m.Seconds = float64(m.Bytes) * float64(max(m.Window, 1)) / rate
	}
	return p.add(m)
}

// testOf returns the test of a name in a table and the number of messages of a window.
func testOf(name string) (string, int) {
	if number, ok := strings.CutPrefix(name, Window); ok {
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			return Window, n
		}
	}
	return name, 0
}

func size(f string) (int64, error) {
	n, err := strconv.ParseInt(f, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("expected a size in bytes, found %q", f)
	}
	return n, nil
}

func number(f string) (float64, error) {
	v, err := strconv.ParseFloat(f, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, fmt.Errorf("expected a number, found %q", f)
	}
	return v, nil
}

// lastDigit returns the value of the last digit of a number.
func lastDigit(number string) float64 {
	mantissa, power, _ := strings.Cut(strings.ToLower(number), "e")
	exponent, _ := strconv.Atoi(power)
	_, decimals, _ := strings.Cut(mantissa, ".")
	return math.Pow10(exponent - len(decimals))
}

// osuTitle is the title of an OSU benchmark, such as "OSU MPI-CUDA Allreduce Latency Test".
var osuTitle = regexp.MustCompile(`(?i)^# OSU (\S+)\s+(.*?)\s+(?:Test|Benchmark)\b`)

// osuWindow is the number of messages at once of the OSU bandwidth test.
const osuWindow = 64

// parseOSU parses a line of the OSU micro-benchmarks: comments with a title and headers, then size and values. Barriers
// have no size.
func parseOSU(p *parser, line string) error {
	lower := strings.ToLower(line)
	switch {
	case strings.HasPrefix(lower, "# osu"):
		p.columns = nil
		p.test, p.window = osuTest(osuTitle.FindStringSubmatch(line))
		return nil
	case strings.HasPrefix(lower, "# size"):
		p.columns = nil
		return p.header(osuHeaders(strings.TrimSpace(line[1:])))
	case p.test == "barrier" && p.columns == nil && strings.HasPrefix(lower, "#") && strings.Contains(lower, "latency"):
		p.columns = []column{{kind: "time", scale: 1e-6}}
		return nil
	case line[0] != '-' && (line[0] < '0' || line[0] > '9'):
		return nil // a comment, or a message of the launcher
	case strings.Trim(line, "-") == "":
		return nil
	case p.columns == nil:
		return fmt.Errorf(`expected a line "# Size  Latency (us)" before numbers, found %q`, line)
	}
	fields := strings.Fields(line)
	if len(fields) > len(p.columns) {
		fields = fields[:len(p.columns)]
	}
	return p.row(fields)
}

// osuHeaders divides the header line of an OSU benchmark into columns: "Size  Avg Latency(us)  Min Latency(us)".
func osuHeaders(line string) []string {
	headers := []string{line[:len("size")]}
	for _, h := range regexp.MustCompile(`\s{2,}|\t+|\)\s+`).Split(line[len("size"):], -1) {
		if h = strings.TrimSpace(h); h != "" {
			if strings.Contains(h, "(") && !strings.HasSuffix(h, ")") {
				h += ")"
			}
			headers = append(headers, h)
		}
	}
	return headers
}

// osuTest returns the test of a title, under its own name if it is not used, and its window.
func osuTest(match []string) (string, int) {
	if match == nil {
		return PingPong, 0
	}
	library, title := strings.ToLower(match[1]), strings.ToLower(match[2])
	collective, isCollective := strings.CutSuffix(title, " latency")
	switch {
	case library != "mpi" && library != "nccl" && !strings.HasPrefix(library, "mpi-"):
		return library + " " + title, 0 // MPI_Put, OpenSHMEM
	case title == "latency":
		return PingPong, 0
	case title == "bandwidth":
		return Window, osuWindow
	case isCollective && !strings.HasPrefix(collective, "multi"):
		return strings.NewReplacer("-", "", " ", "", "_", "").Replace(collective), 0 // allreduce, alltoallv
	}
	return title, 0
}

// netPIPEBits is the megabit of NetPIPE 3.
const netPIPEBits = 1 << 20

// parseNetPIPE parses a line of NetPIPE 3: bytes, Mb/s, seconds of half of a round trip.
func parseNetPIPE(p *parser, line string) error {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return fmt.Errorf("expected bytes, Mb/s and seconds of NetPIPE, found %q", line)
	}
	bytes, err := size(fields[0])
	if err != nil {
		return err
	}
	rate, err := number(fields[1])
	if err != nil {
		return err
	}
	seconds, err := number(fields[2])
	if err != nil {
		return err
	}
	// The columns must agree, or they are no NetPIPE's; NetPIPE prints eight decimals of a second.
	if expected := float64(bytes) * 8 / seconds / netPIPEBits; seconds > 1e-6 && bytes >= 64 &&
		math.Abs(rate-expected) > 0.1*expected {
		return fmt.Errorf("expected bytes, Mb/s and seconds of NetPIPE; %g Mb/s are not %d bytes in %g s", rate, bytes,
			seconds)
	}
	return p.add(Measurement{Bytes: bytes, Seconds: seconds, Step: lastDigit(fields[2])})
}

var (
	ncclStart = regexp.MustCompile(`(?i)^# Collective test starting: (\S+?)_perf`)
	ncclRank  = regexp.MustCompile(`(?i)^#\s+Rank\s+(\d+)\s`)
)

// ncclTests are the tests by their programs' names.
var ncclTests = map[string]string{
	"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter", "broadcast": "bcast",
	"reduce": "reduce", "alltoall": "alltoall", "gather": "gather", "scatter": "scatter", "sendrecv": "sendrecv",
}

// parseNCCL parses a line of nccl-tests: size, count, type, operator, root, then time (us) out of place. Columns are
// found by the header, as older versions have neither redop nor root. Some versions leave them blank if unused.
func parseNCCL(p *parser, line string) error {
	if strings.HasPrefix(line, "#") {
		if m := ncclStart.FindStringSubmatch(line); m != nil {
			p.test = ncclTests[strings.ToLower(m[1])]
		}
		if ncclRank.MatchString(line) {
			p.ranks++
		}
		words := strings.Fields(strings.TrimPrefix(line, "#"))
		if len(words) > 3 && words[0] == "size" && words[1] == "count" {
			p.columns, p.blank, p.words = nil, 0, len(words)
			for _, w := range words {
				c := column{}
				switch w {
				case "size":
					c = column{kind: "bytes", scale: 1}
				case "redop", "root":
					p.blank++
				case "time", "cputime":
					c = column{kind: "time", scale: 1e-6}
				}
				p.columns = append(p.columns, c)
				if c.kind == "time" {
					break // the columns behind are of no use
				}
			}
		}
		return nil
	}
	fields := strings.Fields(line)
	if p.columns == nil || !allNumbers(fields[:1]) {
		return nil // a message of the program
	}
	missing := max(0, p.words-len(fields))
	if missing > p.blank {
		return fmt.Errorf("expected %d fields, or %d without redop and root, found %d", p.words, p.words-p.blank,
			len(fields))
	}
	if p.test == "" {
		return errors.New("the collective is unknown: add a line such as " +
			`"# Collective test starting: all_reduce_perf", which older nccl-tests do not print, above the numbers`)
	}
	fields = slices.Insert(fields, len(p.columns)-1-missing, make([]string, missing)...) // before the time
	if err := p.row(fields[:len(p.columns)]); err != nil {
		return err
	}
	switch p.test {
	case "allgather", "alltoall", "gather", "scatter": // other tools count the block of a rank
		if p.ranks > 0 {
			p.table.Rows[len(p.table.Rows)-1].Bytes /= int64(p.ranks)
		}
	}
	return nil
}

// netgaugeShort is a line that netgauge's pattern one_one prints without -v.
var netgaugeShort = regexp.MustCompile(`^(\d+) bytes\s+-> ([0-9.]+) us\s+==`)

// parseNetgauge parses a line of netgauge: loggp.out ("# size n PRTT(1,0,s) ..."), the standard output of pattern
// loggp, whose other lines are messages, or times of one_one, RTT/2.
func parseNetgauge(p *parser, line string) error {
	if m := netgaugeShort.FindStringSubmatch(line); m != nil {
		return p.netgauge(m[1], m[2], 1)
	}
	if m := netgaugeResult.FindStringSubmatch(line); m != nil {
		return p.overheads(m[1], m[2], m[3])
	}
	if m := netgaugeRoundTrip.FindStringSubmatch(line); m != nil {
		p.test = cmp.Or(p.test, loggpPrinted)
		return p.roundTrips(m[1], m[2], m[3], m[4], m[5])
	}
	fields := strings.Fields(line)
	switch {
	case strings.HasPrefix(line, "# size n PRTT("):
		p.test = loggpFile
		return nil
	case strings.HasPrefix(line, "#"), p.test == loggpPrinted:
		return nil
	case p.test == loggpFile && len(fields) >= 3:
		return p.loggp(fields)
	case p.test != loggpFile && len(fields) > 8 && fields[1] == "-":
		// The median of RTT/2 is the third number behind the second dash.
		dashes := 0
		for i, f := range fields {
			if f == "-" {
				dashes++
			}
			if dashes == 2 && i+3 < len(fields) {
				return p.netgauge(fields[0], fields[i+3], 1)
			}
		}
	case strings.Contains(line, " bytes ") && strings.HasPrefix(line, "Testing "):
		return nil
	}
	return fmt.Errorf("expected a line of netgauge's loggp or one_one, found %q", line)
}

// Values of parser.test of netgauge's pattern loggp.
const (
	loggpFile    = "loggp.out"
	loggpPrinted = "loggp"
)

// loggp adds the measurements of a line of loggp.out: size, n, PRTT(1,0,s), PRTT(n,0,s), PRTT(n,PRTT(1,0,s),s), L, o_s,
// o_r and others. A round trip PRTT(n,d,s) has n messages, with a delay d before each but the first, and an answer of
// the same size. The pattern is that of T. Hoefler et al., Low-Overhead LogGP Parameter Assessment for Modern
// Interconnection Networks, IPDPS 2007.
func (p *parser) loggp(fields []string) error {
	if err := p.netgauge(fields[0], fields[2], 2); err != nil {
		return err
	}
	if len(fields) < 8 {
		return nil
	}
	if err := p.manyMessages(fields[0], fields[1], fields[3]); err != nil {
		return err
	}
	return p.overheads(fields[0], fields[6], fields[7])
}

// Lines that netgauge's pattern loggp prints: a median of round trips, and the parameters of a size.
var (
	netgaugeRoundTrip = regexp.MustCompile(
		`^n is (\d+), d is ([0-9.]+), o_r is ([01]), s is (\d+), the median latency in the test is (\S+) \(us\)`)
	netgaugeResult = regexp.MustCompile(`^L=\S+\s+s=(\d+)\s+o_s=(\S+)\s+o_r=(\S+)\s+g=`)
)

// roundTrips adds a median of round trips of a number of messages of some bytes, with a delay before each but the
// first. Those with delays, and those that measure o_r, are not used.
func (p *parser) roundTrips(count, delay, receives, bytes, time string) error {
	switch {
	case receives == "1" || strings.Trim(delay, "0.") != "":
		return nil
	case count == "1":
		return p.netgauge(bytes, time, 2)
	}
	return p.manyMessages(bytes, count, time)
}

// manyMessages adds PRTT(n,0,s) behind PRTT(1,0,s) as a window of n messages: its answer is that of the smallest size
// instead of one of s bytes.
func (p *parser) manyMessages(bytes, count, time string) error {
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxWindow {
		return fmt.Errorf("expected a number of messages up to %d, found %q", maxWindow, count)
	}
	us, err := number(time)
	if err != nil {
		return err
	}
	if n == 1 {
		return nil
	}
	rows := p.table.Rows
	own := Measurement{Bytes: -1}
	if len(rows) > 0 {
		own = rows[len(rows)-1]
	}
	answer := own.Seconds
	for _, m := range rows {
		if m.Test == PingPong {
			answer = min(answer, m.Seconds)
		}
	}
	if bytes != strconv.FormatInt(own.Bytes, 10) || own.Test != PingPong {
		return fmt.Errorf("expected one message of %s bytes before %d, found none", bytes, n)
	}
	return p.add(Measurement{Test: Window, Window: n, Bytes: own.Bytes, Seconds: us*1e-6 - own.Seconds + answer})
}

// maxWindow bounds the messages at once.
const maxWindow = 1 << 20

// overheads adds the times in calls that netgauge found: o_s of sends, o_r of receives of messages that are there.
// Netgauge prints values that are no times, such as -nan, if its measurements contradict each other.
func (p *parser) overheads(bytes, send, receive string) error {
	n, err := size(bytes)
	if err != nil {
		return err
	}
	for _, call := range [][2]string{{SendCall, send}, {RecvLate, receive}} {
		us, err := strconv.ParseFloat(strings.TrimPrefix(call[1], "-"), 64)
		if err != nil {
			return fmt.Errorf("expected a number, found %q", call[1])
		}
		if !(us >= 0) || math.IsInf(us, 1) || strings.HasPrefix(call[1], "-") {
			continue
		}
		if err := p.add(Measurement{Test: call[0], Bytes: n, Seconds: us * 1e-6}); err != nil {
			return err
		}
	}
	return nil
}

// netgauge adds a time in microseconds of the given number of messages.
func (p *parser) netgauge(bytes, time string, messages float64) error {
	n, err := size(bytes)
	if err != nil {
		return err
	}
	us, err := number(time)
	if err != nil {
		return err
	}
	return p.add(Measurement{Bytes: n, Seconds: us * 1e-6 / messages, Step: lastDigit(time) * 1e-6 / messages})
}
