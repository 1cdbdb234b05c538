#!/bin/sh
# Merged jobs on shared nodes (ATLAHS, Shen et al., SC 2025, section 3.2): merging the DAGs of jobs shows contention and
# overlap. Two jobs of 8 ranks each run on the same 8 nodes, whose NICs they share.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure AM 'ATLAHS: jobs on shared nodes' "$@"

tracegen -q collective --type allreduce --ranks 8 --bytes 8MiB --to goal --lower collectives=ring -o "$work/network.goal"
{
    echo 'num_ranks 8'
    for rank in 0 1 2 3 4 5 6 7; do
        printf 'rank %s {\nl1: calc 50000000\n}\n' $rank
    done
} >"$work/compute.goal"
# tenants NAME FILE FLAGS...: merges the jobs on shared nodes.
tenants() {
    name=$1
    shift
    traceconv -q --mode multi-tenant --one-rank-per-node=false "$@" -o "$work/$name.parquet"
}
tenants two --job "$work/network.goal,count=2"
tenants mixed --job "$work/network.goal" --job "$work/compute.goal"
traceconv -q --mode multi-tenant --one-rank-per-node --job "$work/network.goal,count=2" -o "$work/joined.parquet"

makespan() { simulate -q --json "$@" | field makespan_ps; }
# slowdown FLAGS...: prints the larger slowdown of the two jobs.
slowdown() {
    simulate -q --json --alone "$@" | tr ',' '\n' | sed -n 's/.*"slowdown":\([0-9.e+-]*\).*/\1/p' | sort -g | tail -n 1 |
        awk '{ printf "%.4f", $1 }'
}
echo 'backend,jobs,slowdown' >"$work/t.csv"
# backend NAME FLAGS...: eight and sixteen are flags for the number of ranks.
eight= sixteen=
backend() {
    name=$1
    shift
    one=$(makespan "$@" $eight "$work/network.goal")
    two=$(makespan "$@" $sixteen "$work/two.parquet")
    joined=$(makespan "$@" $eight "$work/joined.parquet")
    ratio=$(awk -v a="$two" -v b="$one" 'BEGIN { printf "%.4f", a / b }')
    trend "$name: two all-reduces take $ratio times one" 'within 1 % of 2' "$two / $one > 1.98 && $two / $one < 2.02"
    if [ "$name" = analytical ]; then
        trend "$name: one rank per node" 'equal but for 1 ns before and after the ops of the node' "$joined - $two == 2000"
    else
        trend "$name: one rank per node" 'equal to the picosecond' "$joined == $two"
    fi
    slowest=$(slowdown "$@" $sixteen "$work/two.parquet")
    trend "$name: slowdown $slowest by another all-reduce" 'above 1' "$slowest > 1"
    overlap=$(slowdown "$@" $sixteen "$work/mixed.parquet")
    trend "$name: slowdown $overlap beside computation" 'within 1 % of 1' "$overlap < 1.01 && $overlap > 0.99"
    printf '%s,two all-reduces,%s\n%s,all-reduce and computation,%s\n' "$name" "$slowest" "$name" "$overlap" >>"$work/t.csv"
}
backend loggops --backend loggops
backend packet --backend packet --topology star:hosts=8,rate=100Gbps,latency=10ns
backend flit --backend flit --topology star:hosts=8
eight='--network Switch(8)@12.5GB/s,500ns' sixteen='--network Switch(16)@12.5GB/s,500ns'
backend analytical --backend analytical
note "The paper has no numbers for this: merged jobs contend for the NICs of the nodes that they share. The analytical \
backend has an NPU per rank; joined ranks have an op of 1 ns before and after all others."
picture bars "$work/t.csv"
finish
