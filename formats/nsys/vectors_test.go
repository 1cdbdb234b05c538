package nsys

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

const vectors = "testdata/vectors"

// readFiles reads the trace in files, and returns the warnings, too.
func readFiles(o format.ReadOptions, paths ...string) (*dag.Trace, []string, error) {
	var warnings []string
	o.Warn = func(message string, args ...any) { warnings = append(warnings, fmt.Sprintf(message, args...)) }
	var inputs []*format.Input
	for i, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		in := &format.Input{Name: path, Reader: f}
		if i == 0 { // as the programs do: later files are not open yet
			in.Head = make([]byte, format.DetectBytes)
			n, _ := f.ReadAt(in.Head, 0)
			in.Head = in.Head[:n]
		}
		inputs = append(inputs, in)
	}
	t, err := Format.Read(inputs, o)
	return t, warnings, err
}

// folderFiles returns the files of the trace in a folder.
func folderFiles(t *testing.T, folder, name string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	names, err = Format.Files(name, names)
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Join(folder, names[i])
	}
	return names
}

// readFolder reads the trace in a folder, of which there must be no complaint.
func readFolder(t *testing.T, folder string, o format.ReadOptions) *dag.Trace {
	t.Helper()
	trace, warnings, err := readFiles(o, folderFiles(t, folder, "")...)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	return trace
}

// expectation is expect.json of a vector.
type expectation struct {
	GPUs    int            `json:"gpus"`
	Nodes   int            `json:"nodes"`
	GPUNode []int32        `json:"gpu_node"`
	Ops     map[string]int `json:"ops"`
	Pairs   map[string]struct {
		Bytes int64 `json:"bytes"`
	} `json:"gpu_pairs"`
	Calc map[string]struct {
		Gap int64 `json:"gap_ns"`
	} `json:"calc_per_node"`
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func vectorFolders(t *testing.T) []string {
	t.Helper()
	folders, err := filepath.Glob(vectors + "/*/case.json")
	if err != nil || len(folders) < 31 {
		t.Fatalf("%d vectors, %v", len(folders), err)
	}
	for i := range folders {
		folders[i] = filepath.Dir(folders[i])
	}
	return folders
}

// TestVectors compares the trace of each vector with an independently computed one.
func TestVectors(t *testing.T) {
	names := map[dag.Subkind]string{dag.Bcast: "Broadcast", dag.Reduce: "Reduce", dag.Allgather: "AllGather",
		dag.ReduceScatter: "ReduceScatter", dag.Allreduce: "AllReduce"}
	for _, folder := range vectorFolders(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			var want expectation
			readJSON(t, filepath.Join(folder, "expect.json"), &want)
			var description struct{ Flags []string }
			readJSON(t, filepath.Join(folder, "case.json"), &description)
			var o format.ReadOptions
			o.Own = &Options{MergeNonOverlap: slices.Contains(description.Flags, "--merge-non-overlap")}
			trace := readFolder(t, folder, o)
			if problems := dag.Validate(trace); len(problems) > 0 {
				t.Errorf("not valid: %v", problems)
			}
			if len(trace.Ranks) != want.GPUs {
				t.Fatalf("%d GPUs, want %d", len(trace.Ranks), want.GPUs)
			}
			if filepath.Base(folder) != "17_regroup" && !slices.Equal(trace.Nodes, want.GPUNode) {
				t.Errorf("nodes %v, want %v", trace.Nodes, want.GPUNode)
			}
			ops, gaps, sent := make(map[string]int), make(map[string]int64), make(map[string]int64)
			for rank := range trace.Ranks {
				r := trace.Ranks[rank]
				for i, kind := range r.Kind {
					switch kind {
					case dag.Calc:
						gaps[fmt.Sprint(want.GPUNode[rank])] += int64(r.Duration.At(i) / dag.Nanosecond)
					case dag.Send:
						sent[fmt.Sprintf("%d->%d", rank, r.Peer.At(i))] += r.Bytes.At(i)
						ops["Send"]++
					case dag.Recv:
						ops["Recv"]++
					case dag.Coll:
						ops[names[r.Subkind.At(i)]]++
					}
				}
			}
			if !reflect.DeepEqual(ops, want.Ops) {
				t.Errorf("ops %v, want %v", ops, want.Ops)
			}
			for node, calc := range want.Calc {
				if gaps[node] != calc.Gap {
					t.Errorf("node %s: gaps of %d ns, want %d", node, gaps[node], calc.Gap)
				}
			}
			_, send := want.Ops["Send"]
			if send && len(want.Ops) == 2 && filepath.Base(folder) != "x03_p2p_ll" { // LL adds flags to what it sends
				for pair, w := range want.Pairs {
					if sent[pair] != w.Bytes {
						t.Errorf("%s: %d bytes, want %d", pair, sent[pair], w.Bytes)
					}
				}
			}
		})
	}
}

// TestForms compares what the forms of one export become. The text forms lack the name of the host, which is in the
// names of the files, too, and JSON lines all that is not an event.
func TestForms(t *testing.T) {
	for _, name := range []string{"01_allreduce_ring_simple", "08_p2p_single"} {
		folder := filepath.Join(vectors, name)
		want := readFolder(t, folder, format.ReadOptions{})
		entries, err := os.ReadDir(filepath.Join(folder, "derived"))
		if err != nil {
			t.Fatal(err)
		}
		var lines, tables []string
		for _, e := range entries {
			path := filepath.Join(folder, "derived", e.Name())
			if form, _, _, ok := parseName(path); ok && form == formJSON {
				lines = append(lines, path)
			} else if ok {
				tables = append(tables, path)
			}
		}
		for form, paths := range map[string][]string{"JSON lines": lines, "tables": tables} {
			got, warnings, err := readFiles(format.ReadOptions{}, paths...)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, form, err)
			}
			if form == "JSON lines" {
				if len(warnings) != 1 {
					t.Errorf("%s: %s: warnings: %q, want one about clocks", name, form, warnings)
				}
				got.Attrs = strings.Replace(got.Attrs, `"]}}`, `"],"version":"2024.5.1.113"}}`, 1)
			} else if len(warnings) > 0 {
				t.Errorf("%s: %s: warnings: %q", name, form, warnings)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s: not what the database becomes:\n%+v\n%+v", name, form, got.Meta, want.Meta)
			}
		}
		all := folderFiles(t, filepath.Join(folder, "derived"), "")
		if !slices.Equal(all, lines) {
			t.Errorf("%s: of the folder %q, want %q", name, all, lines)
		}
		one := folderFiles(t, filepath.Join(folder, "derived"), "nsys_report_node01.StringIds.csv")
		if len(one) != 6 {
			t.Errorf("%s: beside one table: %q, want 6", name, one)
		}
	}
}
