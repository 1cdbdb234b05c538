package simulate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

func TestLocalMem(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "sim", "analytical", "testdata", "localmem", "collectives")
	prefix := filepath.Join(t.TempDir(), "mem")
	text, err := os.ReadFile(filepath.Join(folder, "sys.json"))
	if err != nil {
		t.Fatal(err)
	}
	system := func(prefix string) string {
		return configFile(t, "s.json", strings.Replace(string(text), `"ref"`, `"`+filepath.ToSlash(prefix)+`"`, 1))
	}
	trace := filepath.Join(folder, "w")
	args := []string{"--network", filepath.Join(folder, "net.yml"), "--system", system(prefix)}
	d := runAnalytical(t, append(args, "-q", trace)...) // one calc has no duration
	var peaks []json.Number
	for npu := range 2 {
		name := fmt.Sprintf("%s.%d.json", prefix, npu)
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Events []struct {
				Phase   string `json:"ph"`
				Process int    `json:"pid"`
				Args    struct {
					Node  string  `json:"node_name"`
					Usage float64 `json:"Memory_MB"`
				}
			} `json:"traceEvents"`
		}
		if err := json.Unmarshal(content, &document); err != nil {
			t.Fatal(err)
		}
		peak, named := 0.0, false
		for _, e := range document.Events {
			peak = max(peak, e.Args.Usage)
			named = named || strings.HasPrefix(e.Args.Node, `n"0`)
			if e.Process%1_000_000 != npu {
				t.Errorf("%s: process %d", name, e.Process)
			}
		}
		if !named {
			t.Errorf("%s does not name the first op", name)
		}
		peaks = append(peaks, json.Number(fmt.Sprint(int64(peak*(1<<20)))))
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.NPUs["peak_memory_usage"]; !slices.Equal(got, peaks) || peaks[0] == "0" {
		t.Errorf("got peaks of %v, the traces have %v", got, peaks)
	}

	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{append(args, "--sweep", "bw0=1,2", trace), 0, "local memory traces are not written"},
		{[]string{"--network", args[1], "--system", system(filepath.Join(prefix, "no", "folder")), trace}, 1, "no such file"},
		{append(args, allreduceFile(t, 2)), 0, "the ops that ran do not record the tensors"},
	} {
		r := clitest.Run(newCommand, append([]string{"--backend", "analytical"}, c.args...)...)
		if r.Status != c.status || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%q: status %d, %s", c.args, r.Status, r.Stderr)
		}
		if files, _ := filepath.Glob(prefix + "*"); len(files) > 0 && c.args[len(c.args)-1] == trace {
			t.Errorf("%q leaves %v", c.args, files)
		}
	}
}
