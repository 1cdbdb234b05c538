package kineto

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// TestHost reads lists of events of the host: operators that call others, and an allreduce on another thread.
func TestHost(t *testing.T) {
	event := func(name string, thread, start, took int, args string) string {
		return fmt.Sprintf(`{"name":%q,"ph":"X","ts":%d,"dur":%d,"tid":%d,"pid":"CPU functions","args":{%s}}`, name, start,
			took, thread, args)
	}
	dims := `"Input Dims": [[1000]], "Input type": ["float"]`
	text := "[" + strings.Join([]string{
		event("backward", 1, 10, 30, ""), event("mm", 1, 15, 10, ""),
		event("gloo:all_reduce", 2, 30, 40, dims), event("gloo:all_reduce", 2, 32, 58, dims),
		event("step", 1, 95, 5, ""),
	}, ",") + "]"
	var inputs []*format.Input
	for i := range 2 {
		inputs = append(inputs, &format.Input{Name: fmt.Sprintf("rank%d.json", i), Reader: strings.NewReader(text)})
	}
	if !detect([]byte(text)) {
		t.Error("a list of events is not detected")
	}
	trace, err := read(inputs, format.ReadOptions{Warn: func(string, ...any) {}})
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	var got []string
	r := trace.Ranks[1]
	for k := range r.Len() {
		op := r.Op(k)
		got = append(got, fmt.Sprintf("%s %v %d %v", op.Name, op.Duration, op.Bytes, r.Deps.Of(k)))
	}
	want := "backward 5us 0 [];mm 10us 0 [1];backward 15us 0 [1];gap 5us 0 [2];gloo:all_reduce 40us 4000 [1];" +
		"gloo:all_reduce 20us 4000 [1 3];step 10us 0 [4 2 1]"
	if text := strings.Join(got, ";"); text != want {
		t.Errorf("%s, want\n%s", text, want)
	}
	if ends := replay(r); ends[len(ends)-1] != 90*dag.Microsecond {
		t.Errorf("the replay ends at %v", ends)
	}
}
