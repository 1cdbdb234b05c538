#!/bin/sh
# The first figure of the case studies of ASTRA-sim 2.0 (Won et al., ISPASS 2023): an all-reduce of 1 GiB on the systems of
# Table I, with collectives in the order of dimensions (baseline) and as Themis schedules them.
#
# Every dimension is a switch with the bandwidth per NPU of the table. Rings and fully connected dimensions with links of
# that bandwidth divided by their number are slower, because their algorithms do not use all links at once.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure SA 'ASTRA-sim 2.0: all-reduce of 1 GiB on the systems of Table I' "$@"

# system SCHEDULING INTRA: prints the description of the system layer.
system() {
    cat <<END
{"all-reduce-implementation": ["halvingDoubling", "halvingDoubling", "halvingDoubling", "halvingDoubling"],
 "collective-optimization": "localBWAware", "preferred-dataset-splits": 64, "active-chunks-per-dimension": 1,
 "endpoint-delay": 1, "inter-dimension-scheduling": "$1", "intra-dimension-scheduling": "$2"}
END
}
system ascending FIFO >"$work/baseline.json"
system themis FIFO >"$work/themis.json"
system themis smallestFirst >"$work/smallest.json"
tracegen -q collective --type allreduce --size 1GiB --ranks 512 -o "$work/t.parquet"

# run NETWORK SYSTEM: prints the time in us.
run() {
    simulate -q --backend analytical --network "$1,0ns" --system "$work/$2.json" --json "$work/t.parquet" |
        field makespan_ps | awk '{ printf "%.10g\n", $1 / 1e6 }'
}
echo 'system,scheduling,time (us)' >"$work/t.csv"
# systems NAME NETWORK: sets base, themis and smallest.
systems() {
    base=$(run "$2" baseline) themis=$(run "$2" themis) smallest=$(run "$2" smallest)
    shown "$1, baseline (us)" "$base"
    shown "$1, Themis (us)" "$themis"
    printf '%s,baseline,%s\n%s,Themis,%s\n' "$1" "$base" "$1" "$themis" >>"$work/t.csv"
}
systems W-1D-350 'Switch(512)@350GB/s'
w350=$base
trend 'W-1D gains nothing from Themis' "$themis / $base" "$themis / $base < 1.001 && $themis / $base > 0.999"
systems W-1D-500 'Switch(512)@500GB/s'
w500=$base
systems W-1D-600 'Switch(512)@600GB/s'
w600=$base
systems W-2D 'Switch(32)_Switch(16)@250,250GB/s'
trend 'W-2D with Themis is W-1D-500' "$themis / $w500 in 0.98..1.02" "$themis / $w500 < 1.02 && $themis / $w500 > 0.98"
systems Conv-3D 'Switch(16)_Switch(8)_Switch(4)@200,100,50GB/s'
trend 'Conv-3D with Themis is W-1D-350' "$themis / $w350 in 0.96..1.04" "$themis / $w350 < 1.04 && $themis / $w350 > 0.96"
systems Conv-4D 'Switch(2)_Switch(8)_Switch(8)_Switch(4)@250,200,100,50GB/s'
trend 'Conv-4D beats W-1D-350' "$base < $w350" "$base < $w350"
trend 'Conv-4D with Themis is W-1D-600' "$themis / $w600 in 0.88..1.12" "$themis / $w600 < 1.12 && $themis / $w600 > 0.88"
trend 'Conv-4D, smallest chunk first' "$smallest / $w600 in 0.96..1.04" \
    "$smallest / $w600 < 1.04 && $smallest / $w600 > 0.96"
picture bars "$work/t.csv"
finish
