#!/bin/sh
# Table III of the Graph500 traffic model (Fuentes et al.): processing times of a query on four machines, which are presets.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure GT3 'Graph500, Table III: processing time of a query' "$@"

echo 'machine,,time (ns)' >"$work/t.csv"
# machine NAME PUBLISHED: a computation of one process takes its queries times the time of a query.
machine() {
    for time in "$1" 1ns; do
        tracegen graph500 -q --scale 14 --ranks 4 --cycle 0s --query-time "$time" -o "$work/t.parquet"
        tracecat --stats --json "$work/t.parquet" | sed -n 's/.*"calc_ps": \([0-9]*\),.*/\1/p' | head -n 1
    done >"$work/sums"
    here=$(awk 'NR == 1 { a = $1 } NR == 2 { printf "%.4g", a / $1 }' "$work/sums")
    within 0.1 "$1 (ns)" "$2" "$here"
    echo "$1,,$here" >>"$work/t.csv"
}
machine altamira 1.5
machine i5-5200u 2.25
machine e5-2620 2.4
machine mont-blanc 15
picture bars "$work/t.csv"
finish
