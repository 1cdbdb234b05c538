#!/bin/sh
# Job-centric traffic of TrafPy (Parsonson et al., Optical Switching and Networking 46, 2022): job completion times of four
# schedulers by load, in time slots, and jobs dropped by short queues. The paper and its repository have no results of
# jobs. Sizes of flows and the node matrix are those of TrafPy's preset tensorflow; jobs have fewer ops, arrive at random,
# and the slot is longer, so that a flow takes 8 slots alone.
folder=$(dirname "$0")
. "$folder/lib.sh"
small_seeds=2
figure TJ 'TrafPy: job completion times of schedulers by load' "$@"

case $size in
small) loads='0.1 0.5 0.9' jobs=200 ;;
medium) loads='0.1 0.3 0.5 0.7 0.9' jobs=500 ;;
full) loads='0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9' jobs=1000 ;;
esac
# run TRACE SCHEDULER SEED FLAGS...: prints the result as JSON.
run() {
    trace=$1 scheduler=$2 seed=$3
    shift 3
    simulate -q --backend slots --topology leafspine:hosts=64,tor=16,spines=2,rate=5Gbps/16Gbps --slot 10ms \
        --packet-size 3kB --scheduler "$scheduler" --seed "$seed" --json "$@" "$work/$trace"
}
for load in $loads; do
    seed=1
    while [ "$seed" -le "$seeds" ]; do
        for control in zero attr; do
            tracegen jobs -q --preset tensorflow --jobs "$jobs" --ops-dist uniform:min=5,max=20 --threshold 0.3 \
                --interarrival-dist exponential:beta=50 --ranks 64 --racks 4 --capacity 1250 --load "$load" \
                --control "$control" --seed "$seed" -o "$work/$control.parquet"
        done
        for scheduler in ff fs random srpt; do
            run attr.parquet "$scheduler" "$seed" >"$work/r.json"
            for name in mean_jct_ps p99_jct_ps completed_jobs arrived_jobs; do
                field "$name" <"$work/r.json" >>"$work/$name-$scheduler-$load"
            done
            run zero.parquet "$scheduler" "$seed" | field mean_jct_ps >>"$work/zero-$scheduler-$load"
            run attr.parquet "$scheduler" "$seed" --max-flows 3 | field jobs_dropped >>"$work/drops-$scheduler-$load"
        done
        seed=$((seed + 1))
    done
done

# of NAME SCHEDULER LOAD: prints the mean over seeds.
of() {
    all=$(mean <"$work/$1-$2-$3")
    echo "${all%%,*}"
}
ms() { of "$@" | awk '{ printf "%.1f", $1 / 1e9 }'; }

echo 'load,scheduler,mean job completion time (s)' >"$work/t.csv"
for load in $loads; do
    for scheduler in ff fs random srpt; do
        here=$(ms mean_jct_ps "$scheduler" "$load")
        shown "$scheduler at load $load, mean JCT (ms)" "$here"
        shown "$scheduler at load $load, p99 JCT (ms)" "$(ms p99_jct_ps "$scheduler" "$load")"
        shown "$scheduler at load $load, dropped with 3 flows per queue" \
            "$(of drops "$scheduler" "$load" | awk '{ printf "%.4f", $1 }')"
        printf '%s,%s,%s\n' "$load" "$scheduler" "$(awk "BEGIN { print $here / 1000 }")" >>"$work/t.csv"
    done
    cat "$work"/mean_jct_ps-*-"$load" >"$work/attr"
    cat "$work"/zero-*-"$load" >"$work/zero"
    a=$(cksum <"$work/attr") b=$(cksum <"$work/zero")
    trend "load $load: order in messages and in attributes" 'equal mean JCT of all runs' "\"$a\" == \"$b\""
    a=$(cat "$work"/completed_jobs-*-"$load" | mean) b=$(cat "$work"/arrived_jobs-*-"$load" | mean)
    a=${a%%,*} b=${b%%,*}
    trend "load $load: all jobs complete in queues of 50" "$a of $b" "$a == $b"
done
a=$(ms mean_jct_ps ff 0.9) b=$(ms mean_jct_ps fs 0.9) c=$(ms mean_jct_ps random 0.9) d=$(ms mean_jct_ps srpt 0.9)
trend 'load 0.9: highest mean JCT: random, as for flows' "$c > $a, $b, $d ms" "$c > $a && $c > $b && $c > $d"
picture lines "$work/t.csv"
finish
