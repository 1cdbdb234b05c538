# graph500.sh: what G8 and G9 share. They source it after lib.sh; it runs searches on the dragonfly of the Graph500
# paper: 72 processes, packets of 1024 phits of 4 bytes, minimal routing.

# run SEED QUERY_NS GBPS LOCAL_NS GLOBAL_NS ROUTER_CYCLES: prints the time of a search in ps and the load in phits per cycle
# and node. A process that consumes a message is busy at least for the time of a packet on the link, as in the paper's
# half-duplex model.
run() {
    seed=$1 query=$2 gbps=$3 local=$4 global=$5 router=$6
    cycle=$((32000 / gbps)) # picoseconds in which the link moves 32 bits
    tracegen graph500 -q --scale "$scale" --seed "$seed" --query-time "${query}ns" --cycle "${cycle}ps" \
        --consume-min "$((1024 * cycle))ps" -o "$work/trace.parquet"
    ${measured:-} simulate -q --backend flit --preset graph500-dragonfly --topology "dragonfly:latency=${local}ns,globallatency=${global}ns" \
        --set "cycle=${cycle}ps,pipeline=$router" --csv=results "$work/trace.parquet" >"$work/results.csv"
    awk -F, '$6 == "makespan_ps" { t = $8 } $6 == "backend_stats.accepted_load" { x = $8 } END { print t "," x }' \
        "$work/results.csv"
}

# memory: prints the peak memory of a simulation in MB, if there is GNU time.
memory() {
    if /usr/bin/time -f %M -o "$work/memory" true 2>/dev/null; then
        measured="/usr/bin/time -f %M -o $work/memory"
        run 1 1.5 40 40 400 200 >/dev/null
        measured=
        awk '{ printf "%.0f", $1 * 1.024e-3 }' "$work/memory"
    fi
}

# point NAME QUERY_NS GBPS [LOCAL_NS GLOBAL_NS ROUTER_CYCLES]: sets NAME_t and NAME_x to the means over the seeds of time in
# ms and load, with their 95 % intervals in NAME_ts and NAME_xs. Latencies are those of table IV at 40 Gbit/s, in ns.
point() {
    name=$1
    : >"$work/runs"
    for root in $(awk -v n="$seeds" 'BEGIN { for (i = 1; i <= n; i++) print i }'); do
        kept "$scale:$2:$3:${4:-40}:${5:-400}:${6:-}:$root" \
            run "$root" "$2" "$3" "${4:-40}" "${5:-400}" "${6:-$((5 * $3))}" >>"$work/runs"
    done
    ts=$(awk -F, '{ printf "%.10g\n", $2 / 1e9 }' "$work/runs" | mean)
    xs=$(cut -d, -f 3 "$work/runs" | mean)
    eval "${name}_t=${ts%%,*} ${name}_ts=$ts ${name}_x=${xs%%,*} ${name}_xs=$xs"
}

# sweep: runs the points of Figures 8 and 9, NAME of which is pQUERY_GBPS with underscores for points. It sets queries.
sweep() {
    queries='0.15 0.5 1 1.5 2.25 5 10 15 50 150 500'
    case $size in
    small) scale=14 queries='0.15 0.5 1.5 10 150 500' ;;
    medium) scale=20 ;;
    full) scale=26 ;;
    esac
    keep graph500 "$folder/graph500.sh"
    for query in $queries; do
        for gbps in 10 40 100 200; do
            point "p$(echo "$query" | tr . _)_$gbps" "$query" "$gbps"
        done
    done
}
