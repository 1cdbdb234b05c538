// This file reads the export form that nsys calls json: the strings on the first line, one event on each other
// line.

package nsys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// number is a whole number in JSON; 64-bit numbers may be in quotes.
type number int64

func (n *number) UnmarshalJSON(text []byte) error {
	if len(text) > 1 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		if f, floatErr := strconv.ParseFloat(string(text), 64); floatErr == nil && f == float64(int64(f)) {
			v, err = int64(f), nil
		}
	}
	if err != nil {
		return fmt.Errorf("expected a whole number, found %s", text)
	}
	*n = number(v)
	return nil
}

// jsonEvent is a line other than the first. A missing member is nil.
type jsonEvent struct {
	NvtxEvent *struct {
		Timestamp    *number
		EndTimestamp *number
		Text         string
		TextId       *number //nolint:revive // name in the file
		GlobalTid    number
		JsonText     string //nolint:revive // name in the file
	}
	TraceProcessEvent *struct {
		StartNs       *number `json:"startNs"`
		CorrelationID *number `json:"correlationId"`
		GlobalTid     number  `json:"globalTid"`
	}
	CudaEvent *struct {
		StartNs       *number `json:"startNs"`
		EndNs         *number `json:"endNs"`
		CorrelationID *number `json:"correlationId"`
		DeviceID      number  `json:"deviceId"`
		ContextID     number  `json:"contextId"`
		StreamID      number  `json:"streamId"`
		GlobalPid     number  `json:"globalPid"`
		GraphNodeID   number  `json:"graphNodeId"`
		Kernel        *struct {
			DemangledName *number `json:"demangledName"`
			ShortName     *number `json:"shortName"`
			GraphNodeID   number  `json:"graphNodeId"`
		} `json:"kernel"`
	}
}

// jsonReader reads lines.
type jsonReader struct {
	buffered
	line    int64
	strings []string
	kinds   map[int64]kernelKind // of the strings that are names of NCCL kernels
}

// readJSONLines reads an export as JSON lines.
func readJSONLines(in *format.Input, o reportOptions) (*report, error) {
	j := &jsonReader{buffered: buffered{r: newReport(in.Name, &o)}, kinds: make(map[int64]kernelKind)}
	err := format.EachLines(o.ctx, in.Reader, func(lines []byte) error {
		if err := par.Interrupted(o.ctx); err != nil {
			return err
		}
		for len(lines) > 0 {
			line, rest, _ := bytes.Cut(lines, []byte{'\n'})
			lines = rest
			j.line++
			if err := j.parse(bytes.TrimSpace(line)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		if _, ok := err.(*format.SyntaxError); ok {
			return nil, err
		}
		return nil, fmt.Errorf("%s:%d: %w", in.Name, j.line+1, err)
	}
	if j.line == 0 {
		return nil, &format.SyntaxError{File: in.Name, Line: 1, Expected: "strings", Found: "an empty file"}
	}
	return j.finish()
}

// parse parses a line.
func (j *jsonReader) parse(line []byte) error {
	if j.line == 1 {
		return j.first(line)
	}
	if len(line) == 0 || !bytes.Contains(line, []byte(`"NvtxEvent"`)) && !bytes.Contains(line, []byte(`"CudaEvent"`)) &&
		!bytes.Contains(line, []byte(`"TraceProcessEvent"`)) {
		return nil
	}
	var e jsonEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return j.r.problem("such lines are skipped", j.syntax("an event as a JSON object", err.Error()))
	}
	switch {
	case e.NvtxEvent != nil:
		n := e.NvtxEvent
		if n.Timestamp == nil {
			return j.r.problem("such lines are skipped", j.syntax("Timestamp in NvtxEvent", ""))
		}
		row := annotationRow{row: j.line, start: int64(*n.Timestamp), end: unknownTime,
			globalTid: int64(n.GlobalTid), text: n.Text, json: n.JsonText}
		if n.EndTimestamp != nil {
			row.end = int64(*n.EndTimestamp)
		}
		if row.text == "" && n.TextId != nil {
			row.text = j.string(int64(*n.TextId))
		}
		j.addAnnotation(row)
	case e.TraceProcessEvent != nil:
		if p := e.TraceProcessEvent; p.StartNs != nil && p.CorrelationID != nil {
			j.launches = append(j.launches, launchRow{int64(*p.StartNs), int64(p.GlobalTid), int64(*p.CorrelationID)})
		}
	case e.CudaEvent != nil && e.CudaEvent.Kernel != nil:
		return j.kernel(&e)
	}
	return nil
}

func (j *jsonReader) kernel(e *jsonEvent) error {
	c := e.CudaEvent
	name := c.Kernel.DemangledName
	if name == nil {
		name = c.Kernel.ShortName
	}
	if name == nil {
		return nil
	}
	kind, ok := j.kinds[int64(*name)]
	if !ok {
		return nil
	}
	if c.StartNs == nil || c.EndNs == nil {
		return j.r.problem("such lines are skipped", j.syntax("startNs and endNs in CudaEvent", ""))
	}
	row := kernelRow{start: int64(*c.StartNs), end: int64(*c.EndNs), device: int64(c.DeviceID),
		context: int64(c.ContextID),
		stream:  int64(c.StreamID), globalPid: int64(c.GlobalPid), correlation: -1, kind: kind,
		graphNode: max(int64(c.GraphNodeID), int64(c.Kernel.GraphNodeID))}
	if c.CorrelationID != nil {
		row.correlation = int64(*c.CorrelationID)
	}
	j.kernels = append(j.kernels, row)
	return nil
}

// first parses the line with the strings.
func (j *jsonReader) first(line []byte) error {
	var table struct {
		Data []string `json:"data"`
	}
	if err := json.Unmarshal(line, &table); err != nil || table.Data == nil {
		found := ""
		if err != nil {
			found = err.Error()
		}
		return j.syntax(`{"data":[...]} with all strings`, found)
	}
	j.strings = table.Data
	for i, s := range table.Data {
		if kind, ok := parseKernel(s); ok {
			j.kinds[int64(i)] = kind
		}
	}
	return nil
}

func (j *jsonReader) string(i int64) string {
	if i < 0 || i >= int64(len(j.strings)) {
		return ""
	}
	return j.strings[i]
}

func (j *jsonReader) syntax(expected, found string) error {
	return &format.SyntaxError{File: j.r.name, Line: j.line, Expected: expected, Found: found}
}
