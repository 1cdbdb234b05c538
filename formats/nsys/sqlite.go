// This file reads the SQLite form of an export. It finds columns by name, because they differ between versions;
// all columns except the start of a row may be missing.

package nsys

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// Tables of an export.
const (
	tableAnnotations = "NVTX_EVENTS"
	tableKernel      = "CUPTI_ACTIVITY_KIND_KERNEL"
	tableRuntime     = "CUPTI_ACTIVITY_KIND_RUNTIME"
	tableStrings     = "StringIds"
	tableProcesses   = "PROCESSES"
	tableSession     = "TARGET_INFO_SESSION_START_TIME"
	tableSystem      = "TARGET_INFO_SYSTEM_ENV"
	tableExport      = "META_DATA_EXPORT"
	tableAnalysis    = "ANALYSIS_DETAILS"
	tableGraphNodes  = "CUDA_GRAPH_NODE_EVENTS"
	tableGraphRuns   = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
	tableSync        = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
	tableCUDAEvent   = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
	tableSchemas     = "NVTX_PAYLOAD_SCHEMAS"
	tableEntries     = "NVTX_PAYLOAD_SCHEMA_ENTRIES"
)

// sqliteHeader begins every SQLite file.
const sqliteHeader = "SQLite format 3\x00"

// errUnsorted reports annotations that are not in start order.
var errUnsorted = errors.New("the annotations are not in the order of their starts")

// readSQLite reads the export in the file at path; messages call it name.
func readSQLite(name, path string, o reportOptions) (*report, error) {
	dsn, err := checkSQLite(path)
	if err != nil {
		return nil, &format.FileError{File: name, Err: err}
	}
	r, err := readExport(name, func(library *sqlite.Driver) (driver.Conn, error) { return library.Open(dsn) }, o)
	if err != nil {
		return nil, &format.FileError{File: name, Err: explainSQLite(err, path)}
	}
	return r, nil
}

// opener opens a database.
type opener func(library *sqlite.Driver) (driver.Conn, error)

// readExport reads the export in a database; messages call it name.
func readExport(name string, open opener, o reportOptions) (*report, error) {
	r, err := readDatabase(name, open, o, false)
	if errors.Is(err, errUnsorted) {
		r, err = readDatabase(name, open, o, true)
	}
	return r, err
}

// checkSQLite returns the data source name of the file at path. It reports errors that the library reports
// unclearly, and prevents the library from creating files in the folder.
func checkSQLite(path string) (dsn string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", cause(err)
	}
	logged, err := checkHeader(f, info.Size())
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	location := url.URL{Path: "/" + strings.TrimPrefix(filepath.ToSlash(absolute), "/")}
	dsn = "file://" + location.EscapedPath() + "?mode=ro"
	if logged {
		if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 32 {
			return "", fmt.Errorf("uncommitted changes in the write-ahead log %s-wal: end the program that writes "+
				"the file, "+
				"or open and close it with sqlite3", filepath.Base(path))
		}
		dsn += "&immutable=1" // else the library would create files for the log
	}
	return dsn, nil
}

// checkHeader checks the first 100 bytes of a database of the given size. It reports whether there may be a write-ahead
// log.
func checkHeader(r io.Reader, size int64) (logged bool, err error) {
	var head [100]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:16]) != sqliteHeader {
		if size < 100 {
			return false, fmt.Errorf("truncated: expected 100 bytes or more, found %d", size)
		}
		return false, errors.New("expected a SQLite database, found another file")
	}
	pageSize := int64(binary.BigEndian.Uint16(head[16:]))
	if pageSize == 1 {
		pageSize = 65536
	}
	pages := int64(binary.BigEndian.Uint32(head[28:]))
	sizeIsValid := [4]byte(head[24:28]) == [4]byte(head[92:96])
	if sizeIsValid && size < pages*pageSize {
		return false, fmt.Errorf("truncated: expected %d bytes, as in the header, found %d", pages*pageSize, size)
	}
	return head[18] == 2 || head[19] == 2, nil
}

// explainSQLite translates errors of the library.
func explainSQLite(err error, path string) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("locked by another program (%w)", err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		return fmt.Errorf("damaged: %w", err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("damaged or truncated: %w", err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		if _, statErr := os.Stat(path + "-journal"); statErr == nil {
			return fmt.Errorf("the program that wrote the file was interrupted and left %s-journal: export again, "+
				"or open and close it with sqlite3 (%w)", filepath.Base(path), err)
		}
	}
	return err
}

// database is an open export.
type database struct {
	ctx    context.Context // ends queries
	watch  par.Watch
	conn   driver.Conn
	row    func(v []driver.Value) error // receives the rows of the current query
	err    error                        // error of row
	tables map[string][]string          // column names, in lower case
	place  func() string                // current row, for messages
}

func openDatabase(ctx context.Context, open opener) (*database, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	d := &database{ctx: ctx, watch: par.Watch{Context: ctx}, tables: make(map[string][]string)}
	library := new(sqlite.Driver)
	function := &sqlite.FunctionImpl{NArgs: -1, VolatileArgs: true, Scalar: d.take}
	if err := library.RegisterFunction(takeRow, function); err != nil {
		return nil, err
	}
	conn, err := open(library)
	if err != nil {
		return nil, err
	}
	d.conn = conn
	var names []string
	err = d.query("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')", func(v []driver.Value) error {
		names = append(names, asText(v[0]))
		return nil
	})
	for _, name := range names {
		if err == nil && slices.Contains(tablesRead, name) {
			err = d.query("SELECT name FROM pragma_table_info("+quoteText(name)+")", func(v []driver.Value) error {
				d.tables[name] = append(d.tables[name], strings.ToLower(asText(v[0])))
				return nil
			})
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return d, nil
}

// tablesRead are the tables that are read.
var tablesRead = []string{tableAnnotations, tableKernel, tableRuntime, tableStrings, tableProcesses, tableSession,
	tableSystem,
	tableExport, tableAnalysis, tableGraphNodes, tableGraphRuns, tableSync, tableCUDAEvent, tableSchemas, tableEntries}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// takeRow is the SQL name of the function that receives rows.
const takeRow = "nsys_row"

// take implements takeRow. Its value is always 0, false.
func (d *database) take(_ *sqlite.FunctionContext, v []driver.Value) (driver.Value, error) {
	if d.err == nil {
		d.err = d.watch.Err()
	}
	if d.err == nil {
		d.err = d.row(v)
	}
	return int64(0), d.err
}

// query calls row with each row of the answer, which is valid until row returns. The library ends the query when
// the context ends, even while it sorts or skips rows.
func (d *database) query(query string, row func(v []driver.Value) error) error {
	err := d.run(query, row)
	if ended := par.Interrupted(d.ctx); ended != nil {
		return ended
	}
	return err
}

func (d *database) run(query string, row func(v []driver.Value) error) error {
	stmt, err := d.conn.Prepare(query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	rows, err := stmt.(driver.StmtQueryContext).QueryContext(d.ctx, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(values); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := row(values); err != nil {
			return err
		}
	}
}

// has reports whether a table has a column.
func (d *database) has(table, column string) bool {
	return slices.Contains(d.tables[table], strings.ToLower(column))
}

// first returns the expression for the first of the columns that a row has; NULL if the table has none of them.
func (d *database) first(table string, columns ...string) string {
	list := []string{"NULL", "NULL"} // at least two are required
	for _, c := range columns {
		if d.has(table, c) {
			list = append(list, `"`+c+`"`)
		}
	}
	return "COALESCE(" + strings.Join(list, ", ") + ")"
}

// each calls row with the columns of each row of a table that meets the condition; missing columns are nil. The
// values are valid until row returns. A missing table has no rows.
//
// The rows are arguments of a function in the query's condition, which is never true: no row leaves the query,
// which halves the time.
func (d *database) each(table string, columns []string, where, order string, row func(v []driver.Value) error) error {
	if _, ok := d.tables[table]; !ok {
		return nil
	}
	list := make([]string, len(columns))
	for i, c := range columns {
		if list[i] = "NULL"; d.has(table, c) {
			list[i] = `"` + c + `"`
		} else if strings.HasPrefix(c, "COALESCE(") {
			list[i] = c
		}
	}
	n := int64(0)
	d.place = func() string { return fmt.Sprintf("%s, row %d", table, n) }
	d.row = func(v []driver.Value) error {
		n++
		return row(v)
	}
	call := takeRow + "(" + strings.Join(list, ", ") + ")"
	if where != "" {
		call = "CASE WHEN " + where + " THEN " + call + " ELSE 0 END"
	}
	if order != "" { // a limit keeps the order from being optimized away
		table = "(SELECT * FROM " + table + " ORDER BY " + order + " LIMIT -1)"
	}
	d.err = nil
	err := d.query("SELECT 1 FROM "+table+" WHERE "+call, func([]driver.Value) error { return nil })
	switch {
	case d.err == errUnsorted:
		return errUnsorted
	case d.err != nil:
		return &format.FileError{File: d.place(), Err: d.err}
	}
	return err
}

// asInt returns a value as a whole number, or none.
func asInt(v driver.Value, none int64) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v)
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	return none
}

// asText returns a copy of a text.
func asText(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return strings.Clone(v)
	case []byte:
		return string(v)
	}
	return ""
}

// usefulStrings is the condition for strings that may be annotations, names of functions and kernels, or payloads.
const usefulStrings = "value GLOB 'nccl*' OR value GLOB 'cu*Launch*' OR value GLOB 'comm*' OR " +
	"value GLOB 'collType *' OR value GLOB 'nWarps *' OR value GLOB 'Bytes *' OR value GLOB 'nsys profiling *' OR " +
	"value GLOB '{*' OR value GLOB 'NCCL*'"

// readDatabase reads the export.
func readDatabase(name string, open opener, o reportOptions, sorted bool) (*report, error) {
	d, err := openDatabase(o.ctx, open)
	if err != nil {
		return nil, err
	}
	defer d.conn.Close()
	if _, ok := d.tables[tableAnnotations]; !ok {
		if len(d.tables) == 0 {
			return nil, fmt.Errorf("expected an nsys export with a table %s, found another database", tableAnnotations)
		}
		return nil, fmt.Errorf("expected an nsys export with NCCL annotations, found no table %s: profile with "+
			"--trace=cuda,nvtx",
			tableAnnotations)
	}
	if len(d.tables[tableKernel]) > 0 && len(d.tables[tableStrings]) == 0 {
		return nil, fmt.Errorf("expected a table %s with the names of kernels, found none", tableStrings)
	}
	r := newReport(name, &o)
	r.place = func() string { return name + ": " + d.place() }
	if err := r.readMeta(d); err != nil {
		return nil, err
	}
	strings := make(map[int64]string)
	err = d.each(tableStrings, []string{"id", "value"}, usefulStrings, "", func(v []driver.Value) error {
		strings[asInt(v[0], -1)] = asText(v[1])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := r.readKernels(d, strings); err != nil {
		return nil, err
	}
	if err := r.readLaunches(d); err != nil {
		return nil, err
	}
	if err := r.readGraphs(d); err != nil {
		return nil, err
	}
	if o.syncs {
		if err := r.readSyncs(d); err != nil {
			return nil, err
		}
	}
	m := newMachine(r)
	if err := m.stock.readSchemas(d); err != nil {
		return nil, err
	}
	if err := m.readAnnotations(d, strings, sorted); err != nil {
		return nil, err
	}
	r.place = func() string { return name }
	return r, nil
}

// readMeta reads the data about the export and its session.
func (r *report) readMeta(d *database) error {
	err := d.each(tableExport, []string{"name", "value"}, "", "", func(v []driver.Value) error {
		if asText(v[0]) == "EXPORT_PRODUCT_VERSION" {
			r.version = asText(v[1])
		}
		return nil
	})
	if err == nil {
		err = d.each(tableSystem, []string{"name", "value"}, "", "", func(v []driver.Value) error {
			if asText(v[0]) == "Hostname" && r.host == "" {
				r.host = asText(v[1])
			}
			return nil
		})
	}
	if err == nil {
		err = d.each(tableSession, []string{"utcEpochNs"}, "", "", func(v []driver.Value) error {
			r.epoch = asInt(v[0], 0)
			return nil
		})
	}
	if err == nil {
		err = d.each(tableAnalysis, []string{"startTime", "stopTime"}, "", "", func(v []driver.Value) error {
			r.setSession(asInt(v[0], unknownTime), asInt(v[1], unknownTime))
			return nil
		})
	}
	return err
}

func (r *report) readKernels(d *database, strings map[int64]string) error {
	if _, ok := d.tables[tableKernel]; !ok {
		return nil // empty tables may be missing
	}
	name := "demangledName"
	if !d.has(tableKernel, name) {
		name = "shortName"
	}
	only, err := d.onlyProcess()
	if err != nil {
		return err
	}
	names := make(map[int64]kernelKind)
	for id, s := range strings {
		if kind, ok := parseKernel(s); ok {
			names[id] = kind
		}
	}
	columns := []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
		"graphNodeId", name}
	where := ""
	if d.has(tableStrings, "id") && d.has(tableKernel, name) {
		where = `"` + name +
			`" IN (SELECT id FROM StringIds WHERE value GLOB 'ncclKernel*' OR value GLOB 'ncclDevKernel*')`
	}
	return d.each(tableKernel, columns, where, "", func(v []driver.Value) error {
		row := kernelRow{start: asInt(v[0], unknownTime), end: asInt(v[1], unknownTime), device: asInt(v[2], 0),
			context: asInt(v[3], 0), stream: asInt(v[4], 0), correlation: asInt(v[5], -1), globalPid: asInt(v[6], only),
			graphNode: asInt(v[7], 0)}
		var ok bool
		if row.kind, ok = names[asInt(v[8], -1)]; !ok {
			return nil
		}
		return r.problem("such kernels are skipped", r.addKernel(&row))
	})
}

// onlyProcess returns the globalPid of the process of all annotations if the kernels do not have theirs; 0 if
// there are several.
func (d *database) onlyProcess() (int64, error) {
	if d.has(tableKernel, "globalPid") || !d.has(tableAnnotations, "globalTid") {
		return 0, nil
	}
	var all []int64
	err := d.query("SELECT DISTINCT (globalTid >> 24) << 24 FROM "+tableAnnotations+
		" WHERE globalTid IS NOT NULL LIMIT 2", func(v []driver.Value) error {
		all = append(all, asInt(v[0], 0))
		return nil
	})
	if len(all) == 1 {
		return all[0], err
	}
	return 0, err
}

// readLaunches reads the host calls that launched NCCL kernels.
func (r *report) readLaunches(d *database) error {
	where := ""
	if d.has(tableRuntime, "nameId") && d.has(tableStrings, "id") {
		where = "nameId IN (SELECT id FROM StringIds WHERE value GLOB 'cu*Launch*')"
	}
	index := r.byCorrelation()
	err := d.each(tableRuntime, []string{"start", "globalTid", "correlationId"}, where, "",
		func(v []driver.Value) error {
			r.addLaunch(index, asInt(v[0], 0), asInt(v[1], 0), asInt(v[2], -1))
			return nil
		})
	r.sortLaunches()
	return err
}

func (r *report) readGraphs(d *database) error {
	err := d.each(tableGraphNodes, []string{"start", "globalTid", "graphNodeId", "originalGraphNodeId"}, "", "",
		func(v []driver.Value) error {
			r.addGraphNode(asInt(v[0], 0), asInt(v[1], 0), asInt(v[2], 0), asInt(v[3], 0))
			return nil
		})
	if err != nil {
		return err
	}
	r.sortLaunches()
	return d.each(tableGraphRuns, []string{"start"}, "", "", func([]driver.Value) error {
		r.graphRuns++
		return nil
	})
}

// readAnnotations passes the annotations to the machine in start order.
func (m *machine) readAnnotations(d *database, strings map[int64]string, sorted bool) error {
	order := ""
	if sorted {
		order = "start, rowid"
	}
	columns := []string{"start", "end", "globalTid", d.first(tableAnnotations, "text", "textId"),
		d.first(tableAnnotations, "binaryData", "jsonText", "jsonTextId")}
	before := int64(math.MinInt64)
	var row annotationRow
	err := d.each(tableAnnotations, columns, "", order, func(v []driver.Value) error {
		row = annotationRow{row: row.row + 1, start: asInt(v[0], unknownTime), end: asInt(v[1], unknownTime),
			globalTid: asInt(v[2], 0)}
		if row.start < before && !sorted {
			return errUnsorted
		}
		before = row.start
		switch text := v[3].(type) {
		case string:
			row.text = text
		case int64:
			row.text = strings[text]
		}
		switch payload := v[4].(type) {
		case string:
			row.json = payload
		case int64:
			row.json = strings[payload]
		case []byte:
			row.binary = payload
		}
		if row.end < row.start {
			row.end = unknownTime // some versions write 0 or -1 for none
		}
		return m.annotation(&row)
	})
	if err != nil {
		return err
	}
	return m.finish()
}
