package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/golden"
)

// hostile are words that a shell must not change.
var hostile = []string{
	"plain", "", "a b", "it's", `"`, `\`, `\n`, "$HOME", "$(touch made)", "`touch made`", "*", "~", "#x", "!!", "a\nb",
	"TASK\n", "\nTASK\nMERGE\n", "tab\t", "\x01\x7f", "\xff'\\", "\u202eأب", "-n", "{a,b}", "a;b", "&", "%s", "'\n'", "a=b",
	"[", "\r\n", strings.Repeat("x", 10000), "$$(VAR)", "\ufffd",
}

func whole(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// study returns a script of a study with blanks and quotes in its names.
func study() *Slurm {
	return &Slurm{
		Name: "web search", Count: 40, Left: whole(40), Logs: "results/it's 100%/log", AtMost: 10,
		Task:    []string{"simulate", "--study", "my study.yml", "-o", "results/it's 100%", "-q"},
		Merge:   []string{"simulate", "--study", "my study.yml", "-o", "results/it's 100%", "--merge"},
		Options: `--time=1:00:00 --comment 'two words'`,
	}
}

func script(t *testing.T, s *Slurm) string {
	t.Helper()
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// bash runs a script and returns its output. Programs in the folder bin come first.
func bash(t *testing.T, bin, text string, env ...string) (output string, status int) {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(path)
	cmd.Stdin = strings.NewReader(text)
	cmd.Dir = bin
	cmd.Env = append(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// programs returns a folder with scripts by name.
func programs(t *testing.T, scripts map[string]string) string {
	t.Helper()
	bin := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/usr/bin/env bash\n"+text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// job is a job that a script submits.
type job struct {
	options []string // of sbatch
	script  string
}

// jobs returns the jobs that a script submits, and its output. The ids of the jobs are 1, 2 and so on.
func jobs(t *testing.T, text string) (all []job, output string) {
	t.Helper()
	bin := programs(t, map[string]string{
		"sbatch": `printf x >>count
id=$(wc -c <count)
printf '%s\0' "$@" >options.$((id))
cat >script.$((id))
echo "$((id));cluster"
`})
	output, status := bash(t, bin, text)
	if status != 0 {
		t.Fatalf("status %d: %s", status, output)
	}
	if _, err := os.Stat(filepath.Join(bin, "made")); err == nil {
		t.Error("the script ran a command that is part of a word")
	}
	for id := 1; ; id++ {
		options, err := os.ReadFile(filepath.Join(bin, fmt.Sprint("options.", id)))
		if err != nil {
			return all, output
		}
		script, err := os.ReadFile(filepath.Join(bin, fmt.Sprint("script.", id)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, job{strings.Split(strings.TrimSuffix(string(options), "\x00"), "\x00"), string(script)})
	}
}

// TestSlurmGolden compares scripts, and the jobs that they submit, with golden files.
func TestSlurmGolden(t *testing.T) {
	left := study()
	left.Count, left.Left, left.AtMost = 2005, []int{0, 1, 2, 5, 1000, 1001, 2000, 2002, 2003}, 0
	done := study()
	done.Left, done.Options, done.Logs = nil, "", ""
	for name, s := range map[string]*Slurm{"all": study(), "left": left, "done": done} {
		text := script(t, s)
		golden.Check(t, "testdata/"+name+".sh", text)
		submitted, output := jobs(t, text)
		texts := []string{text}
		for _, j := range submitted {
			output += fmt.Sprintf("%q\n", j.options)
			texts = append(texts, j.script)
		}
		golden.Check(t, "testdata/"+name+".txt", output)
		lint(t, name, texts)
	}
}

// lint checks scripts with shellcheck, if it is there.
func lint(t *testing.T, name string, scripts []string) {
	t.Helper()
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		return
	}
	for _, text := range scripts {
		check := exec.Command(shellcheck, "-")
		check.Stdin = strings.NewReader(text)
		if output, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", name, output)
		}
	}
}

// TestSlurmWords checks that names, folders and words of commands reach the programs as they are.
func TestSlurmWords(t *testing.T) {
	s := study()
	s.Name, s.Logs = "it's\na $(touch made) name", "-x 'y' $(touch made)/%a"
	s.Task = append([]string{"show"}, hostile...)
	s.Merge = append(slices.Clone(s.Task), "--merge")
	s.Options = `--comment="$(touch made) it's" -p ''`
	submitted, _ := jobs(t, script(t, s))
	if len(submitted) != 2 {
		t.Fatalf("%d jobs", len(submitted))
	}
	for _, option := range []string{"--job-name=" + s.Name, "--output=-x 'y' $(touch made)/%%a/%a.log", "--array=0-39%10",
		"--comment=$(touch made) it's", ""} {
		if !slices.Contains(submitted[0].options, option) {
			t.Errorf("options %q lack %q", submitted[0].options, option)
		}
	}
	bin := programs(t, map[string]string{"show": "printf '%s\\0' \"$@\"\n"})
	for i, more := range [][]string{{"--shard", "auto", "--shards", "40"}, {"--merge"}} {
		got, status := bash(t, bin, submitted[i].script)
		want := strings.Join(append(slices.Clone(hostile), more...), "\x00") + "\x00"
		if got != want || status != 0 {
			t.Errorf("job %d: status %d, words\n%q, expected\n%q", i, status, got, want)
		}
		if _, err := os.Stat(filepath.Join(bin, "made")); err == nil {
			t.Error("the job ran a command that is part of a word")
		}
	}
}

// TestSlurmTask runs the script of a task with programs that end in several statuses.
func TestSlurmTask(t *testing.T) {
	submitted, _ := jobs(t, script(t, &Slurm{Count: 2, Left: []int{1}, Task: []string{"work"}, Merge: []string{"work"}}))
	const requeued = "requeue 7_1\n"
	for _, c := range []struct {
		work, state, restarts, want string
		status                      int
	}{
		{"exit 0", "RUNNING", "", "", 0},
		{"exit 1", "RUNNING", "", "", 1},
		{"exit 2", "RUNNING", "", "", 2},
		{"exit 75", "RUNNING", "", requeued, 75},
		{"exit 75", "RUNNING", "2", requeued, 75},
		{"exit 75", "RUNNING", "3", "", 1},
		{"kill -9 $$", "RUNNING", "", requeued, 137},
		{"kill -9 $$", "RUNNING", "3", "", 1},
		{"exit 143", "RUNNING", "1", requeued, 143},
		{"exit 143", "CANCELLED", "", "", 143},
		{"exit 143", "TIMEOUT", "", "", 143},
		{"exit 75", "", "", "", 75}, // scontrol fails
		{"trap 'echo got USR1; exit 75' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done", "RUNNING", "",
			"got USR1\n" + requeued, 75},
		{"trap 'echo got TERM; exit 143' TERM; kill $PPID; while :; do sleep 0.01; done", "CANCELLED", "",
			"got TERM\n", 143},
		{"trap 'echo again' USR1; trap 'echo end; exit 0' TERM; for i in 1 2 3; do kill -USR1 $PPID; sleep 0.05; done\n" +
			"kill $PPID; while :; do sleep 0.01; done", "RUNNING", "", "again\nagain\nagain\nend\n", 0},
	} {
		bin := programs(t, map[string]string{
			"work": c.work + "\n",
			"scontrol": `case $1 in
  show) [ "` + c.state + `" ] && echo "JobId=9 JobState=` + c.state + ` Reason=None" && [ "$4" = 7_1 ] ;;
  requeue) echo "$@" >requeued; echo "$@" ;;
esac
`})
		output, status := bash(t, bin, submitted[0].script, "SLURM_ARRAY_JOB_ID=7", "SLURM_ARRAY_TASK_ID=1",
			"SLURM_RESTART_COUNT="+c.restarts)
		var printed []string
		for line := range strings.Lines(output) {
			if !strings.HasPrefix(line, "task 7_1: exit status ") && !strings.Contains(line, "Killed") {
				printed = append(printed, line)
			}
		}
		if got := strings.Join(printed, ""); got != c.want || status != c.status {
			t.Errorf("%s, %s, %s restarts: status %d, printed %q, expected %d, %q\n%s", c.work, c.state, c.restarts, status,
				got, c.status, c.want, output)
		}
		if _, err := os.Stat(filepath.Join(bin, "requeued")); (err == nil) != strings.Contains(c.want, requeued) {
			t.Errorf("%s, %s, %s restarts: requeued: %t", c.work, c.state, c.restarts, err == nil)
		}
	}
}

// TestArrays checks that arrays have each shard once, within the limits of Slurm.
func TestArrays(t *testing.T) {
	odd := whole(300_000)
	odd = slices.DeleteFunc(odd, func(i int) bool { return i%2 == 0 || i%1009 == 5 })
	for _, s := range []Slurm{
		{Left: whole(40)}, {Left: whole(1001)}, {Left: whole(1002)}, {Left: whole(5000)}, {Left: []int{7}}, {},
		{Left: odd}, {Left: odd, MaxArraySize: 1_000_000}, {Left: whole(5), MaxArraySize: 2}, {Left: odd, MaxArraySize: 37},
	} {
		var all []int
		limit := s.MaxArraySize
		if limit == 0 {
			limit = 1001
		}
		for _, a := range s.arrays() {
			if len(a.text) > 128<<10-1000 {
				t.Errorf("a word of %d bytes", len(a.text))
			}
			for part := range strings.SplitSeq(a.text, ",") {
				from, to, found := strings.Cut(part, "-")
				if !found {
					to = from
				}
				if number(from) < 0 || number(to) >= limit {
					t.Fatalf("part %q, indexes below %d", part, limit)
				}
				for i := number(from); i <= number(to); i++ {
					all = append(all, a.first+i)
				}
			}
		}
		if !slices.Equal(all, s.Left) {
			t.Errorf("%d shards became %d", len(s.Left), len(all))
		}
	}
}

func TestSlurmErrors(t *testing.T) {
	for want, change := range map[string]func(*Slurm){
		"expected 1 shard or more, found 0":       func(s *Slurm) { s.Count = 0 },
		"found [0 40]":                            func(s *Slurm) { s.Left = []int{0, 40} },
		"found [-1]":                              func(s *Slurm) { s.Left = []int{-1} },
		"found [3 3]":                             func(s *Slurm) { s.Left = []int{3, 3} },
		"found [4 3]":                             func(s *Slurm) { s.Left = []int{4, 3} },
		"expected 1 task at a time or more":       func(s *Slurm) { s.AtMost = -1 },
		"MaxArraySize: expected 2 or more":        func(s *Slurm) { s.MaxArraySize = 1 },
		`folder "a\\b": sbatch --output takes no`: func(s *Slurm) { s.Logs = `a\b` },
		`"a\nb": sbatch --output takes no`:        func(s *Slurm) { s.Logs = "a\nb" },
		`name "a\x00b": expected no zero byte`:    func(s *Slurm) { s.Name = "a\x00b" },
		"expected a command, found none":          func(s *Slurm) { s.Task = nil },
		"without a zero byte":                     func(s *Slurm) { s.Merge = []string{"a", "\x00"} },
		"expected ' at the end of a quoted part":  func(s *Slurm) { s.Options = "--comment='a b" },
		`such as --time=1:00:00, found "main"`:    func(s *Slurm) { s.Options = "main --time=1" },
		`"--array=0-3": expected an option that`:  func(s *Slurm) { s.Options = "-p x --array=0-3" },
		`"-a0-3": expected an option that`:        func(s *Slurm) { s.Options = "-a0-3" },
		`"--wrap": expected an option that`:       func(s *Slurm) { s.Options = "--wrap x" },
		`"--dependency=afterok:3": expected`:      func(s *Slurm) { s.Options = "--dependency=afterok:3" },
	} {
		s := study()
		change(s)
		var b strings.Builder
		if err := s.Write(&b); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
}

func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"": "", " \t\n": "", "a": "a", " a  b\n": "a|b", `'a b' "c d"`: "a b|c d", `a'b c'd`: "ab cd", `''`: "", `a '' b`: "a||b",
		`"it's"`: "it's", `'"'`: `"`, `a\ b`: `a\|b`, "--x='y z'": "--x=y z",
	} {
		words, err := Words(text)
		if err != nil || strings.Join(words, "|") != want || text == "''" && len(words) != 1 {
			t.Errorf("%q: %q, %v", text, words, err)
		}
	}
}
