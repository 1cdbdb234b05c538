package traceconv

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/sim/ideal"
)

// nsysCase is a folder of exports and the expected result.
type nsysCase struct {
	folder string
	flags  []string
	expect map[string]any
}

func nsysCases(t *testing.T) []nsysCase {
	t.Helper()
	vectors, err := filepath.Abs("../../../formats/nsys/testdata/vectors")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(vectors, "*", "expect.json"))
	if err != nil || len(folders) < 31 {
		t.Fatalf("%d cases, %v", len(folders), err)
	}
	renamed := map[string]string{"--config_node_gpu": "--regroup", "--zero-red-copy": "--zero-reduction"}
	var cases []nsysCase
	for _, expect := range folders {
		c := nsysCase{folder: filepath.Dir(expect)}
		var about struct{ Flags []string }
		decode(t, filepath.Join(c.folder, "case.json"), &about)
		decode(t, expect, &c.expect)
		c.flags = []string{"--from", "nsys", "--lower", "nccl", "--npkit-simple", filepath.Join(vectors, "npkit_simple.json"),
			"--npkit-ll", filepath.Join(vectors, "npkit_ll.json")}
		for _, flag := range about.Flags {
			if name, ok := renamed[flag]; ok {
				flag = name
			} else if strings.HasSuffix(flag, ".yaml") {
				flag = filepath.Join(c.folder, flag)
			}
			c.flags = append(c.flags, flag)
		}
		cases = append(cases, c)
	}
	return cases
}

func decode(t *testing.T, path string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(content(t, path)), v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestNsys converts all exports to GOAL: the report agrees with NCCL's annotations, the schedule has the messages of
// the report, and it completes.
func TestNsys(t *testing.T) {
	for _, c := range nsysCases(t) {
		t.Run(filepath.Base(c.folder), func(t *testing.T) {
			in(t, nil)
			args := append(c.flags, c.folder, "-o", "x.goal", "--report", "r.json")
			if len(c.expect["unsupported"].(map[string]any)) > 0 {
				got := clitest.Run(New, args...)
				if got.Status != 1 || !strings.Contains(got.Stderr, "NCCL calls by algorithms without a model: 2 of nvls") {
					t.Errorf("%+v", got)
				}
				if _, err := os.Stat("x.goal"); err == nil {
					t.Error("there is an output")
				}
				args = append(args, "--assume", "none")
			}
			if got := clitest.Run(New, args...); got.Status != 0 || got.Stdout != "" {
				t.Fatalf("%+v", got)
			}
			var report map[string]any
			decode(t, "r.json", &report)
			for key, want := range c.expect {
				if !reflect.DeepEqual(report[key], want) {
					t.Errorf("%s is %v, expected %v", key, report[key], want)
				}
			}
			checkSchedule(t, readGoal(t, "x.goal"), c.expect)
		})
	}
}

func readGoal(t *testing.T, path string) *dag.Trace {
	t.Helper()
	trace, err := formats.All.Named("goal").Read([]*format.Input{{Name: path, Reader: strings.NewReader(content(t, path))}},
		format.ReadOptions{Warn: t.Errorf})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// checkSchedule counts the messages between nodes and the calcs of a schedule, and runs it.
func checkSchedule(t *testing.T, trace *dag.Trace, expect map[string]any) {
	t.Helper()
	for _, problem := range dag.Validate(trace) {
		t.Error(problem)
	}
	pairs, calcs := map[string]any{}, map[string]any{}
	for node := range trace.Ranks {
		r := trace.Ranks[node]
		ops, ns, tags := 0.0, 0.0, map[[2]int64]bool{}
		for i, kind := range r.Kind {
			switch kind {
			case dag.Calc:
				ops++
				ns += float64(r.CalcTime(i) / dag.Nanosecond)
			case dag.Send:
				key := fmt.Sprintf("%d->%d", node, r.Peer.At(i))
				sum, ok := pairs[key].(map[string]any)
				if !ok {
					sum = map[string]any{"messages": 0.0, "bytes": 0.0}
					pairs[key] = sum
				}
				sum["messages"] = sum["messages"].(float64) + 1
				sum["bytes"] = sum["bytes"].(float64) + float64(r.Bytes.At(i))
				tag := [2]int64{int64(r.Peer.At(i)), r.Tag.At(i)}
				if tags[tag] || tag[1] > math.MaxInt32 {
					t.Errorf("node %d sends two messages with tag %d to node %d", node, tag[1], tag[0])
				}
				tags[tag] = true
			}
		}
		want := expect["calc_per_node"].(map[string]any)[fmt.Sprint(node)].(map[string]any)
		calcs[fmt.Sprint(node)] = map[string]any{"ops": ops, "ns": ns}
		if sum := want["gap_ns"].(float64) + want["reduce_copy_ns"].(float64) + want["transfer_ns"].(float64); sum != ns ||
			want["calc_ops"] != ops {
			t.Errorf("node %d has %v, expected %v and %v", node, calcs[fmt.Sprint(node)], want["calc_ops"], sum)
		}
	}
	if want := expect["node_pairs"]; !reflect.DeepEqual(pairs, want) {
		t.Errorf("messages %v, expected %v", pairs, want)
	}
	times, err := ideal.Run(trace)
	if err != nil {
		t.Fatal(err)
	}
	if !times.Result.Complete {
		t.Error("the schedule does not run to its end")
	}
}

// TestNsysStore checks that lowering from a store gives the same result as lowering during conversion, that regrouping
// changes the nodes, and that calls without a model run as rings.
func TestNsysStore(t *testing.T) {
	for _, c := range nsysCases(t) {
		in(t, nil)
		name := filepath.Base(c.folder)
		flags := append(slices.Clone(c.flags), "-q")
		if strings.HasPrefix(name, "x02") {
			flags = append(flags, "--assume", "ring")
		}
		store := []string{"--from", "nsys", c.folder, "-o", "x.parquet"}
		if slices.Contains(flags, "--merge-non-overlap") {
			store = append(store, "--merge-non-overlap")
			flags = slices.DeleteFunc(flags, func(s string) bool { return s == "--merge-non-overlap" })
			ok(t, "", append(flags, c.folder, "--merge-non-overlap", "-o", "once.goal")...)
		} else {
			ok(t, "", append(flags, c.folder, "-o", "once.goal")...)
		}
		ok(t, "", store...)
		fromStore := slices.DeleteFunc(slices.Clone(flags), func(s string) bool { return s == "--from" || s == "nsys" })
		ok(t, "", append(fromStore, "x.parquet", "-o", "twice.goal")...)
		if content(t, "once.goal") != content(t, "twice.goal") {
			t.Errorf("%s: from the store it is another schedule", name)
		}
		if n := len(readGoal(t, "once.goal").Ranks); n == 0 {
			t.Errorf("%s: no ranks", name)
		}
	}
}

// TestNCCLFlags checks the flags for NCCL calls and nodes.
func TestNCCLFlags(t *testing.T) {
	vectors, err := filepath.Abs("../../../formats/nsys/testdata/vectors")
	if err != nil {
		t.Fatal(err)
	}
	in(t, map[string]string{"two.yaml": "num_gpus_list: [3, 5]\n", "bad.yaml": "num_of_nodes: x\n", "empty.yaml": "{}\n",
		"odd.yaml": "nodes: 4\n", "table.json": "{}", "x.goal": pingpong})
	job := filepath.Join(vectors, "17_regroup")
	whatIf := ok(t, "", "-q", "--lower", "nccl", "--gpus-per-node", "2", "--to", "goal", job)
	if whatIf != ok(t, "", "-q", "--lower", "nccl", "--regroup", filepath.Join(job, "regroup.yaml"), "--to", "goal", job) {
		t.Error("--gpus-per-node 2 differs from num_of_nodes 4 and num_gpus_per_node 2")
	}
	if got := readStore(t, ok(t, "", "--regroup", "two.yaml", job)); !slices.Equal(got.Nodes, []int32{0, 0, 0, 1, 1, 1, 1, 1}) {
		t.Errorf("nodes %v", got.Nodes)
	}
	if got := readStore(t, ok(t, "", "--lower", "nccl:ranks=gpus", job)); len(got.Ranks) != 8 || len(got.Nodes) != 8 {
		t.Errorf("%d ranks", len(got.Ranks))
	}
	if got := readStore(t, ok(t, "", "--lower", "nodes", "--gpus-per-node", "2", "x.goal")); len(got.Ranks) != 1 || got.Ops() != 5 {
		t.Errorf("%d ops of %d ranks", got.Ops(), len(got.Ranks))
	}
	for args, want := range map[string]string{
		"--lower nccl --gpus-per-node 3":                    "expected a multiple of 3",
		"--lower nccl --gpus-per-node 0":                    "--gpus-per-node: expected 1 to",
		"--lower nccl --regroup none.yaml":                  "none.yaml: no such file",
		"--lower nccl --regroup bad.yaml":                   "bad.yaml: ",
		"--lower nccl --regroup empty.yaml":                 "empty.yaml: expected num_of_nodes and num_gpus_per_node, or num_gpus_list",
		"--lower nccl --regroup odd.yaml":                   "odd.yaml: ",
		"--npkit-simple table.json":                         "--npkit-simple needs --lower nccl",
		"--unique-nic":                                      "--unique-nic needs --lower nccl",
		"--lower nccl --npkit-ll table.json":                "table.json: NPKit table: ",
		"--lower nccl --assume tree":                        "--assume: expected ring or none",
		"--lower nccl:algorithm=collnet_chain":              "CollNet, the reduction inside the network, is not modelled",
		"--lower nccl:gpu=blackwell":                        "blackwell needs version=2.30",
		"--lower nccl:tune=no,gpu=hopper":                   "nccl: tune: no excludes",
		"--lower nccl:version=2.20 --nccl-version 2.30":     "--nccl-version: expected 2.20",
		"--nccl-registered":                                 "--nccl-registered needs --lower nccl",
		"--lower nccl:channels=0":                           "nccl: channels: expected a whole number from 1 to",
		"--lower nccl:machine=none":                         "nccl: machine: expected clariden or ault",
		"--lower nccl:speed=1":                              "nccl: expected one of algorithm, protocol, channels, tune, version",
		"--lower nccl --lower nccl":                         "named twice",
		"--lower collectives --report r.json":               "--lowered needs either --lower nccl or --lower of storage",
		"--lower nccl --lower directdrive --report r":       "--lowered needs either --lower nccl or --lower of storage",
		"--lower nccl --regroup bad.yaml --gpus-per-node 2": "--gpus-per-node and --regroup exclude each other",
	} {
		got := clitest.Run(New, append(strings.Fields(args), job, "-o", "out.parquet")...)
		if got.Status == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("traceconv %s: exit status %d, stderr %q, want %q", args, got.Status, got.Stderr, want)
		}
	}
	if _, err := os.Stat("out.parquet"); err == nil {
		t.Error("there is an output")
	}
}
