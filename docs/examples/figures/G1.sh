#!/bin/sh
# Figure 1 of the Graph500 traffic model (Fuentes et al.): messages of 16 processes over time, in levels that all-reduces
# separate. The paper has a trace of scale 22; small and medium have scale 16.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure G1 'Graph500, Figure 1: phases of a search by 16 processes' "$@"

scale=16
[ "$size" != full ] || scale=22
# A process does one thing at a time, as in the paper: --O lets it send or receive bytes, but not both.
network='--backend loggops --o 0 --g 0 --S 1GB --L 100 --G 40Gbps --O 40Gbps'
# phases NAME [FLAG...]: the share of messages in the two largest levels, in percent, the largest Kolmogorov distance of the
# send times in these levels from the uniform distribution, and the levels.
phases() {
    name=$1
    shift
    tracegen graph500 -q --scale "$scale" --ranks 16 --root-degree 16 "$@" -o "$work/t.parquet"
    simulate -q $network --timeline "$work/t.json" "$work/t.parquet" >/dev/null
    # Tags of messages with queries are 4 times the level. Starts of sends are in microseconds.
    sed -n 's/.*"ph":"X".*"ts":\([0-9.e+-]*\),.*"cat":"send".*"tag":\([0-9]*\).*/\2 \1/p' "$work/t.json" |
        awk '$1 % 4 == 0 { print $1 / 4, $2 }' | sort -k 1n,1 -k 2g,2 >"$work/sends"
    awk '
        { n[$1]++; t[$1, n[$1]] = $2; all++ }
        END {
            for (l in n) {
                levels++
                if (n[l] > n[first] + 0 || first == "") { second = first; first = l }
                else if (n[l] > n[second] + 0 || second == "") second = l
            }
            split(first " " second, two, " ")
            for (k = 1; k <= 2; k++) {
                l = two[k]
                begin = t[l, 1]; span = t[l, n[l]] - begin
                for (i = 1; i <= n[l]; i++) {
                    at = (t[l, i] - begin) / span
                    d = at - (i - 1) / n[l]; if (d < 0) d = -d
                    if (d > most) most = d
                    d = i / n[l] - at; if (d < 0) d = -d
                    if (d > most) most = d
                }
            }
            printf "share=%.1f distance=%.3f levels=%d\n", 100 * (n[first] + n[second]) / all, most, levels
        }' "$work/sends" >"$work/found"
    eval "$(cat "$work/found")"
    shown "$name: levels" "$levels"
    shown "$name: two largest levels (% of messages)" "$share"
    shown "$name: distance from uniform sending" "$distance"
}
phases 'search of a graph' --from-graph
trend 'search of a graph: two large levels' "$share % of the messages in 75..100" "$share >= 75" \
    'three levels of the graph have many edges'
phases model
trend 'two large levels, published: about 80 %' "$share % of the messages in 75..100" "$share >= 75 && $share <= 100"
trend 'messages spread over a level' "Kolmogorov distance $distance < 0.1" "$distance < 0.1"
# The picture has larger messages, so that it has fewer of them.
tracegen graph500 -q --scale "$scale" --ranks 16 --root-degree 16 --coalescing 2048 --control-bytes 4KiB \
    -o "$work/t.parquet"
simulate -q $network --plot "gantt=$out/$id.svg" --plot-title "$title" "$work/t.parquet" >/dev/null
finish
