#!/bin/sh
# Section 3 of the Graph500 traffic model (Fuentes et al.): nodes that are faster or slower than the rest. The paper has no
# figure of them. Searches of scale 20 from a root of degree 16, without random differences, on LogGOPS at 40 Gbit/s.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure GH 'Graph500: nodes of different capability' "$@"

# search NAME QUERY_TIME [RANKS]: writes a trace; its time is in NAME, in ms.
echo 'search,,time by that of equal nodes' >"$work/t.csv"
search() {
    tracegen graph500 -q --scale 20 --variation 0 --root-degree 16 --query-time "$2" -o "$work/$1.parquet"
    eval "$1=$(simulate -q --backend loggops --o 0 --g 0 --S 1GB --L 100 --G 40Gbps --json "$work/$1.parquet" |
        field makespan_ps | awk '{ printf "%.6g", $1 / 1e9 }')"
}
# compare NAME BASE ITEM LOW HIGH: compares two searches.
compare() {
    eval "r=\$(ratio \"\$$1\" \"\$$2\")"
    trend "$3" "time by $r in $4..$5" "$r >= $4 && $r <= $5"
    echo "$3,,$r" >>"$work/t.csv"
}
search base 1500ns
search ones 1500ns,0-71=x1
# A store without the entry of the command.
for name in base ones; do
    traceconv -q --to goal -o "$work/$name.goal" "$work/$name.parquet"
    grep -v '^//' "$work/$name.goal" >"$work/$name.ops"
done
same=$(cmp -s "$work/base.ops" "$work/ones.ops" && echo 1 || echo 0)
trend 'all factors 1' 'the same ops' "$same == 1"
search slow 1500ns,5=x0.5
search fast 1500ns,5=x2
search half 1500ns,0-35=x2
search network 0.15ns
search network_slow 0.15ns,5=x0.5
shown 'equal nodes, queries of 1500 ns (ms)' "$base"
shown 'equal nodes, queries of 0.15 ns (ms)' "$network"
compare slow base 'one node x0.5 with 1500 ns' 1.8 2.1
compare fast base 'one node x2 with 1500 ns' 0.98 1.02
compare half base 'half the nodes x2 with 1500 ns' 0.96 1.04
compare network_slow network 'one node x0.5 with 0.15 ns' 0.97 1.03
picture bars "$work/t.csv"
finish
