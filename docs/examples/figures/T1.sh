#!/bin/sh
# Figure 1 of the TrafPy papers on vectorised packing (Parsonson et al., OFC 2023): time of packing flows, and distance of
# the packed node matrix from its target, by number of nodes. Published: the authors' notebook packing_time_plots.ipynb,
# means and ranges of four seeds. Its runs of 8 to 14 October 2022 drew the skewed nodes with replacement, which TrafPy
# corrected on 24 October.
folder=$(dirname "$0")
. "$folder/lib.sh"
published_seeds=4
figure T1 'TrafPy: time to pack flows, and distance from the target' "$@"

case $size in
small) most=128 ;;
medium | full) most=1024 ;;
esac
echo 'nodes,program,time (s)' >"$work/t.csv"
# nodes N ORIGINAL VECTORISED LEAST MOST [FLOWS]: times in seconds, and the range of distances. Our time is the processor
# time of the whole program: it samples, packs and writes. The picture also has the times of sampling and packing, by the
# clock.
nodes() {
    [ "$1" -le "$most" ] || return 0
    : >"$work/times" && : >"$work/distances" && : >"$work/stages"
    flows=$((5 * $1 * $1))
    [ "$flows" -ge 2490 ] || flows=$6 # the published number after the loop of --threshold
    seed=1
    while [ "$seed" -le "$seeds" ]; do
        (time -p tracegen matrix -v --preset university --matrix nodes:fraction=0.2,share=0.55,replacement=true \
            --size-dist weibull:alpha=4.7,lambda=4100,round=1 --ranks "$1" --racks 4 --load 0.5 --threshold 0.5 \
            --flows "$flows" --auto-correct --seed "$seed" --report "$work/r.json" -o "$work/t.parquet") 2>"$work/messages"
        awk '$1 == "user" || $1 == "sys" { sum += $2 } END { print sum }' "$work/messages" >>"$work/times"
        sed -n 's/.*sampling took \([0-9.]*\) s, packing \([0-9.]*\) s.*/\1 \2/p' "$work/messages" >>"$work/stages"
        sed -n 's/.*"packing_distance": \([0-9.e-]*\).*/\1/p' "$work/r.json" >>"$work/distances"
        seed=$((seed + 1))
    done
    here=$(mean <"$work/times") && here=${here%%,*}
    if [ "$1" -ge 16 ]; then
        trend "$1 nodes, time" "$here s, vectorised $3 s${2:+, original $2 s}" "$here < $3"
        distance=$(mean <"$work/distances") && distance=${distance%%,*}
        trend "$1 nodes, distance" "$distance in $4..$5, by 0.001" "$distance > $4 - 0.001 && $distance < $5 + 0.001"
    fi
    sampling=$(cut -d' ' -f1 "$work/stages" | mean) && sampling=${sampling%%,*}
    packing=$(cut -d' ' -f2 "$work/stages" | mean) && packing=${packing%%,*}
    printf '%s,sampling here,%s\n%s,packing here,%s\n' "$1" "$sampling" "$1" "$packing" >>"$work/t.csv"
    printf '%s,original,%s\n%s,vectorised,%s\n%s,all of tracedag,%s\n' "$1" "$2" "$1" "$3" "$1" "$here" >>"$work/t.csv"
}
nodes 8 0.142 0.325 0.0008 0.0012 2344
nodes 16 0.509 0.398 0.0040 0.0055 2490
nodes 32 6.34 1.03 0.0069 0.0112
nodes 64 88.5 6.67 0.0090 0.0112
nodes 128 1500 57.3 0.0068 0.0079
nodes 256 28900 777 0.0058 0.0074
nodes 512 532000 11650 0.0062 0.0080
nodes 1024 '' 195000 0.0067 0.0082
if [ "$most" -ge 1024 ]; then
    trend '1024 nodes, packing' "$packing s, less than ten times the $sampling s of sampling" "$packing < 10 * $sampling"
    trend '1024 nodes, vectorised / here' "$(ratio 195000 "$here"), at least 10,000" "195000 / $here >= 10000"
fi
picture lines "$work/t.csv" --plot-log xy
finish
