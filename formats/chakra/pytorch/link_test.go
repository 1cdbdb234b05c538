package pytorch

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/format"
)

// Linking an execution trace with its profile makes the files of Chakra's linker and converter. The profile of rank 1
// lacks the calls of 64 kernels.
func TestLinkedVectors(t *testing.T) {
	folder := filepath.Join(vectorFolder(t), "dlrm_derived")
	{
		const compat = true
		var in []*format.Input
		for _, name := range []string{"kineto_1", "et_0", "kineto_0", "et_1"} {
			in = append(in, input(t, filepath.Join(folder, name+".json.gz")))
		}
		var warnings []string
		trace, err := read(in, format.ReadOptions{Compat: compat, Warn: func(text string, args ...any) {
			warnings = append(warnings, fmt.Sprintf(text, args...))
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(warnings)
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Error(problems)
		}
		var files []*bytes.Buffer
		create := func(name string) (io.Writer, error) {
			if filepath.Ext(name) != ".et" {
				return io.Discard, nil
			}
			files = append(files, new(bytes.Buffer))
			return files[len(files)-1], nil
		}
		if err := chakra.Format.WriteFiles(create, trace, format.WriteOptions{Warn: t.Logf}); err != nil {
			t.Fatal(err)
		}
		for rank, f := range files {
			want := content(t, filepath.Join(folder, fmt.Sprintf("dlrm.%d.et.gz", rank)))
			if compat && !bytes.Equal(f.Bytes(), want) {
				t.Errorf("rank %d: %d bytes differ from the %d expected", rank, f.Len(), len(want))
			}
			linked, err := read([]*format.Input{input(t, filepath.Join(folder, fmt.Sprintf("linked_%d.json.gz", rank)))},
				format.ReadOptions{Warn: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			got, expected := trace.Ranks[rank], linked.Ranks[0]
			if got.Len() != expected.Len() {
				t.Fatalf("rank %d: %d ops, want %d", rank, got.Len(), expected.Len())
			}
			for i := range got.Len() {
				if got.Kind[i] != expected.Kind[i] || got.Bytes.At(i) != expected.Bytes.At(i) ||
					compat && got.Duration.At(i) != expected.Duration.At(i) ||
					fmt.Sprint(got.Deps.Of(i)) != fmt.Sprint(expected.Deps.Of(i)) {
					t.Fatalf("rank %d op %d: %v %d %v, want %v %d %v", rank, i, got.Kind[i], got.Bytes.At(i), got.Deps.Of(i),
						expected.Kind[i], expected.Bytes.At(i), expected.Deps.Of(i))
				}
			}
		}
	}
}

// Pairs without numbers of record functions are linked by order: all ops but those of Gloo's annotations.
func TestLinkByOrder(t *testing.T) {
	folder := vectorFolder(t)
	for _, c := range []struct {
		trace, profile string
		matched, of    int64
	}{
		{"simple_add/et_0.json.gz", "simple_add/kineto_0.json.gz", 36, 36},
		{"ddp_cnn2/et_0.json.gz", "ddp_cnn2/kineto_0.json.gz", 581, 585},
		{"ddp_cnn2/et_1.json.gz", "ddp_cnn2/kineto_1.json.gz", 581, 585},
		{"dlrm8/dlrm_eg_0.json.gz", "../kineto/dlrm8/worker0_*", 1672, 1672},
		{"dlrm8/dlrm_eg_7.json.gz", "../kineto/dlrm8/worker7_*", 1672, 1672},
	} {
		names, err := filepath.Glob(filepath.Join(folder, c.profile))
		if err != nil || len(names) != 1 {
			t.Fatal(c.profile, names, err)
		}
		p, err := readProfile(t.Context(), input(t, names[0]))
		if err != nil {
			t.Fatal(err)
		}
		in := input(t, filepath.Join(folder, c.trace))
		x := &trace{file: c.trace, pair: p}
		if _, err := x.read(t.Context(), in); err != nil {
			t.Fatal(c.trace, err)
		}
		if x.links.matched != c.matched || x.links.of != c.of || x.links.misnamed != 0 {
			t.Errorf("%s: %+v", c.trace, x.links)
		}
	}
}

// pair returns a trace with a kernel that an operator launched, and its profile.
func pair() (trace, profile string) {
	trace = file(call(1, thread, 0, ""), call(3, "aten::mm", 1, ""), call(2, "aten::linear", 1, ""))
	trace = strings.Replace(trace, `{"name": "rf_id", "value": 1}`, `{"name": "rf_id", "value": 0}`, 1)
	trace = strings.Replace(trace, `{"name": "rf_id", "value": 1}`, `{"name": "rf_id", "value": 2}`, 1)
	return trace, `{"schemaVersion": 1, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 5, "ts": 100, "dur": 30,
 "args": {"External id": 1, "Record function id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 5, "ts": 100, "dur": 20.5,
 "args": {"External id": 2, "Record function id": 2}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 5, "ts": 110, "dur": 2,
 "args": {"correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 115, "dur": 8,
 "args": {"External id": 2, "correlation": 9, "stream": 7}}]}`
}

func link(trace, profile string) (*dag.Trace, error) {
	in := func(name, text string) *format.Input {
		return &format.Input{Name: name, Reader: strings.NewReader(text), Head: []byte(text)}
	}
	return read([]*format.Input{in("kineto_0.json", profile), in("et_0.json", trace)},
		format.ReadOptions{Warn: func(string, ...any) {}})
}

func TestLink(t *testing.T) {
	x, err := link(pair())
	if err != nil {
		t.Fatal(err)
	}
	r := x.Ranks[0]
	if r.Len() != 1 || r.Duration.At(0) != 8*dag.Microsecond || r.Attrs.At(0) != `{"pytorch":{"et_id":3}}` {
		t.Errorf("%d ops, duration %v, attributes %s", r.Len(), r.Duration.At(0), r.Attrs.At(0))
	}
}

func TestLinkErrors(t *testing.T) {
	trace, profile := pair()
	replace := func(old, by string) string { return strings.ReplaceAll(profile, old, by) }
	kernel := profile[strings.Index(profile, `{"ph": "X", "cat": "cuda_runtime"`):strings.Index(profile, `{"ph": "X", "cat": "kernel"`)]
	for _, c := range []struct{ profile, want string }{
		{replace(`"pid": 1,`, `"pid": 8,`), "to be of one process, found process 1 and 8"},
		{replace(`aten::`, `other::`), "2 of 2 nodes in it, 2 of them with another name"},
		{replace(`"Record function id": `, `"Record function id": 7`), "found 0 of 2 nodes"},
		{replace(kernel, kernel+kernel), "expected one launch with the correlation 9"},
	} {
		if _, err := link(trace, c.profile); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func FuzzLink(f *testing.F) {
	trace, profile := pair()
	f.Add(trace, profile)
	f.Add(trace, strings.ReplaceAll(profile, "Record function id", "Ev Idx"))
	f.Add(strings.ReplaceAll(trace, "aten::mm", "nccl:all_reduce"), strings.ReplaceAll(strings.ReplaceAll(profile, "aten::mm",
		"nccl:all_reduce"), "gemm", "ncclDevKernel_AllReduce"))
	f.Fuzz(func(t *testing.T, trace, profile string) {
		x, err := link(trace, profile)
		if err != nil {
			return
		}
		for _, r := range x.Ranks {
			if err := r.CheckReferences(); err != nil {
				t.Error(err)
			}
		}
	})
}
