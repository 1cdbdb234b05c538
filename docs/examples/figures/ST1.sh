#!/bin/sh
# Table I of ASTRA-sim 2.0 (Won et al., ISPASS 2023): six systems of 512 NPUs, by their names. The bandwidth is that of an
# NPU, in GB/s of 2^30 bytes.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure ST1 'ASTRA-sim 2.0, Table I: six systems of 512 NPUs' "$@"

tracegen -q collective --type allreduce --size 1MiB --ranks 512 -o "$work/t.parquet"
echo 'system,dimension,bandwidth (GB/s)' >"$work/t.csv"
# system NAME SHAPE BANDWIDTHS: sizes and bandwidths of the dimensions, with x and + between.
system() {
    simulate -q --backend analytical --network "$1" --json "$work/t.parquet" >"$work/out.json"
    sizes=$(grep -o '"npus":[0-9]*' "$work/out.json" | cut -d : -f 2)
    rates=$(grep -o '"bw[0-9]_GiBps":[0-9.]*' "$work/out.json" | cut -d : -f 2)
    shape=$(echo $sizes | tr ' ' x) sum=$(echo $rates | tr ' ' +)
    trend "$1: dimensions" "$shape is $2" "$([ "$shape" = "$2" ] && echo 1 || echo 0)"
    exact "$1: NPUs" 512 "$(echo "$sizes" | awk 'BEGIN { n = 1 } { n *= $1 } END { print n }')"
    trend "$1: bandwidths (GB/s)" "$sum is $3" "$([ "$sum" = "$3" ] && echo 1 || echo 0)"
    i=0
    for rate in $rates; do
        echo "$1,dimension $i,$rate" >>"$work/t.csv"
        i=$((i + 1))
    done
}
system w-1d-350 512 350
system w-1d-500 512 500
system w-1d-600 512 600
system w-2d 32x16 250+250
system conv-3d 16x8x4 200+100+50
system conv-4d 2x8x8x4 250+200+100+50
note "The text of the paper has 300 GB/s for W-1D-350. The table states rings and cliques for some dimensions; here all \
are switches with the bandwidth of an NPU, see SA. Latencies of 1 ns are tracedag's own choice."
picture bars "$work/t.csv"
finish
