// This file parses parameter values: marking thresholds, transport parameters, failures, path files.

package packet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim/topology"
)

// parseMarks parses marking thresholds such as "61440", "20%,80%", "40kB,160kB" or "none".
func parseMarks(text string, p *Params) error {
	if text == "none" {
		p.ECNMin, p.ECNMax = NoECN, NoECN
		return nil
	}
	first, second, both := strings.Cut(text, ",")
	if !both {
		second = first
	}
	least, isShare, err := parseMark(first)
	if err != nil {
		return err
	}
	most, isShareToo, err := parseMark(second)
	switch {
	case err != nil:
		return err
	case isShare != isShareToo:
		return fmt.Errorf("expected KMIN[,KMAX] as sizes or as percentages, found %q", text)
	case most < least || most == 0:
		return fmt.Errorf("expected KMAX to be above 0 and not below KMIN, found %q", text)
	case isShare:
		p.ECNShares = [2]float64{least / 100, most / 100}
	default:
		p.ECNMin, p.ECNMax = int64(least), int64(most)
	}
	return nil
}

func parseMark(text string) (v float64, isShare bool, err error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		v, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(v >= 0 && v <= 100) {
			return 0, false, fmt.Errorf("expected 0%% to 100%%, found %q", text)
		}
		return v, true, nil
	}
	n, err := units.ParseSize(text)
	if err == nil && n > 1<<53 {
		err = fmt.Errorf("expected at most 2^53 bytes, found %q", text)
	}
	return float64(n), false, err
}

// parseParameter parses the value of a transport parameter in its unit, or "auto" if the default is derived.
func parseParameter(p *Parameter, text string) (float64, error) {
	if text == "auto" && p.Value < 0 {
		return p.Value, nil
	}
	switch p.Unit {
	case Bytes:
		n, err := units.ParseSize(text)
		return float64(n), err
	case Time:
		t, err := units.ParseTime(text, 0)
		return float64(t), err
	case Packets, BDPs:
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			break
		}
		n, err := units.ParseSize(text)
		if err != nil || n > mostBytes {
			return 0, fmt.Errorf("expected a number or a size such as 64KiB, at most %s, found %q",
				units.FormatSize(mostBytes), text)
		}
		return Size(n), nil
	case Switch:
		switch text {
		case "on", "1", "true":
			return 1, nil
		case "off", "0", "false":
			return 0, nil
		}
		return 0, fmt.Errorf("expected on or off, found %q", text)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("expected a number, found %q", text)
	}
	return v, nil
}

// formatParameter formats the value of a parameter in the syntax of parseParameter, or as "auto" if it is derived.
func formatParameter(p *Parameter, v float64) string {
	switch {
	case v < 0 && p.Value < 0:
		return "auto"
	case p.Unit == Bytes && v == math.Trunc(v):
		return units.FormatSize(int64(v))
	case p.takesSize() && v >= sizes:
		return units.FormatSize(int64(v) - sizes)
	case p.Unit == Time && v == math.Trunc(v):
		return dag.Time(v).String()
	case p.Unit == Switch:
		return [...]string{"off", "on"}[int(v)&1]
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// readPaths reads paths: lines of source, destination, path and optional ACK path; or a JSON object with the member
// paths, which has columns and rows.
func readPaths(name string) (Paths, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parsePaths(f, name)
}

func parsePaths(r io.Reader, name string) (Paths, error) {
	in := bufio.NewReader(r)
	for {
		c, err := in.ReadByte()
		switch {
		case err == io.EOF:
			return Paths{}, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case bytes.IndexByte([]byte(" \t\r"), c) >= 0:
			continue
		}
		if err := in.UnreadByte(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if c == '{' {
			return parseJSONPaths(in, name)
		}
		break
	}
	paths := make(Paths)
	err := conf.EachLine(in, name, func(fields []string) error {
		bad := &conf.Error{
			Expected: "source, destination, path and optional ACK path", Found: strings.Join(fields, " "),
		}
		if len(fields) < 3 || len(fields) > 4 {
			return bad
		}
		var numbers [4]uint32
		for i, field := range fields {
			n, err := strconv.ParseUint(field, 10, 32)
			if err != nil {
				return bad
			}
			numbers[i] = uint32(n)
		}
		if len(fields) == 3 {
			numbers[3] = numbers[2]
		}
		if !addPath(paths, numbers) {
			bad.Expected = "one path for each pair of hosts"
			return bad
		}
		return nil
	})
	return paths, err
}

// addPath adds a path. It returns false if the pair of hosts has a different path.
func addPath(paths Paths, p [4]uint32) bool {
	key, path := [2]uint32{p[0], p[1]}, Path{Forward: p[2], Reverse: p[3]}
	if old, ok := paths[key]; ok && old != path {
		return false
	}
	paths[key] = path
	return true
}

func parseJSONPaths(r io.Reader, name string) (Paths, error) {
	var document struct {
		Paths *struct {
			Columns []string    `json:"columns"`
			Rows    [][]*uint32 `json:"rows"`
		} `json:"paths"`
	}
	if err := json.NewDecoder(r).Decode(&document); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if document.Paths == nil {
		return nil, fmt.Errorf("%s: expected an object with paths, found none", name)
	}
	columns := [4]int{-1, -1, -1, -1}
	for i, column := range document.Paths.Columns {
		for k, known := range [4]string{"src", "dst", "path", "ack_path"} {
			if column == known {
				columns[k] = i
			}
		}
	}
	if columns[0] < 0 || columns[1] < 0 || columns[2] < 0 {
		return nil, fmt.Errorf("%s: paths: expected the columns src, dst and path, found %q", name,
			document.Paths.Columns)
	}
	paths := make(Paths, len(document.Paths.Rows))
	for i, row := range document.Paths.Rows {
		var numbers [4]uint32
		for k, at := range columns {
			switch {
			case at >= 0 && at < len(row) && row[at] != nil:
				numbers[k] = *row[at]
			case k == 3:
				numbers[k] = numbers[2]
			default:
				return nil, fmt.Errorf("%s: paths: row %d has no %s", name, i, document.Paths.Columns[at])
			}
		}
		if !addPath(paths, numbers) {
			return nil, fmt.Errorf("%s: paths: row %d: expected one path per pair of hosts, found two of %d and %d",
				name, i,
				numbers[0], numbers[1])
		}
	}
	return paths, nil
}

// matrix is the information of an htsim connection matrix besides its flows.
type matrix struct {
	is       bool // the trace comes from a connection matrix
	failures []Failure
}

// connectionMatrix returns the trace's information from a connection matrix: links between aggregation switches and
// cores that are down from the start.
func connectionMatrix(meta dag.Meta, n *topology.Network) (matrix, error) {
	known, ok := attr.ParseHTSim(meta.Attrs)
	if !ok {
		return matrix{}, nil // another format
	}
	m := matrix{is: true}
	if n == nil && len(known.Failures) > 0 {
		return m, errors.New("the connection matrix has failed links of a fat tree; expected a fat tree as " +
			"--topology, found a platform of SimGrid")
	}
	for _, line := range known.Failures {
		failure, err := attr.ParseLinkFailure(line)
		if err != nil {
			return m, err
		}
		link, err := n.CoreLink(failure.Aggregation, failure.Uplink)
		if err != nil {
			return m, fmt.Errorf("the failure %q: %w", line, err)
		}
		m.failures = append(m.failures, Failure{Links: []int{link}})
	}
	return m, nil
}
