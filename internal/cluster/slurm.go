package cluster

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/shell"
)

// restarts is the largest number of times that a task of a Slurm script asks for another run of its shard.
const restarts = 3

// Limits of an array. Slurm's own limit of indexes is MaxArraySize, 1001 unless a site sets another one; a word of a
// command line has at most 128 KiB on Linux.
const (
	maxArraySize = 1001
	maxArrayText = 100_000
)

// Slurm is a script that submits the shards of some work as array jobs, and a job that merges their results after all
// have ended, whatever their exit status. Slurm need not exist on the machine that writes the script.
type Slurm struct {
	Name         string   // of the jobs
	Count        int      // number of shards, at least 1
	Left         []int    // shards to submit, ascending; without one, the script submits the merge only
	Task         []string // command of a shard, without the flags --shard, --shards and --shard-base
	Merge        []string // command that merges the results
	Logs         string   // folder of the tasks' logs; the script creates it
	AtMost       int      // number of tasks that run at the same time; 0: no limit
	Options      string   // of sbatch, for all jobs; parts in single or double quotes may have blanks
	MaxArraySize int      // of the cluster: an array has indexes below it; 0: 1001
}

// array is a part of the shards: index i of the array is shard first+i.
type array struct {
	first int
	text  string // of sbatch --array
}

// Write writes the script in bash. Its words and folders are relative to the folder in which the script is run. It
// prints the ids of the jobs, each with what it is. A task that its time limit, a preemption or a signal has stopped
// asks Slurm for another run, three times at most.
func (s *Slurm) Write(w io.Writer) error {
	options, err := s.check()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, slurmHead, s.Count)
	if s.Logs != "" {
		fmt.Fprintf(&b, "mkdir -p -- %s\n", shell.Quote(s.Logs))
	}
	b.WriteString("ids=\n")
	for _, a := range s.arrays() {
		s.writeArray(&b, a, options)
	}
	s.writeMerge(&b, options)
	_, err = io.WriteString(w, b.String())
	return err
}

// check returns the options of sbatch.
func (s *Slurm) check() (options []string, err error) {
	switch {
	case s.Count < 1:
		return nil, fmt.Errorf("expected 1 shard or more, found %d", s.Count)
	case s.AtMost < 0:
		return nil, fmt.Errorf("expected 1 task at a time or more, found %d", s.AtMost)
	case s.MaxArraySize < 0 || s.MaxArraySize == 1:
		return nil, fmt.Errorf("MaxArraySize: expected 2 or more, found %d", s.MaxArraySize)
	case strings.ContainsAny(s.Logs, "\\\n\x00"):
		return nil, fmt.Errorf("folder %q: sbatch --output takes no backslash or line end; choose another folder",
			s.Logs)
	case strings.Contains(s.Name, "\x00"):
		return nil, fmt.Errorf("name %q: expected no zero byte", s.Name)
	}
	for i, shard := range s.Left {
		if shard < 0 || shard >= s.Count || i > 0 && shard <= s.Left[i-1] {
			return nil, fmt.Errorf("expected ascending shards below %d, found %d", s.Count, s.Left)
		}
	}
	for _, words := range [][]string{s.Task, s.Merge} {
		if err := checkCommand(words); err != nil {
			return nil, err
		}
	}
	return sbatchOptions(s.Options)
}

// sbatchOptions returns the words of options of sbatch.
func sbatchOptions(text string) ([]string, error) {
	words, err := Words(text)
	if err != nil {
		return nil, fmt.Errorf("options of sbatch: %w", err)
	}
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		return nil, fmt.Errorf("options of sbatch: expected options such as --time=1:00:00, found %q", words[0])
	}
	for _, word := range words {
		name, _, _ := strings.Cut(word, "=")
		if slices.Contains([]string{"--array", "--wrap", "--dependency", "--"}, name) ||
			strings.HasPrefix(word, "-a") || strings.HasPrefix(word, "-d") || strings.Contains(word, "\x00") {
			return nil, fmt.Errorf("options of sbatch: %q: expected an option that fits both the array and the merge; "+
				"the script sets --array and --dependency", word)
		}
	}
	return words, nil
}

// arrays divides the shards into arrays.
func (s *Slurm) arrays() (all []array) {
	size := s.MaxArraySize
	if size == 0 {
		size = maxArraySize
	}
	for i := 0; i < len(s.Left); {
		first := s.Left[i] / size * size
		var text strings.Builder
		for i < len(s.Left) && s.Left[i] < first+size && text.Len() < maxArrayText {
			last := i
			for last+1 < len(s.Left) && s.Left[last+1] == s.Left[last]+1 && s.Left[last+1] < first+size {
				last++
			}
			if text.Len() > 0 {
				text.WriteByte(',')
			}
			text.WriteString(strconv.Itoa(s.Left[i] - first))
			if last > i {
				text.WriteString("-" + strconv.Itoa(s.Left[last]-first))
			}
			i = last + 1
		}
		if s.AtMost > 0 {
			text.WriteString("%" + strconv.Itoa(s.AtMost))
		}
		all = append(all, array{first, text.String()})
	}
	return all
}

// submit returns the command that submits the script below it. Options of the user may replace those in front of them.
func (s *Slurm) submit(user []string, log string, options ...string) string {
	if s.Logs != "" {
		log = strings.ReplaceAll(strings.TrimSuffix(s.Logs, "/"), "%", "%%") + "/" + log
	}
	words := []string{"sbatch", "--job-name=" + s.Name, "--requeue", "--open-mode=append", "--signal=B:USR1@120"}
	words = append(append(words, user...), "--parsable", "--output="+log)
	return shell.Join(append(words, options...)...)
}

// writeArray writes the commands that submit an array.
func (s *Slurm) writeArray(b *strings.Builder, a array, options []string) {
	log := "%a.log"
	task := append(slices.Clip(s.Task), "--shard", "auto", "--shards", strconv.Itoa(s.Count))
	if a.first > 0 {
		log = strconv.Itoa(a.first) + "+%a.log"
		task = append(task, "--shard-base="+strconv.Itoa(-a.first))
	}
	fmt.Fprintf(b, slurmArray, shell.Join(task...), restarts, s.submit(options, log, "--array="+a.text))
}

// writeMerge writes the commands that submit the merge.
func (s *Slurm) writeMerge(b *strings.Builder, options []string) {
	fmt.Fprintf(b, slurmMerge, shell.Join(s.Merge...), s.submit(options, "merge.log"))
}

const slurmHead = `#!/usr/bin/env bash
# Submits what is left of %d shards to Slurm, and a job that merges the results after them. Prints the ids of the jobs.
set -euo pipefail
command -v sbatch >/dev/null || { echo "sbatch is missing: run this script where Slurm is installed" >&2; exit 1; }
`

// slurmArray is the part of the script that submits an array: the command of a task, the number of restarts and the
// call of sbatch. The program of a task runs in the background, because bash handles a signal only after the program in
// the foreground has ended. scontrol requeue takes the id of the task: SLURM_JOB_ID of one of the tasks is the id of
// the whole array. A task that was cancelled or has reached its time limit gets SIGTERM, too, but is no longer running;
// requeueing it would undo that.
const slurmArray = `
task() {
  cat <<'TASK'
#!/usr/bin/env bash
export GOMAXPROCS="${GOMAXPROCS:-${SLURM_CPUS_ON_NODE:-1}}"
child=
signal=
trap 'again=1 signal=USR1; kill -s USR1 ${child:+"$child"} 2>/dev/null' USR1
trap 'again=1 signal=TERM; kill -s TERM ${child:+"$child"} 2>/dev/null' TERM
%s &
child=$!
[ -z "$signal" ] || kill -s "$signal" "$child"
again=1
while [ "$again" ]; do
  again=
  wait "$child"
  status=$?
done
case $status in 75 | 137 | 143) ;; *) exit "$status" ;; esac
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
restarts=${SLURM_RESTART_COUNT:-0}
if [ "$restarts" -ge %d ]; then
  echo "task $task: exit status $status after $restarts restarts; submit again what is left" >&2
  exit 1
fi
case $(scontrol show job -o "$task" 2>&1) in
  *JobState=RUNNING*)
    echo "task $task: exit status $status, requeued" >&2
    scontrol requeue "$task"
    ;;
esac
exit "$status"
TASK
}
id=$(task | %s)
id=${id%%%%;*}
ids=$ids:$id
echo "array $id"
`

// slurmMerge is the part of the script that submits the merge: the command and the call of sbatch.
const slurmMerge = `
merge() {
  cat <<'MERGE'
#!/usr/bin/env bash
export GOMAXPROCS="${GOMAXPROCS:-${SLURM_CPUS_ON_NODE:-1}}"
exec %s
MERGE
}
id=$(merge | %s ${ids:+"--dependency=afterany$ids"})
echo "merge ${id%%%%;*}"
`
