package fit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Tests of tables. A table without a name of a test is a [PingPong].
const (
	PingPong    = "pingpong"    // half of a round trip
	SendCall    = "send_call"   // time in a blocking send whose receive is posted
	IsendCall   = "isend_call"  // time in a non-blocking send
	SendLate    = "send_late"   // time in a blocking send whose receive is posted late
	RecvLate    = "recv_late"   // time in a receive that is posted long after the send
	WaitLate    = "wait_late"   // time in a wait, long after the message arrived, for a receive posted before
	Window      = "window"      // non-blocking messages at once, and an empty answer; see [Measurement.Window]
	Exchange    = "exchange"    // a pair sends to each other
	AllExchange = "allexchange" // all pairs at once
)

// Measurement is one measured time.
type Measurement struct {
	Test    string
	Where   string  // the ranks involved, as the table names them; empty: unknown
	Bytes   int64   // of the message; of a collective as its tool counts them
	Ranks   int     // 0: unknown
	Window  int     // messages at once of test Window
	Waits   int     // of SendLate and RecvLate: 1 if the call waited for the message, -1 if not; 0: its time decides
	Seconds float64 // at least 0; above 0 but for the time in calls
	Step    float64 // seconds of the last digit that the tool prints; 0: unknown
	Line    int     // of the file
}

// Used reports whether [LogGOPS] uses measurements of the test.
func (m Measurement) Used() bool {
	switch m.Test {
	case PingPong, SendCall, IsendCall, SendLate, RecvLate, WaitLate, Exchange, AllExchange:
		return true
	case Window:
		return m.Window > 1
	}
	return m.Incast() > 0
}

// Incast returns the number of senders of a test such as incast4, else 0.
func (m Measurement) Incast() int {
	number, ok := strings.CutPrefix(m.Test, "incast")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return 0
	}
	return max(n, 0)
}

// Table is the content of a file of measurements.
type Table struct {
	Name   string
	Tool   string // csv, osu, netpipe, nccl-tests or netgauge; trace: not of a file of measurements
	SHA256 string // of the file, in hexadecimal
	Rows   []Measurement

	remarks []string // for the file of parameters
}

// Remark adds a remark about the table to estimates from it.
func (t *Table) Remark(text string, args ...any) {
	t.remarks = append(t.remarks, fmt.Sprintf(text, args...))
}

// SetRanks states the number of ranks of a table that has none, such as of OSU. The error names the file and a line
// that has another number.
func (t *Table) SetRanks(ranks int) error {
	for i := range t.Rows {
		m := &t.Rows[i]
		if m.Ranks != 0 && m.Ranks != ranks {
			return fmt.Errorf("%s:%d: expected a time on %d ranks as the name of the table states, found %d ranks",
				t.Name, m.Line, ranks, m.Ranks)
		}
		m.Ranks = ranks
	}
	return nil
}

// maxRows bounds the measurements of a table.
const maxRows = 1 << 20

// Read parses a table and recognizes its tool by the content: CSV with a header, OSU micro-benchmarks, NetPIPE 3,
// nccl-tests, or netgauge (patterns loggp and one_one). An error names the file and the line.
func Read(name string, data []byte) (*Table, error) {
	sum := sha256.Sum256(data)
	p := &parser{table: &Table{Name: name, SHA256: hex.EncodeToString(sum[:])}}
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return nil, fmt.Errorf("%s: expected a text of ASCII or UTF-8, found a zero byte at offset %d; name traces "+
			"with --fit-trace, and convert UTF-16 to UTF-8", name, at)
	}
	text := strings.TrimPrefix(string(data), "\ufeff") // the mark that spreadsheets put before UTF-8
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	tool, first := recognize(lines)
	if tool == nil && strings.TrimSpace(lines[first]) == "" {
		return nil, fmt.Errorf("%s: expected measurements, found none", name)
	}
	if tool == nil {
		return nil, fmt.Errorf("%s:%d: expected a table of times, found %.60q: CSV with a header such as "+
			"bytes,seconds, or the output of OSU micro-benchmarks, NetPIPE 3, nccl-tests or netgauge; delete lines "+
			"above it", name, first+1, lines[first])
	}
	p.table.Tool = tool.name
	for i, line := range lines[first:] {
		p.line = first + i + 1
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if err := tool.parse(p, line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
		}
		if len(p.table.Rows) > maxRows {
			return nil, fmt.Errorf("%s:%d: expected at most %d measurements", name, p.line, maxRows)
		}
	}
	if len(p.table.Rows) == 0 {
		return nil, fmt.Errorf("%s: expected measurements, found none", name)
	}
	p.table.equalSteps()
	return p.table, nil
}

// equalSteps gives the times of a test the smallest step of its lines: tools may drop zeros at the end.
func (t *Table) equalSteps() {
	least := map[string]float64{}
	for _, m := range t.Rows {
		if old, ok := least[m.Test]; !ok || m.Step < old {
			least[m.Test] = m.Step
		}
	}
	for i := range t.Rows {
		t.Rows[i].Step = least[t.Rows[i].Test]
	}
}

// parser is the state of reading a table.
type parser struct {
	table     *Table
	line      int
	columns   []column // of CSV, netgauge and OSU
	separator string   // of columns of CSV
	test      string   // of OSU and nccl-tests
	ranks     int      // of nccl-tests: ranks listed so far
	words     int      // of nccl-tests: columns of the header
	blank     int      // of nccl-tests: columns that may be blank
	window    int      // of OSU bandwidth tests
}

// add checks a measurement and adds it to the table.
func (p *parser) add(m Measurement) error {
	m.Line = p.line
	if m.Test == "" {
		m.Test = PingPong
	}
	if m.Bytes < 0 {
		return fmt.Errorf("expected a size of at least 0, found %d", m.Bytes)
	}
	call := strings.HasPrefix(m.Test, "isend_") || m.Test == SendCall || m.Test == SendLate ||
		m.Test == RecvLate || m.Test == WaitLate
	switch {
	case m.Seconds != m.Seconds || m.Seconds > 1e9:
		return fmt.Errorf("expected a time below 10^9 s, found %g", m.Seconds)
	case m.Seconds < 0, m.Seconds == 0 && !call:
		return fmt.Errorf("expected a time above 0, found %g s", m.Seconds)
	case m.Seconds < picosecond && !call:
		return fmt.Errorf("expected a time of at least 1 ps, found %g s; check the unit", m.Seconds)
	}
	p.table.Rows = append(p.table.Rows, m)
	return nil
}

// Only returns the measurements of a test, in the order of the tables.
func Only(tables []*Table, test string) (rows []Measurement) {
	for _, t := range tables {
		for _, m := range t.Rows {
			if m.Test == test {
				rows = append(rows, m)
			}
		}
	}
	return rows
}

// Points returns the measurements as points, and the names of their paths in the order of first appearance.
func Points(rows []Measurement) (points []Point, paths []string) {
	known := make(map[string]int)
	for _, m := range rows {
		path, ok := known[m.Where]
		if !ok {
			path = len(paths)
			known[m.Where] = path
			paths = append(paths, m.Where)
		}
		points = append(points, Point{Path: path, Bytes: m.Bytes, Seconds: m.Seconds, Step: m.Step})
	}
	return points, paths
}
