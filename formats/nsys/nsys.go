// Package nsys reads exports of Nsight Systems for jobs that communicate by NCCL: SQLite databases, JSON lines and
// CSV tables. NCCL must write NVTX annotations: the NCCL patched for ATLAHS records all details, NVIDIA's own
// records sizes and partners. docs/reference/formats/nsys.md describes the annotations and the mapping.
package nsys

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/spool"
	"github.com/tracedag/tracedag/internal/par"
)

// Format is the exports of Nsight Systems.
var Format = format.Format{
	Name:       "nsys",
	Modes:      format.Modes{Lenient: true},
	Title:      "Nsight Systems exports with NCCL annotations (SQLite, JSON lines, CSV tables)",
	Extensions: []string{".sqlite", ".jsonl", ".nsys-rep", ".qdrep"},
	Binary:     true,
	Detect:     detect,
	Files:      files,
	Read:       read,
	Options:    table,
}

func detect(head []byte) bool {
	return bytes.HasPrefix(head, []byte(sqliteHeader)) || isJSONLines(head) || isTable(head) || isStats(head)
}

// read reads a trace. It processes files in parallel.
func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	exports, err := group(inputs)
	if err != nil {
		return nil, err
	}
	own := format.Own(o.Own, func() *Options { return new(Options) })
	options := reportOptions{lenient: o.Lenient, syncs: own.SyncEdges, steps: own.stepNames(), ctx: o.Context}
	reports := make([]*report, len(exports))
	errs := make([]error, len(exports))
	par.For(len(exports), func(i int) {
		x := exports[i]
		if errs[i] = par.Interrupted(o.Context); errs[i] != nil {
			return
		}
		if reports[i], errs[i] = x.read(options); errs[i] == nil {
			errs[i] = x.finish(reports[i], own.Hosts)
		}
	})
	mixed := int64(0)
	for i, r := range reports {
		if errs[i] != nil {
			return nil, errs[i]
		}
		r.warn(o.Warn)
		mixed += r.mixedGroups
	}
	if mixed > 0 {
		o.Warn("%s: %d groups of calls have other numbers of kernels than of communicators and kinds; "+
			"the work of a group is assigned to all its kernels together", inputs[0].Name, mixed)
	}
	j, err := newJob(o.Context, reports, own, o.Warn)
	if err != nil {
		return nil, err
	}
	if err := j.resolve(); err != nil {
		return nil, err
	}
	return j.trace()
}

// export is the files of one report.
type export struct {
	name   string // for messages: the file, or the first CSV table
	base   string // of the file's name, without ending
	inputs []*format.Input
	form   form
}

// read reads the export.
func (x *export) read(o reportOptions) (*report, error) {
	in := x.inputs[0]
	switch x.form {
	case formJSON:
		return readJSONLines(in, o)
	case formCSV:
		return readTables(x.name, x.inputs, o)
	}
	path, remove, err := plainPath(o.ctx, in)
	if err != nil {
		return nil, err
	}
	defer remove()
	return readSQLite(in.Name, path, o)
}

// finish performs the steps common to all forms.
func (x *export) finish(r *report, hosts map[string]string) error {
	if err := r.link(); err != nil {
		return &format.FileError{File: r.name, Err: err}
	}
	r.kernels, r.launches, r.graphNodes = nil, nil, nil
	if r.host == "" {
		r.host = strings.TrimPrefix(x.base, "nsys_report_")
	}
	for _, name := range []string{filepath.Base(x.name), x.base} {
		if host, ok := hosts[name]; ok {
			r.host = host
		}
	}
	return nil
}

// plainPath returns the path of a file with the content of the input, for a library that reads only files: the
// input's own path if it is a regular file, else the path of a copy, which remove removes.
func plainPath(ctx context.Context, in *format.Input) (path string, remove func(), err error) {
	remove = func() {}
	if f, err := os.Open(in.Name); err == nil {
		head := make([]byte, len(sqliteHeader))
		_, err := io.ReadFull(f, head)
		f.Close()
		if err == nil && string(head) == sqliteHeader {
			return in.Name, remove, nil
		}
	}
	copied, err := spool.Copy(ctx, in, "nsys-*.sqlite", sqliteHeader, true)
	if err != nil {
		return "", remove, err
	}
	return copied.Name(), func() { copied.Close() }, nil
}

// cause returns an error of the file system without the path, which messages have already.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
