package trafpy

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/flowio/flowtest"
)

// oneJob is a job as the reference writes it, with numbers as floats, a negative run time and a size of an edge whose
// ends are one machine.
const oneJob = `{"job_id": ["job_0"], "job": [{"directed": true, "multigraph": false, "graph": {"num_data_deps": 2},
"nodes": [{"id": "op_1"}, {"id": "op_0"}, {"id": "source"}, {"id": "sink"}], "links": [
{"dep_id": 0, "dependency": 1, "attr_dict": {"sn": "server_2", "dn": "server_0", "flow_size": 2500000.0,
 "dependency_type": "data_dep", "parent_op_run_time": 2.25, "edge": ["op_1", "op_0"]}, "source": "op_1", "target": "op_0"},
{"dependency": 0, "attr_dict": {"sn": "server_1", "dn": "server_1", "flow_size": 0.0, "dependency_type": "control_dep",
 "parent_op_run_time": -0.5}, "source": "op_0", "target": "sink"},
{"dependency": 1, "attr_dict": {"sn": "server_1", "dn": "server_0", "flow_size": 7, "dependency_type": "data_dep",
 "parent_op_run_time": 0}, "source": "source", "target": "op_1"}]}], "event_time": [12.5], "establish": [1], "index": [0],
"flow_id": ["job_0_flow_0", "job_0_flow_1"], "sn": ["server_2", "server_1"], "dn": ["server_0", "server_0"],
"flow_size": [2500000.0, 7.0]}`

// TestReadJobs reads a job, encoded once and twice.
func TestReadJobs(t *testing.T) {
	want := []jobgraph.Job{{Name: "job_0", Arrival: 12_500_000, Ops: 4, Edges: []jobgraph.Edge{
		{Tail: 2, Head: 1, Source: 2, Bytes: 2_500_000, Run: 2_250_000},
		{Tail: 1, Head: 3, Source: 1, Destination: 1, Control: true},
		{Tail: 0, Head: 2, Source: 1, Bytes: 7},
	}}}
	for _, text := range []string{oneJob, encoded(t, oneJob), strings.ReplaceAll(oneJob, `"links"`, `"edges"`)} {
		if !detectJSON([]byte(text)) {
			t.Errorf("not detected: %.40s", text)
		}
		trace, warnings, err := flowtest.Read(&JSON, text, format.ReadOptions{})
		if err != nil || !strings.Contains(warnings, "1 run times below 0 become 0") {
			t.Fatalf("warnings %q, error %v", warnings, err)
		}
		if got, err := jobgraph.Read(trace); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, expected %+v, error %v", got, want, err)
		}
		if losses := JSON.Losses(trace); len(losses) > 0 {
			t.Errorf("losses %v", losses)
		}
	}
}

// TestWriteJobs writes random jobs and reads them again.
func TestWriteJobs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var jobs []jobgraph.Job
	for k := range 20 {
		j := jobgraph.Job{Name: "é" + string(rune('a'+k)), Arrival: dag.Time(k) * 1234567, Ops: int32(3 + k)}
		for op := int32(1); op < j.Ops; op++ {
			e := jobgraph.Edge{Tail: op - 1, Head: op, Source: random.Int32N(5), Destination: 5 + random.Int32N(5),
				Bytes: random.Int64N(1 << 40), Run: dag.Time(random.Int64N(1 << 40))}
			if e.Control = k%3 == 0; e.Control {
				e.Bytes = 0
			}
			j.Edges = append(j.Edges, e)
		}
		jobs = append(jobs, j)
	}
	trace, err := jobgraph.Trace(context.Background(), 10, jobs, jobgraph.Messages)
	if err != nil {
		t.Fatal(err)
	}
	text := flowtest.Write(t, &JSON, trace)
	again, warnings, err := flowtest.Read(&JSON, text, format.ReadOptions{})
	if err != nil || warnings != "" {
		t.Fatalf("warnings %q, error %v", warnings, err)
	}
	if got, err := jobgraph.Read(again); err != nil || !reflect.DeepEqual(got, jobs) {
		t.Errorf("%+v, expected %+v, error %v", got, jobs, err)
	}
	if second := flowtest.Write(t, &JSON, again); second != text {
		t.Error("other bytes when written again")
	}
}

// TestMalformedJobs checks errors.
func TestMalformedJobs(t *testing.T) {
	for want, change := range map[string][2]string{
		"found 0 values of event_time and 1 of job_id":           {`[12.5]`, `[]`},
		"event_time: expected a time":                            {`[12.5]`, `["-1"]`},
		"establish: expected 1, found 0":                         {`"establish": [1]`, `"establish": [0]`},
		"3 names, expected two or more ops with different names": {`{"id": "op_1"}`, `{"id": "op_0"}`},
		`edge 0: expected an op of nodes, found "op_7"`:          {`"target": "op_0"`, `"target": "op_7"`},
		"expected a source, without edges into it":               {`"source": "source"`, `"source": "op_0"`},
		"flow_size: expected 0 of a control edge, found 9":       {`"flow_size": 0.0`, `"flow_size": 9`},
		"flow_size: expected a size in bytes":                    {`"flow_size": 7,`, `"flow_size": 1e40,`},
		"dependency_type: expected data_dep or control_dep":      {`control_dep`, `other`},
		"expected sn and dn":                                     {`"sn": "server_2", `, ``},
		"parent_op_run_time: expected a time":                    {`2.25`, `2e99`},
		"expected a flow for each of the 2 data edges":           {`[2500000.0, 7.0]`, `[1]`},
		"expected a name":                                        {`"source": "op_1"`, `"source": [1]`},
		"expected another value of job, found a number":          {`"job": [`, `"job": [3, `},
	} {
		text := strings.Replace(oneJob, change[0], change[1], 1)
		if _, _, err := flowtest.Read(&JSON, text, format.ReadOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	for _, pickle := range []string{"\x80\x04\x95\x10\x00", "BZh91AY&SY....."} {
		if !detectJSON([]byte(pickle)) {
			t.Errorf("%q is not detected", pickle)
		}
		if _, _, err := flowtest.Read(&JSON, pickle, format.ReadOptions{}); err == nil ||
			!strings.Contains(err.Error(), "found a pickle, which can run programs") {
			t.Errorf("%q: error %v", pickle, err)
		}
	}
}

// FuzzJobs reads files of jobs. Each accepted file is the same after it was written and read.
func FuzzJobs(f *testing.F) {
	f.Add([]byte(oneJob))
	f.Add([]byte(`{"job_id":["a"],"job":[{"nodes":[{"id":1},{"id":2}],"links":[{"source":1,"target":2,"dependency":1,` +
		`"attr_dict":{"sn":0,"dn":3,"flow_size":5}}]}],"event_time":["1e-3"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		trace, _, err := flowtest.Read(&JSON, string(text), format.ReadOptions{})
		if err != nil {
			return
		}
		jobs, err := jobgraph.Read(trace)
		if jobs == nil {
			return
		}
		if problems := dag.Validate(trace); len(problems) > 0 || err != nil {
			t.Fatalf("problems %v, error %v", problems, err)
		}
		again, _, err := flowtest.Read(&JSON, flowtest.Write(t, &JSON, trace), format.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if second, err := jobgraph.Read(again); err != nil || len(second) != len(jobs) ||
			!reflect.DeepEqual(second[0].Edges, jobs[0].Edges) {
			t.Errorf("%+v, then %+v, error %v", jobs, second, err)
		}
	})
}
