// This file reads exports as tables: one CSV file per table, with column names in the first line and empty fields
// for missing values.

package nsys

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

// tableReader reads a dump of tables.
type tableReader struct {
	buffered
	inputs map[string]*format.Input
}

// readTables reads an export as tables; messages call it name.
func readTables(name string, inputs []*format.Input, o reportOptions) (*report, error) {
	t := &tableReader{buffered: buffered{r: newReport(name, &o)}, inputs: make(map[string]*format.Input)}
	for _, in := range inputs {
		_, _, table, _ := parseName(in.Name)
		if table == "" { // given by another name: its header identifies it
			if table = tableAnnotations; !strings.Contains(string(in.Head), "eventType") {
				table = tableKernel
			}
		}
		t.inputs[table] = in
	}
	for _, table := range []string{tableAnnotations, tableKernel, tableStrings} {
		if t.inputs[table] == nil {
			return nil, format.FileErrorf(name, "expected the table %s in PREFIX.%[1]s.csv beside it, found "+
				"none", table)
		}
	}
	texts := make(map[int64]string)
	if err := t.readStrings(texts); err != nil {
		return nil, err
	}
	if err := t.readMeta(); err != nil {
		return nil, err
	}
	if err := t.readRows(texts); err != nil {
		return nil, err
	}
	t.r.name = t.inputs[tableAnnotations].Name
	return t.finish()
}

// record is a row of a table.
type record struct {
	fields []string
	line   int64
	bad    string // first field that is no number, with its column
}

// int returns a field as a whole number, or none.
func (r *record) int(i int, none int64) int64 {
	s := r.fields[i]
	if s == "" {
		return none
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		if f, floatErr := strconv.ParseFloat(s, 64); floatErr == nil && f == float64(int64(f)) {
			return int64(f)
		}
		if r.bad == "" {
			r.bad = s
		}
		return none
	}
	return v
}

// each calls row with the columns of each row of a table, "" for missing columns. A missing table has no rows.
func (t *tableReader) each(table string, columns []string, row func(r *record) error) error {
	in := t.inputs[table]
	if in == nil {
		return nil
	}
	buffer := bufio.NewReaderSize(in.Reader, 1<<16)
	if bom, err := buffer.Peek(3); err == nil && string(bom) == "\ufeff" {
		buffer.Discard(3)
	}
	source := format.NewCSV(t.r.watch.Context, in.Name, buffer)
	header, err := source.Read()
	if err == io.EOF {
		return &format.SyntaxError{File: in.Name, Line: 1, Expected: "column names", Found: "an empty file"}
	}
	if err != nil {
		return err
	}
	places := make([]int, len(columns))
	for i, c := range columns {
		places[i] = -1
		for k, name := range header {
			if strings.EqualFold(strings.TrimSpace(name), c) {
				places[i] = k
			}
		}
	}
	r := record{fields: make([]string, len(columns))}
	for {
		fields, err := source.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := source.FieldPos(0)
		r.line, r.bad = int64(line), ""
		for i, k := range places {
			if r.fields[i] = ""; k >= 0 {
				r.fields[i] = fields[k]
			}
		}
		err = row(&r)
		if err == nil {
			err = t.r.watch.Err()
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", in.Name, r.line, err)
		}
		if r.bad != "" {
			return &format.SyntaxError{File: in.Name, Line: r.line, Expected: "a whole number",
				Found: strconv.Quote(r.bad)}
		}
	}
}

func (t *tableReader) readStrings(texts map[int64]string) error {
	return t.each(tableStrings, []string{"id", "value"}, func(r *record) error {
		texts[r.int(0, -1)] = strings.Clone(r.fields[1])
		return nil
	})
}

func (t *tableReader) readMeta() error {
	err := t.each(tableExport, []string{"name", "value"}, func(r *record) error {
		if r.fields[0] == "EXPORT_PRODUCT_VERSION" {
			t.r.version = strings.Clone(r.fields[1])
		}
		return nil
	})
	if err == nil {
		err = t.each(tableSystem, []string{"name", "value"}, func(r *record) error {
			if r.fields[0] == "Hostname" && t.r.host == "" {
				t.r.host = strings.Clone(r.fields[1])
			}
			return nil
		})
	}
	if err == nil {
		err = t.each(tableSession, []string{"utcEpochNs"}, func(r *record) error {
			t.r.epoch = r.int(0, 0)
			return nil
		})
	}
	if err == nil {
		err = t.each(tableAnalysis, []string{"startTime", "stopTime"}, func(r *record) error {
			t.r.setSession(r.int(0, unknownTime), r.int(1, unknownTime))
			return nil
		})
	}
	return err
}

func (t *tableReader) readRows(texts map[int64]string) error {
	kinds := make(map[int64]kernelKind)
	for id, s := range texts {
		if kind, ok := parseKernel(s); ok {
			kinds[id] = kind
		}
	}
	columns := []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid",
		"graphNodeId", "demangledName", "shortName"}
	err := t.each(tableKernel, columns, func(r *record) error {
		kind, ok := kinds[r.int(8, r.int(9, -1))]
		if ok {
			t.kernels = append(t.kernels, kernelRow{start: r.int(0, unknownTime), end: r.int(1, unknownTime),
				device: r.int(2, 0), context: r.int(3, 0), stream: r.int(4, 0), correlation: r.int(5, -1),
				globalPid: r.int(6, 0), graphNode: r.int(7, 0), kind: kind})
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = t.each(tableRuntime, []string{"start", "globalTid", "correlationId"}, func(r *record) error {
		t.launches = append(t.launches, launchRow{r.int(0, 0), r.int(1, 0), r.int(2, -1)})
		return nil
	})
	if err != nil {
		return err
	}
	err = t.each(tableGraphNodes, []string{"start", "globalTid", "graphNodeId", "originalGraphNodeId"},
		func(r *record) error {
			t.r.addGraphNode(r.int(0, 0), r.int(1, 0), r.int(2, 0), r.int(3, 0))
			return nil
		})
	if err != nil {
		return err
	}
	err = t.each(tableGraphRuns, []string{"start"}, func(*record) error {
		t.r.graphRuns++
		return nil
	})
	if err != nil {
		return err
	}
	columns = []string{"start", "end", "text", "textId", "globalTid", "jsonText", "jsonTextId"}
	return t.each(tableAnnotations, columns, func(r *record) error {
		row := annotationRow{row: r.line, start: r.int(0, unknownTime), end: r.int(1, unknownTime),
			text: strings.Clone(r.fields[2]), globalTid: r.int(4, 0), json: strings.Clone(r.fields[5])}
		if row.text == "" {
			row.text = texts[r.int(3, -1)]
		}
		if row.json == "" {
			row.json = texts[r.int(6, -1)]
		}
		t.addAnnotation(row)
		return nil
	})
}
