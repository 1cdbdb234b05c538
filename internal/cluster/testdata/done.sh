#!/usr/bin/env bash
# Submits what is left of 40 shards to Slurm, and a job that merges the results after them. Prints the ids of the jobs.
set -euo pipefail
command -v sbatch >/dev/null || { echo "sbatch is missing: run this script where Slurm is installed" >&2; exit 1; }
ids=

merge() {
  cat <<'MERGE'
#!/usr/bin/env bash
export GOMAXPROCS="${GOMAXPROCS:-${SLURM_CPUS_ON_NODE:-1}}"
exec simulate --study 'my study.yml' -o 'results/it'\''s 100%' --merge
MERGE
}
id=$(merge | sbatch '--job-name=web search' --requeue --open-mode=append --signal=B:USR1@120 --parsable --output=merge.log ${ids:+"--dependency=afterany$ids"})
echo "merge ${id%%;*}"
