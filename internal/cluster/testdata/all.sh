#!/usr/bin/env bash
# Submits what is left of 40 shards to Slurm, and a job that merges the results after them. Prints the ids of the jobs.
set -euo pipefail
command -v sbatch >/dev/null || { echo "sbatch is missing: run this script where Slurm is installed" >&2; exit 1; }
mkdir -p -- 'results/it'\''s 100%/log'
ids=

task() {
  cat <<'TASK'
#!/usr/bin/env bash
export GOMAXPROCS="${GOMAXPROCS:-${SLURM_CPUS_ON_NODE:-1}}"
child=
signal=
trap 'again=1 signal=USR1; kill -s USR1 ${child:+"$child"} 2>/dev/null' USR1
trap 'again=1 signal=TERM; kill -s TERM ${child:+"$child"} 2>/dev/null' TERM
simulate --study 'my study.yml' -o 'results/it'\''s 100%' -q --shard auto --shards 40 &
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
if [ "$restarts" -ge 3 ]; then
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
id=$(task | sbatch '--job-name=web search' --requeue --open-mode=append --signal=B:USR1@120 --time=1:00:00 --comment 'two words' --parsable '--output=results/it'\''s 100%%/log/%a.log' --array=0-39%10)
id=${id%%;*}
ids=$ids:$id
echo "array $id"

merge() {
  cat <<'MERGE'
#!/usr/bin/env bash
export GOMAXPROCS="${GOMAXPROCS:-${SLURM_CPUS_ON_NODE:-1}}"
exec simulate --study 'my study.yml' -o 'results/it'\''s 100%' --merge
MERGE
}
id=$(merge | sbatch '--job-name=web search' --requeue --open-mode=append --signal=B:USR1@120 --time=1:00:00 --comment 'two words' --parsable '--output=results/it'\''s 100%%/log/merge.log' ${ids:+"--dependency=afterany$ids"})
echo "merge ${id%%;*}"
