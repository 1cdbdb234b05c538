// This file makes exports for tests.

package nsys

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maker makes an export.
type maker struct {
	host    string
	epoch   int64
	clock   int64 // of the host
	corr    int64
	rows    map[string][][]any // by table
	strings map[string]int64
	columns map[string]string
	textIDs bool // texts of annotations are in StringIds
}

// Event types of annotations.
const (
	eventMark  = 34
	eventRange = 59
)

// standard are the columns of tables.
var standard = map[string]string{
	tableAnnotations: "start INTEGER NOT NULL, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, " +
		"globalTid INTEGER, domainId INTEGER, jsonText TEXT, binaryData BLOB",
	tableKernel: "start INTEGER NOT NULL, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, " +
		"correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, graphNodeId INTEGER",
	tableRuntime:    "start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER",
	tableStrings:    "id INTEGER PRIMARY KEY, value TEXT",
	tableSession:    "utcEpochNs INTEGER",
	tableSystem:     "name TEXT, value TEXT",
	tableExport:     "name TEXT, value TEXT",
	tableAnalysis:   "startTime INTEGER, stopTime INTEGER",
	tableGraphNodes: "start INTEGER, globalTid INTEGER, graphNodeId INTEGER, originalGraphNodeId INTEGER",
	tableGraphRuns:  "start INTEGER, end INTEGER",
	tableSync: "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, " +
		"globalPid INTEGER, syncType INTEGER, eventId INTEGER",
	tableCUDAEvent: "timestamp INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, " +
		"globalPid INTEGER, eventId INTEGER",
	tableEntries: "domainId INTEGER, schemaId INTEGER, idx INTEGER, type INTEGER, name TEXT, offset INTEGER",
}

func newMaker(host string) *maker {
	return &maker{host: host, epoch: 1724241600000000000, clock: 1000, corr: 100,
		rows:    map[string][][]any{tableAnnotations: nil},
		strings: make(map[string]int64), columns: standard}
}

func (m *maker) string(s string) int64 {
	id, ok := m.strings[s]
	if !ok {
		id = int64(len(m.strings) + 1)
		m.strings[s] = id
		m.add(tableStrings, id, s)
	}
	return id
}

func (m *maker) add(table string, values ...any) {
	m.rows[table] = append(m.rows[table], values)
}

func (m *maker) tick() int64 {
	m.clock += 10
	return m.clock
}

// write writes the export to a folder and returns its path.
func (m *maker) write(t testing.TB, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "nsys_report_"+m.host+".sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(query string, args ...any) {
		if _, err := db.Exec(query, args...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if m.epoch != 0 {
		m.rows[tableSession] = [][]any{{m.epoch}}
	}
	m.rows[tableSystem] = [][]any{{"Hostname", m.host}}
	exec("PRAGMA journal_mode=OFF")
	exec("PRAGMA page_size=512")
	exec("BEGIN")
	for _, table := range slices.Sorted(maps.Keys(m.rows)) { // so that equal exports are equal files
		rows := m.rows[table]
		exec("CREATE TABLE " + table + " (" + m.columns[table] + ")")
		for _, row := range rows {
			exec("INSERT INTO "+table+" VALUES ("+strings.Repeat("?, ", len(row)-1)+"?)", row...)
		}
	}
	exec("COMMIT")
	return path
}

// process is a process with one thread of an export.
type testProcess struct {
	*maker
	pid  int64
	tid  int64
	hash uint64
}

func (m *maker) process(pid int64) *testProcess {
	return &testProcess{maker: m, pid: pid, tid: 1<<56 | pid<<24 | pid, hash: 0xabc}
}

func (p *testProcess) thread(n int64) *testProcess {
	q := *p
	q.tid += n
	return &q
}

// annotation adds an annotation; end is nil for a mark.
func (p *testProcess) annotation(start int64, end any, kind int64, text string) int {
	row := []any{start, end, kind, text, nil, p.tid, 0, nil, nil}
	if p.textIDs {
		row[3], row[4] = nil, p.string(text)
	}
	p.add(tableAnnotations, row...)
	return len(p.rows[tableAnnotations]) - 1
}

func (p *testProcess) mark(text string, args ...any) {
	p.annotation(p.tick(), nil, eventMark, fmt.Sprintf(text, args...)+fmt.Sprintf(" pid %d", p.pid))
}

// push opens a range, pop closes it.
func (p *testProcess) push(text string, args ...any) int {
	return p.annotation(p.tick(), nil, eventRange, fmt.Sprintf(text, args...)+fmt.Sprintf(" pid %d", p.pid))
}

func (p *testProcess) pop(i int) { p.rows[tableAnnotations][i][1] = p.tick() }

// init makes a communicator of n ranks with a ring in order.
func (p *testProcess) init(hash, id uint64, rank, n int) {
	i := p.push("commHash %#x commId %#x rank %d nranks %d", hash, id, rank, n)
	p.mark("commHash %#x Rings [0] %d->%d->%d", hash, (rank+n-1)%n, rank, (rank+1)%n)
	p.pop(i)
}

func (p *testProcess) groupStart() { p.pop(p.push("ncclGroupStart():")) }

// call records a call, which ends at once.
func (p *testProcess) call(name string, hash, stream uint64, bytes int64, more string) {
	text := fmt.Sprintf("nccl%s(): commHash %#x, stream %#x, data_size %d, type_size 4, %s", name, hash, stream, bytes, more)
	p.pop(p.push("%s", strings.TrimSuffix(text, " ")))
}

func (p *testProcess) detail(op opKind, hash, stream uint64, bytes int64) {
	p.mark("collType %d root 0 redOp 0 algo 1 proto 2 commHash %#x stream %#x data_size %d type_size 4 chunkSize 2097152 "+
		"chunkCount 524288 chunkSteps 4 sliceSteps 2 stepSize 524288", op, hash, stream, bytes)
	p.mark("nWarps 17 count %d chunkCount 524288 workCount %[1]d lastChunkCount 65536 workOffset 0 sendbuff 1000 "+
		"recvbuff 2000", bytes/4)
}

func (p *testProcess) piece(kind int, peer int, bytes int64) {
	p.mark("Bytes %d nWarps 20 p2pType %d peer %d proto 2 countHi32 0 countLo32 %[1]d chunkSize 65536", bytes, kind, peer)
}

// launch records the launch of a kernel and adds its row, where it has a name.
func (p *testProcess) launch(name string, device, stream, start, end int64) {
	i := p.push("ncclLaunchKernel():")
	p.api("cudaLaunchKernelExC_v11060")
	p.pop(i)
	if name != "" {
		p.kernel(name, device, stream, start, end, nil)
	}
}

func (p *testProcess) api(name string) {
	p.corr++
	p.add(tableRuntime, p.tick(), p.tick(), p.tid, p.corr, p.string(name))
}

func (p *testProcess) kernel(name string, device, stream, start, end int64, node any) {
	p.add(tableKernel, start, end, device, 1+device, stream, p.corr, p.tid&^0xffffff,
		p.string("ncclDevKernel_"+name+"(ncclDevComm *)"), node)
}

// allReduce records an AllReduce as NCCL does.
func (p *testProcess) allReduce(hash, stream uint64, bytes, device, gpuStream, start, end int64) {
	i := p.push("ncclAllReduce(): commHash %#x, stream %#x, data_size %d, type_size 4, red_op 0,", hash, stream, bytes)
	p.detail(opAllReduce, hash, stream, bytes)
	p.launch("AllReduce_Sum_f32_RING_LL", device, gpuStream, start, end)
	p.pop(i)
}

// stock adds a range of NVIDIA's NCCL with a payload as JSON.
func (p *testProcess) stock(name, json string) int {
	i := p.annotation(p.tick(), nil, eventRange, name)
	p.rows[tableAnnotations][i][3], p.rows[tableAnnotations][i][4] = nil, p.string(name)
	p.rows[tableAnnotations][i][6] = 1
	if json != "" {
		p.rows[tableAnnotations][i][7] = json
	}
	return i
}

// binaryPayload is a payload of 64-bit fields, of the schema.
func binaryPayload(schema uint32, fields ...uint64) []byte {
	data := make([]byte, payloadHeader)
	binary.LittleEndian.PutUint32(data, 1)
	binary.LittleEndian.PutUint32(data[8:], schema)
	binary.LittleEndian.PutUint64(data[16:], uint64(8*len(fields)))
	for _, f := range fields {
		data = binary.LittleEndian.AppendUint64(data, f)
	}
	return data
}

// shuffle reverses the rows of the tables of an export.
func shuffle(t testing.TB, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{tableAnnotations, tableKernel, tableRuntime} {
		for _, query := range []string{
			"CREATE TABLE copy AS SELECT * FROM " + table + " ORDER BY start DESC, rowid",
			"DROP TABLE " + table,
			"ALTER TABLE copy RENAME TO " + table,
		} {
			if _, err := db.Exec(query); err != nil {
				t.Fatal(err)
			}
		}
	}
}
