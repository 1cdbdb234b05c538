// This file draws node matrices in CSV.

package tracecat

import (
	"bufio"
	"errors"
	"os"

	"github.com/tracedag/tracedag/dag/gen/matrix"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/report"
)

// plotMatrices writes the pictures of files that are node matrices, and prints them with --json. done is false if the
// only file is none, and thus a trace.
func (v *view) plotMatrices(p *cli.Program, names []string) (done bool, err error) {
	if len(names) > report.MaxLoadMatrices {
		return false, cli.Usagef("--plot matrix draws at most %d matrices, found %d files", report.MaxLoadMatrices,
			len(names))
	}
	var all []*report.LoadMatrix
	for _, name := range names {
		m, err := readMatrix(p, name)
		if err != nil {
			return false, err
		}
		if m != nil {
			all = append(all, m)
		}
	}
	switch {
	case len(all) == 0 && len(names) == 1:
		return false, nil
	case len(all) < len(names):
		return false, cli.Usagef("--plot matrix draws one trace, or several node matrices in CSV: %d of %d files are "+
			"node matrices", len(all), len(names))
	}
	v.outputs.Create = func(name string) (report.File, error) { return p.Create(name, false) }
	if err := v.outputs.WriteLoads(all); err != nil || !v.json {
		return true, err
	}
	out, err := p.Create("-", false)
	if err != nil {
		return false, err
	}
	defer out.Close()
	if err := writeJSONLines(out.Writer, all); err != nil {
		return false, err
	}
	return true, out.Commit()
}

// readMatrix returns the node matrix in a file, nil if the file is none. Standard input is none.
func readMatrix(p *cli.Program, name string) (*report.LoadMatrix, error) {
	if info, err := os.Stat(name); name == "-" || err == nil && info.IsDir() {
		return nil, nil
	}
	in, err := p.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const enough = 4096 // bytes for the first numbers
	reader := bufio.NewReaderSize(in.Reader, enough)
	head, _ := reader.Peek(enough)
	if !matrix.Detect(head) {
		return nil, nil
	}
	m, err := matrix.ReadMatrix(reader)
	var wrong *openloop.LineError
	if errors.As(err, &wrong) {
		return nil, &format.SyntaxError{File: name, Line: wrong.Line, Expected: wrong.Expected, Found: wrong.Found}
	} else if err != nil {
		return nil, format.InFile(name, err)
	}
	load := report.NewLoadMatrix(m.N, m.Racks)
	load.Name = name
	for i, share := range m.Cells {
		load.Add(i/m.N, i%m.N, max(0, share))
	}
	load.Normalise()
	return load, nil
}
