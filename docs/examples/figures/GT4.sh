#!/bin/sh
# Table IV of the Graph500 traffic model (Fuentes et al.): the dragonfly of 72 nodes, which is a preset of flit. Sizes are in
# phits of 4 bytes, which the paper does not give; latencies are those in cycles at 40 Gbit/s.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure GT4 'Graph500, Table IV: dragonfly of 72 nodes' "$@"

simulate --list-presets >"$work/presets"
# parameter NAME: prints the value of the preset.
parameter() {
    awk -v name="$1" '
        $1 == "parameter" { for (i = 2; i <= NF; i++) if ($i == "graph500-dragonfly") column = i }
        $1 == name && column { print $column }' "$work/presets"
}
tracegen pattern alltoall -q --ranks 72 --bytes 4KiB --iterations 1 -o "$work/t.parquet"
simulate -q --backend flit --preset graph500-dragonfly --csv=results "$work/t.parquet" >"$work/results.csv"
# links KIND: prints the number of links in both directions.
links() { awk -F, -v kind="kind=$1" '$6 == "backend_stats.link_use.links" && $7 == kind { print $8 }' "$work/results.csv"; }

echo 'parameter,,phits or cycles' >"$work/t.csv"
# is ITEM PUBLISHED HERE
is() {
    exact "$@"
    case $1 in
    *phits* | *cycles*) echo "$1,,$3" >>"$work/t.csv" ;;
    esac
}
# 9 groups of 4 routers with 2 nodes and 2 global links each; every link has two directions.
is 'nodes' 72 "$(links host)"
is 'local links in both directions' 108 "$(links local)"
is 'global links in both directions' 72 "$(links global)"
topology=$(sed -n '/^graph500-dragonfly:/,/--topology/s/.*--topology //p' "$work/presets")
# part NAME: prints a number of the topology.
part() { echo "$topology" | tr ':,' '\n\n' | sed -n "s/^$1=\([0-9]*\).*/\1/p"; }
is 'nodes per router' 2 "$(part p)"
is 'routers per group' 4 "$(part a)"
is 'global links per router' 2 "$(part h)"
is 'bandwidth (Gbit/s)' 40 "$(part rate)"
cycle=$(parameter cycle)
cycles() { awk -v ns="$1" -v ps="${cycle%ps}" 'BEGIN { print ns * 1000 / ps }'; }
is 'latency of local links (cycles)' 50 "$(cycles "$(part latency)")"
is 'latency of global links (cycles)' 500 "$(cycles "$(part globallatency)")"
is 'latency of routers (cycles)' 200 "$(parameter pipeline)"
is 'packet of 4 kB (phits)' 1024 "$(parameter packet-flits)"
is 'injection buffer of 128 kB (phits)' 32768 "$(parameter injection-buffer)"
is 'local buffer of 16 kB (phits)' 4096 "$(parameter local-buffer)"
is 'global buffer of 128 kB (phits)' 32768 "$(parameter global-buffer)"
is 'output buffer of 16 kB (phits)' 4096 "$(parameter output-buffer)"
is 'injection virtual channels' 3 "$(parameter injection-vcs)"
is 'local virtual channels' 4 "$(parameter local-vcs)"
is 'global virtual channels' 2 "$(parameter global-vcs)"
is 'crossbar speedup' 2 "$(parameter speedup)"
picture bars "$work/t.csv" --plot-log y
finish
