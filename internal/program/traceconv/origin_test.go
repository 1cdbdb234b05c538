package traceconv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestOutputOfInput checks that a store depends on its own input alone: not on other inputs, the output, paths, the
// working directory and the number of concurrent jobs.
func TestOutputOfInput(t *testing.T) {
	sources := map[string]string{"in/wanted.goal": pingpong, "in/ranks/x-0.txt": ping, "in/ranks/x-1.txt": pong,
		"elsewhere/deeper/.keep": "", "in/regroup.yaml": "num_of_nodes: 1\nnum_gpus_per_node: 2\n"}
	var goals, all []string
	for i := range 100 {
		name := fmt.Sprintf("in/other%02d.goal", i)
		sources[name] = strings.Replace(pingpong, "calc 1", "calc 2", 1)
		goals = append(goals, name)
	}
	in(t, sources)
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	all = append(goals[:50:50], "in/wanted.goal", "in/ranks")
	all = append(all, goals[50:]...)
	from := filepath.Join(root, "in")
	for flags, rank0 := range map[string]string{"": "x-0.txt", "--regroup in/regroup.yaml": "x-0.txt", "--title a/b": "x-0.txt"} {
		convert := func(folder, output string, args ...string) {
			t.Helper()
			t.Chdir(filepath.Join(root, folder))
			words := strings.Fields(flags)
			if back, err := filepath.Rel(folder, "."); err == nil && len(words) == 2 {
				words[1] = strings.Replace(words[1], "in/", filepath.Join(back, "in")+"/", 1)
			}
			args = append(append(words, "-q", "-o", filepath.Join(root, output)), args...)
			if got := clitest.Run(New, args...); got.Status != 0 {
				t.Fatalf("%q: %+v", args, got)
			}
		}
		convert(".", "alone.parquet", "in/wanted.goal")
		convert(".", "ranks.parquet", "in/ranks")
		want := map[string]string{"wanted": content(t, root+"/alone.parquet"), "ranks": content(t, root+"/ranks.parquet")}
		check := func(output, name string) {
			t.Helper()
			if content(t, filepath.Join(root, output)) != want[name] {
				t.Errorf("%s: %s differs from that of %s alone", flags, output, name)
			}
		}
		for _, jobs := range []string{"1", "8"} {
			convert(".", "out"+jobs, append([]string{"--jobs", jobs, "--no-sync", "-o", root + "/out" + jobs + "/"}, all...)...)
			check("out"+jobs+"/wanted.parquet", "wanted")
			check("out"+jobs+"/ranks.parquet", "ranks")
		}
		convert("elsewhere/deeper", "b.parquet", from+"/wanted.goal")
		check("b.parquet", "wanted")
		convert("elsewhere", "c.parquet", "../in/wanted.goal")
		check("c.parquet", "wanted")
		convert("in", "d.parquet", "wanted.goal", "--max-memory", "1GiB")
		check("d.parquet", "wanted")
		convert("elsewhere", "e.parquet", from+"/ranks/")
		check("e.parquet", "ranks")
		convert("in/ranks", "f.parquet", rank0)
		check("f.parquet", "ranks")
		convert("in/ranks", "g.parquet", ".")
		check("g.parquet", "ranks")
		convert("elsewhere", "h.parquet", from+"/ranks/x-1.txt", "../in/ranks/x-0.txt")
		check("h.parquet", "ranks")
		for name, bytes := range want {
			for _, other := range append(goals, root, filepath.Base(root), "elsewhere", "in/") {
				if strings.Contains(bytes, filepath.Base(other)) && filepath.Base(other) != "in" || strings.Contains(bytes, other) {
					t.Errorf("%s: the store of %s has %q", flags, name, other)
				}
			}
		}
		t.Chdir(root)
	}
}

// TestRecordPaths checks that paths are recorded as given, if asked for.
func TestRecordPaths(t *testing.T) {
	in(t, map[string]string{"a/x.goal": pingpong})
	ok(t, "", "a/x.goal", "--record-paths", "-o", "x.parquet")
	p := readStore(t, content(t, "x.parquet")).Provenance[0]
	if got := strings.Join(p.Command, " "); got != "traceconv a/x.goal" || p.Inputs[0].Name != "a/x.goal" {
		t.Errorf("the provenance is %+v", p)
	}
}

// TestForeignFlags checks that the flags of other formats are not part of the provenance.
func TestForeignFlags(t *testing.T) {
	in(t, map[string]string{"x.goal": pingpong, "m/x-0.txt": ping, "m/x-1.txt": pong})
	ok(t, "", "-q", "-o", "out/", "--clock-stream", "none", "x.goal", "m")
	for name, want := range map[string]string{
		"x": "traceconv --clock-stream none x.goal", "m": "traceconv m/x-0.txt",
	} {
		p := readStore(t, content(t, "out/"+name+".parquet")).Provenance[0]
		if got := strings.Join(p.Command, " "); got != want {
			t.Errorf("%s: %s, expected %s", name, got, want)
		}
	}
}
