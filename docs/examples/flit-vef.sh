#!/bin/sh
# Runs the workloads of figures 1 to 3 of the extended VEF paper on the flit backend, by default at the published size, and
# prints execution time, latencies and throughput relative to the reference: means of several seeds. flit-vef.md explains
# the results.
#
#   flit-vef.sh [PART [SEEDS [FIGURES]]]
#
# PART divides the number of messages, and the tensors and times of HOROVOD; 1 is the published size, which takes hours.
# The default of SEEDS is 1 2 3 4 5, that of FIGURES 1 2 3.
set -eu

part=${1:-1}
seeds=${2:-1 2 3 4 5}
figures=${3:-1 2 3}
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT

# begin TITLE: begins a figure; its first variant is the reference.
begin() {
    echo "$1"
    printf '  %-10s %12s %10s %10s %10s   %s\n' variant cycles latency network throughput 'as parts of the reference'
    rm -f "$dir/reference"
}

# variant NAME PORTS COMMAND...: runs the traces of the command, with --seed added, on a switch of PORTS ports.
variant() {
    name=$1 ports=$2
    shift 2
    for seed in $seeds; do
        "$@" --seed "$seed" -o "$dir/trace.parquet"
        simulate -q --backend flit --preset vef-switch --topology "star:hosts=$ports" --csv=results "$dir/trace.parquet"
    done | awk -F, -v name="$name" -v reference="$dir/reference" '
        $6 == "backend_stats.cycles" { t += $8; runs++ }
        $6 == "backend_stats.flit_latency" { e += $8 }
        $6 == "backend_stats.flit_network_latency" { n += $8 }
        $6 == "backend_stats.accepted_load" { x += $8 }
        END {
            t /= runs; e /= runs; n /= runs; x /= runs
            if ((getline line < reference) <= 0)
                print line = t " " e " " n " " x > reference
            split(line, r, " ")
            printf "  %-10s %12.0f %10.1f %10.1f %10.4f   %.3f %.3f %.3f %.3f\n", name, t, e, n, x, t / r[1], e / r[2], n / r[3], x / r[4]
        }'
}

dcnw() { tracegen dcnw -q --messages $((2000000 / part)) "$@"; }

# flows TASKS PERCENT DESTINATION [FLAG...]: generates PERCENT of long flows, with that destination.
flows() {
    tasks=$1 percent=$2 destination=$3
    shift 3
    tracegen flows -q --messages $((2000000 / part)) --time $((200000000 / part))ns --tasks "$tasks" \
        --class min=1KiB,max=10KiB,percent=$((100 - percent)),destination=uniform \
        --class "min=1MiB,max=10MiB,percent=$percent,destination=$destination" "$@"
}

# horovod COMPUTE LOOP BYTES [FLAG...]: generates a trace; times in ns.
horovod() {
    compute=$1 loop=$2 bytes=$3
    shift 3
    tracegen horovod -q --workers 98 --batches 1 --layers 1 --compute $((compute / part))ns --negotiation-loop $((loop / part))ns \
        --allreduce-bytes $((bytes / part)) --lower collectives "$@"
}

for figure in $figures; do
    case $figure in
    1)
        begin "Figure 1, DCNW: $((2000000 / part)) messages"
        variant ref 8 dcnw --load 1 --destination uniform
        variant task256 16 dcnw --load 1 --destination uniform --tasks 256
        variant gauss 8 dcnw --load 1 --destination gauss
        variant load 8 dcnw --load 0.5 --destination uniform
        ;;
    2)
        begin "Figure 2, FLOWS: $((2000000 / part)) flows"
        variant ref 8 flows 128 20 uniform
        variant task256 16 flows 256 20 uniform
        variant gauss 8 flows 128 20 gauss
        variant perc 8 flows 128 50 uniform
        ;;
    3)
        begin "Figure 3, HOROVOD: one layer of one batch, times and tensors divided by $part"
        variant ref 7 horovod 20000000 1400000 52428800
        variant allreduce 7 horovod 20000000 1400000 104857600
        variant compute 7 horovod 2000000 1400000 52428800
        variant loop 7 horovod 20000000 700000 52428800
        ;;
    esac
done
