package tracedag

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// slice matches a Go slice in a message. Square brackets in the syntax of a command line do not match.
var slice = regexp.MustCompile(`\[(?:map\[|"|-?\d+ -?\d|[a-z]+ [a-z]+ )`)

// TestMessagesNameRemedy runs wrong command lines and checks that the message names the flag and the remedy.
func TestMessagesNameRemedy(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(line string) clitest.Result {
		args := strings.Fields(line)
		return runProgram(t, args[0], args[1:]...)
	}
	for _, line := range []string{
		"tracegen -q pattern ring --ranks 21 --iterations 1 -o ring.parquet",
		"tracegen -q llm --dp 2 --layers 2 -o llm.parquet", "tracegen -q storage --records 9 -o storage.parquet",
	} {
		if got := run(line); got.Status != 0 {
			t.Fatalf("%s: exit status %d, %s", line, got.Status, got.Stderr)
		}
	}
	if err := os.MkdirAll("folder/below", 0o777); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"ring.goal.xz": "\xfd7zXZ\x00", "ring.goal.bz2": "BZh91AY&SY",
		"times.csv": "bytes,us\n1,5\n1024,6\n", "calls.csv": "bytes,us,test\n1,5,send_call\n", "one.csv": "bytes,us\n1,5\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"simulate storage.parquet":                  "--lower directdrive",
		"simulate --backend packet storage.parquet": "--topology",
		"simulate llm.parquet":                      "--lower roofline:peak-flops=",
		"simulate --backend flit --topology torus:dims=5x5 --set local-vcs=1 ring.parquet": "use --set local-vcs=2",
		"simulate --backend packet --topology fattre:k=8 ring.parquet":                     `did you mean "fattree"?`,
		"simulate --backend packet --topology fattree:k=4 ring.parquet":                    "21 ranks with 1 NIC each need 21 hosts, but the network has 16; use a larger --topology",
		"simulate --backend packet --topology fattree:k=4 --nics 2 ring.parquet":           "21 ranks with 2 NICs each need 42 hosts",
		"simulate --backend packet --topology fattree:k=4 --mss 0 ring.parquet":            "--mss: expected 1 to ",
		"simulate --backend packet --topology fattree:k=8 --set windw=3 ring.parquet":      `--set: `,
		"simulate --backend pakcet ring.parquet":                                           `did you mean "packet"?`,
		"simulate --collective allreduce=rng ring.parquet":                                 `did you mean "ring"?`,
		"simulate --placment packed ring.parquet":                                          "did you mean --placement?",
		"simulate --sweep Z=1,2 ring.parquet":                                              "--sweep: expected ",
		"simulate --ranks 4 ring.parquet":                                                  "warning: ring.parquet: --ranks has no effect: the trace has 21 ranks",
		"traceconv --ranks 4 ring.parquet -o x.goal":                                       "warning: ring.parquet: --ranks has no effect: the trace has 21 ranks",
		"traceconv --merge-calcs ring.parquet -o y.goal":                                   "warning: --merge-calcs has no effect: no trace of this run has a format with this option (kineto)",
		"tracecat --lenient ring.parquet":                                                  "warning: --lenient has no effect: no trace of this run has a format with this mode (astratext, blkparse, ",
		"simulate --compat ring.parquet":                                                   "warning: --compat has no effect: no trace of this run has a format with this mode (astratext, chakra, ",
		"tracecat --seed 3 ring.parquet":                                                   "warning: --seed has no effect",
		"simulate --host-speed 1e9 ring.parquet":                                           "warning: --host-speed has no effect",
		"tracegen pattern ring --vef-version 3 -o z.goal":                                  "warning: --vef-version has no effect",
		"simulate --timing ring.parquet":                                                   "warning: --timing has no effect without --json",
		"simulate --backend packet --topology leafspine:hosts=32,tor=32,spines=1 --balance flowlet --flowlet-gap 5us ring.parquet": "warning: --flowlet-gap has no effect: the network has one path",
		"simulate --fit --threads 0 times.csv":                                                               "--threads: expected 1 or more, found 0",
		"simulate --fit times.csv times.csv":                                                                 "times.csv: expected another table, found the content of times.csv again",
		"simulate --fit --fit-out ./times.csv times.csv":                                                     "--fit-out would replace ./times.csv, which is an input",
		"simulate --backend flow --topology star:hosts=32 --flows f.csv --ports ./f.csv ring.parquet":        "--flows and --ports name the same file, ./f.csv",
		"simulate --backend flow --topology times.csv --flows times.csv ring.parquet":                        "--flows would replace times.csv, which is a file of --topology",
		"traceconv --rescale 42 ring.parquet -o - --rescale-report -":                                        "--output and --rescale-report both write to standard output",
		"traceconv --jobs 0 ring.parquet -o x.goal":                                                          "--jobs: expected 1 or more, found 0",
		"simulate --fit calls.csv":                                                                           "calls.csv: expected measurements of the test pingpong, half of round trips by size, found only send_call",
		"simulate --fit one.csv":                                                                             "one.csv: pingpong: expected at least two sizes, found 1",
		"tracegen workload --flows 0 -o x.parquet":                                                           "--flows is 0, expected 1 or more",
		"tracegen workload --flows abc -o x.parquet":                                                         `"--flows" flag: expected `,
		"tracegen pattern rng -o x.parquet":                                                                  `did you mean "ring"?`,
		"traceconv ring.parquet -o x.foo":                                                                    "no format has the ending .foo: expected .parquet, ",
		"traceconv ring.parquet -o x.goal.xz":                                                                `compress it in a pipe, as in "... --to goal | xz > x.goal.xz"`,
		"traceconv ring.goal.xz -o x.goal":                                                                   `decompress it in a pipe, as in "xz -dc ring.goal.xz | traceconv"`,
		"traceconv ring.goal.bz2 -o x.goal":                                                                  `decompress it in a pipe, as in "bzip2 -dc ring.goal.bz2 | traceconv"`,
		"traceconv folder ring.parquet -o out/":                                                              "folder: expected a file or the folder of one trace, ",
		"traceconv ring.parquet llm.parquet -o x.goal":                                                       "name a folder, as in -o out/",
		"tracecat missing.parquet":                                                                           "missing.parquet: no such file",
		"simulate --backend analytical --network R(8)@1GB/s,1ns ring.parquet":                                "the trace has 21 ranks, but the network ",
		"simulate --backend flit --topology mesh:dims=2x2 --cores 1 ring.parquet":                            "need 21 hosts, but the network has 4; use a larger --topology or --cores",
		"simulate --timeline x.svg ring.parquet":                                                             "--timeline: x.svg: expected a name that ends with ",
		"simulate --plan plan.yaml ring.parquet":                                                             "--plan excludes inputs, jobs and their flags",
		"traceconv --job ring.parquet --job llm.parquet --repeat 2 -o x.parquet":                             "name the job that it applies to",
		"simulate --backend packet --topology fattree:k=8 --balance random --placement nowhere ring.parquet": "--placement: expected packed, ",
	} {
		got := run(line)
		if warns := strings.HasPrefix(want, "warning: "); (got.Status == 0) != warns {
			t.Errorf("%s: exit status %d", line, got.Status)
		}
		if !strings.Contains(got.Stderr, want) || slice.MatchString(got.Stderr) {
			t.Errorf("%s: stderr %q, expected %q and no slice", line, got.Stderr, want)
		}
	}
}
