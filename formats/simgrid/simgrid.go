// Package simgrid reads and writes the time-independent traces of SimGrid: the MPI calls of each rank with the amounts
// of data and work, which smpirun records with -trace-ti and replays with -replay.
// docs/reference/formats/simgrid.md describes them.
package simgrid

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Format is the time-independent trace.
var Format = format.Format{
	Name:         "simgrid",
	Modes:        format.Modes{Lenient: true},
	Title:        "SimGrid time-independent traces of MPI programs (smpirun -trace-ti)",
	Extensions:   []string{".ti"},
	Detect:       detect,
	DetectList:   detectList,
	Read:         read,
	Options:      readTable,
	WriteOptions: writeTable,
	Paired:       true,
	Lacks:        lower.Lacks{Memory: true, Storage: true},
	Losses:       losses,
	Write:        write,
}

var readTable = &format.OptionTable{
	Name: "simgrid", Title: "SimGrid time-independent traces, read",
	New: func() format.Options { return new(Options) },
}

var writeTable = &format.OptionTable{
	Name: "simgrid", Title: "SimGrid time-independent traces, written",
	New: func() format.Options { return newWriteOptions() },
}

// Options are the options of reading.
type Options struct {
	Speed int64 // flops per second that give calcs a duration; 0: they keep none
}

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	return param.Set{atLeastOne(param.FLOPS(&o.Speed, "host-speed",
		"speed of a host, such as 10GFLOPS, which gives computations a duration (default: none)"), &o.Speed)}
}

// WriteOptions are the options of writing.
type WriteOptions struct {
	Speed int64 // flops per second of a calc with a duration
	Sleep bool  // write durations as sleeps
}

const defaultSpeed = 1e9

func newWriteOptions() *WriteOptions { return &WriteOptions{Speed: defaultSpeed} }

// Params returns the parameters of the options.
func (o *WriteOptions) Params() param.Set {
	return param.Set{
		atLeastOne(param.FLOPS(&o.Speed, "compute-speed", "flops per second of computations with a duration"),
			&o.Speed),
		param.Bool(&o.Sleep, "sleep", "write computations with a duration as sleep instead of compute"),
	}
}

func atLeastOne(p param.Param, at *int64) param.Param {
	return format.Within(p, at, 1, math.MaxInt64)
}

// detect reports whether the first action of a file is init.
func detect(head []byte) bool {
	line, _ := firstLine(head)
	fields := bytes.Fields(line)
	return len(fields) >= 2 && isRank(fields[0]) && string(fields[1]) == "init"
}

// firstLine returns the first line that is neither empty nor a comment, and the rest.
func firstLine(text []byte) (line, rest []byte) {
	for len(text) > 0 {
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return line, text
		}
	}
	return nil, nil
}

func isRank(field []byte) bool {
	for _, c := range field {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(field) <= 10
}

// detectList reports whether every line is one name, and the first is that of a file of actions, or all are names as
// smpirun gives them.
func detectList(head []byte, beside func(name string) []byte) bool {
	whole := head
	if len(head) == format.DetectBytes { // the last line may be cut
		whole = head[:bytes.LastIndexByte(head, '\n')+1]
	}
	first, _ := firstLine(whole)
	if first == nil {
		return false
	}
	recorded := true
	for line, rest := firstLine(whole); line != nil; line, rest = firstLine(rest) {
		if !isName(line) {
			return false
		}
		recorded = recorded && isRecorded(line)
	}
	return recorded || slices.ContainsFunc(places(string(first)), func(name string) bool {
		return detect(beside(name))
	})
}

// isRecorded reports whether a name is one that smpirun gives to the file of a rank.
func isRecorded(name []byte) bool {
	stem, isText := bytes.CutSuffix(name, []byte(".txt"))
	at := bytes.LastIndex(stem, []byte("_rank-"))
	return isText && at >= 0 && len(stem) > at+len("_rank-") && isRank(stem[at+len("_rank-"):])
}

// isName reports whether a line may be the name of a file.
func isName(line []byte) bool {
	return !bytes.ContainsAny(line, " \t\x00")
}

// places returns the paths, relative to the folder of a list if they are not absolute, where a file that the list
// names may be: that name, the same relative to the working folder, for which smpirun writes it, and the end of the
// name, with one folder, if the list has been moved.
func places(name string) []string {
	all := []string{name}
	if filepath.IsAbs(name) {
		return all
	}
	if path, err := filepath.Abs(name); err == nil {
		all = append(all, path)
	}
	if folder := filepath.Base(filepath.Dir(name)); folder != "." && folder != ".." {
		all = append(all, filepath.Join(folder, filepath.Base(name)))
	}
	return all
}

// beside returns the path of a file that a list names: the first of its places where a file is, or else the first.
func beside(list, name string) string {
	if filepath.IsAbs(name) || strings.HasPrefix(list, "<") {
		return name
	}
	for _, place := range places(name) {
		if !filepath.IsAbs(place) {
			place = filepath.Join(filepath.Dir(list), place)
		}
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place
		}
	}
	return filepath.Join(filepath.Dir(list), name)
}

// sizes are the bytes of the datatypes by id; 0: there is none.
var sizes = [60]int64{
	8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16, 8, 8, 8, 16,
	16, 4, 4, 8, 16, 8, 16, 32, 4, 2, 4, 8, 16, 32, 1, 8, 16, 32, 0, 0, 8, 8, 8,
}

// Datatypes.
const (
	typeDouble            = 0
	typeInt               = 1
	typeShort             = 3
	typeByte              = 6
	typeLongDouble        = 14
	typeLongDoubleComplex = 27
)

// Wildcards of receives.
const (
	anySource = -555
	anyTag    = -444
)

// fromPeer converts a source of a receive.
func fromPeer(peer int64) int32 {
	if peer < 0 {
		return dag.AnySource
	}
	return int32(peer)
}
