package simulate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestStudyOnCluster checks that the script of --slurm submits the shards with something to do, and only those.
func TestStudyOnCluster(t *testing.T) {
	file := studied(t, smallStudy)
	folder := filepath.Join(filepath.Dir(file), "re sults")
	submitted := func(args ...string) string {
		t.Helper()
		text := study2(t, 0, append([]string{"--study", file, "-o", folder, "--slurm", "30"}, args...)...).Stdout
		return regexp.MustCompile(` --array=(\S*)\)|$`).FindStringSubmatch(text)[1]
	}
	// 24 runs: shards 24 to 29 have none.
	if got := submitted("--at-most", "5"); got != "0-23%5" {
		t.Errorf("array %q, expected all shards with runs", got)
	}
	for variable, task := range map[string]string{"SLURM_ARRAY_TASK_ID": "3", "JOB_COMPLETION_INDEX": "7"} {
		t.Setenv(variable, task)
		study2(t, 0, "--study", file, "-o", folder, "-q", "--shard", "auto", "--shards", "30")
		os.Unsetenv(variable)
	}
	if got := submitted(); got != "0-2,4-6,8-23" {
		t.Errorf("array %q, expected the shards that are left", got)
	}
	text := study2(t, 0, "--study", file, "-o", folder, "--kubernetes", "30", "--image", "i", "--volume", "v").Stdout
	for _, want := range []string{`"--shard", "auto", "--shards", "30"]`, `"--merge", "--wait"]`, "completions: 30\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %s in\n%s", want, text)
		}
	}
	study2(t, 0, "--study", file, "-o", folder)
	if got := submitted(); got != "" {
		t.Errorf("array %q of a finished study", got)
	}
	mergedTables(t, file, folder)
}

// TestStudyRetryOnCluster checks that tasks run failed runs again if the script was asked for that.
func TestStudyRetryOnCluster(t *testing.T) {
	file := studied(t, "traces: [pair.goal]\nset: {backend: packet}\nvary: {topology: ['star:hosts=1', 'star:hosts=2']}\n")
	folder := filepath.Join(filepath.Dir(file), "results")
	study2(t, 1, "--study", file, "-o", folder)
	args := []string{"--study", file, "-o", folder, "--slurm", "9"}
	if got := study2(t, 0, args...).Stdout; strings.Contains(got, "--array") {
		t.Errorf("failed runs are submitted without --retry-failed:\n%s", got)
	}
	got := study2(t, 0, append(args, "--retry-failed")...).Stdout
	if !strings.Contains(got, "--array") || !strings.Contains(got, " --retry-failed --shard auto ") {
		t.Errorf("failed runs are not submitted again:\n%s", got)
	}
}

// TestStudyFlagsOnCluster checks that job scripts pass on the flags of shards and of the merge.
func TestStudyFlagsOnCluster(t *testing.T) {
	file := studied(t, smallStudy)
	folder := filepath.Join(filepath.Dir(file), "results")
	args := strings.Fields("--pack --steal --timing --grace 5s --threads 2 --strict-versions --compare-to transport=ndp")
	for target, want := range map[string][]string{
		"--slurm 3": {" -q --pack --steal --timing --grace 5s --threads 2 --shard auto ",
			" --merge --strict-versions --compare-to transport=ndp --timing\n"},
		"--kubernetes 3 --image i --volume v": {
			`"-q", "--pack", "--steal", "--timing", "--grace", "5s", "--threads", "2", "--shard", "auto"`,
			`"--merge", "--strict-versions", "--compare-to", "transport=ndp", "--timing", "--wait"`},
	} {
		line := append(append([]string{"--study", file, "-o", folder}, args...), strings.Fields(target)...)
		got := study2(t, 0, line...).Stdout
		for _, words := range want {
			if !strings.Contains(got, words) {
				t.Errorf("%s: expected %s in\n%s", target, words, got)
			}
		}
	}
}

func TestStudyClusterUsage(t *testing.T) {
	file := studied(t, smallStudy)
	for args, want := range map[string]string{
		"--slurm 0":                           "expected a number above 0",
		"--kubernetes -1":                     "expected a number above 0",
		"--slurm 4 --at-most 0":               "expected a number above 0",
		"--slurm 4 --sbatch main":             `--slurm: options of sbatch: expected options such as --time=1:00:00, found "main"`,
		"--slurm 4 --kubernetes 4":            "exclude each other",
		"--sbatch --time=1":                   "--sbatch needs --slurm",
		"--image x":                           "--image and --volume need --kubernetes",
		"--at-most 4":                         "--at-most needs",
		"--kubernetes 4":                      "--kubernetes: image: expected a container image",
		"--kubernetes 4 --image i":            "--kubernetes: volume: expected the name",
		"--kubernetes 4 --image i --volume A": `found "A"`,
		"--shard auto":                        "found none of SLURM_ARRAY_TASK_ID",
		"--shards 4":                          "are for --shard auto",
	} {
		line := append([]string{"--study", file, "-o", filepath.Join(filepath.Dir(file), "results")}, strings.Fields(args)...)
		if r := clitest.Run(newCommand, line...); r.Status != 2 || !strings.Contains(r.Stderr, want) || r.Stdout != "" {
			t.Errorf("%s: status %d, %s, expected %s", args, r.Status, r.Stderr, want)
		}
	}
}
