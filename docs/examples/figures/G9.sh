#!/bin/sh
# Figure 9 of the Graph500 traffic model (Fuentes et al.): load of the network by the time of a query and the bandwidth, of
# the runs of Figure 8, which G8.sh keeps in the same folder.
folder=$(dirname "$0")
published_seeds=10 small_seeds=1
. "$folder/lib.sh"
. "$folder/graph500.sh"
figure G9 'Graph500, Figure 9: network load by query time and bandwidth' "$@"

sweep
echo 'query time (ns),bandwidth,phits per cycle and node,low,high' >"$work/t.csv"
falls=0 lower=0
for gbps in 10 40 100 200; do
    last=
    for query in $queries; do
        name=p$(echo "$query" | tr . _)
        eval "here=\$${name}_${gbps}_x loads=\$${name}_${gbps}_xs"
        echo "$query,$gbps Gbit/s,$loads" >>"$work/t.csv"
        # The knee: a message is processed in the time of its packet on the link.
        if awk -v q="$query" -v b="$gbps" 'BEGIN { exit !(q * 256 > 32768 / b) }'; then
            if [ -n "$last" ] && awk "BEGIN { exit !($here >= $last) }"; then
                falls=$((falls + 1))
            fi
            last=$here
            eval "slower=\${${name}_${before:-none}_x:-}"
            if [ -n "$slower" ] && awk "BEGIN { exit !($here >= $slower) }"; then
                lower=$((lower + 1))
            fi
        fi
    done
    before=$gbps
done
small=
[ "$size" = full ] || small='in small graphs, waiting for notices and the all-reduce of a level weighs more'
for gbps in 10 40 100 200; do
    eval "here=\$p0_15_${gbps}_x"
    here=$(echo "$here" | awk '{ printf "%.4f", $1 }')
    trend "$gbps Gbit/s: saturates near 0.5" "$here in 0.40..0.55 at 0.15 ns" "$here >= 0.40 && $here <= 0.55" \
        ${small:+"$small"}
done
trend 'falls with the time of a query' "$falls rises above the knee" "$falls == 0"
trend 'lower at higher bandwidth' "$lower rises above the knee" "$lower == 0"
picture lines "$work/t.csv" --plot-log x
finish
