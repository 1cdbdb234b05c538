#!/bin/sh
# Figure 1 B of ATLAHS (Shen et al., SC 2025): a pipeline message that shares the links of a leaf-spine with all-reduces.
#
# 32 ranks, packed: 16 pipeline stages with 2 replicas. Rank 7, the last of the first switch, sends activations to rank 8.
# The replicas, ranks i and i + 16, exchange gradients in rings of two ranks, across switches.
published_seeds=5
folder=$(dirname "$0")
. "$folder/lib.sh"
figure A1B 'ATLAHS, Figure 1 B: a pipeline message beside all-reduces' "$@"

bytes=4194304
{
    printf 'Nodes 32\nConnections 1\n7->8 id 1 start 1000000 size %s\n' $bytes
} >"$work/alone.cm"
{
    printf 'Nodes 32\nConnections 33\n7->8 id 1 start 1000000 size %s\n' $bytes
    awk -v bytes=$bytes 'BEGIN { for (i = 0; i < 32; i++) printf "%d->%d id %d start 1000000 size %d\n", i, (i + 16) % 32, i + 2, bytes }'
} >"$work/ring.cm"
echo 'network,message,completion time (us),low,high' >"$work/t.csv"
# message TRACE SPINES FLAGS...: the mean completion time of the pipeline message in us, and its interval.
message() {
    trace=$1 spines=$2
    shift 2
    for seed in $(seq "$seeds"); do
        simulate -q --backend packet --transport mprdma --queue 1MB --seed "$seed" --flows "$work/flows.csv" "$@" \
            --topology "leafspine:hosts=32,tor=8,spines=$spines,rate=200Gbps,latency=500ns" "$work/$trace.cm" >"$work/result"
        awk -F, 'NR > 1 && $3 == '$bytes' && $7 == 1 { print $5 / 1e6 }' "$work/flows.csv"
    done | mean
}
for network in '1:1 8' '4:1 2'; do
    set -- $network
    alone=$(message alone "$2") packed=$(message ring "$2") random=$(message ring "$2" --placement random)
    shown "$1: alone (us)" "$alone"
    shown "$1: beside all-reduces, packed (us)" "$packed"
    shown "$1: beside all-reduces, random placement (us)" "$random"
    printf '%s,alone,%s\n%s,packed,%s\n%s,random placement,%s\n' "$1" "$alone" "$1" "$packed" "$1" "$random" >>"$work/t.csv"
done
slowdown=$(awk -v a="${packed%%,*}" -v b="${alone%%,*}" 'BEGIN { printf "%.3g", a / b }')
trend "4:1, packed: slowdown $slowdown" 'above 1.5' "$slowdown > 1.5"
picture bars "$work/t.csv"
finish
