#!/bin/sh
# Figure 11 of ATLAHS (Shen et al., SC 2025): completion times of the messages of a block store with MPRDMA and NDP, on 128
# hosts at 1:1 and 8:1. Published numbers: ratios in its text.
#
# The store has 5,000 accesses with the statistics of the UMass financial trace, by Direct Drive. 16 pairs of the other
# hosts send bulk messages of 16 MiB: without them, NDP has the shorter tails. Messages below 1 MB count, at the sender.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure A11 'ATLAHS, Figure 11: storage messages with NDP and MPRDMA' "$@"

case $size in
small) records=1000 rounds=1 ;;
*) records=5000 rounds=4 ;;
esac
awk -v rounds=$rounds 'BEGIN {
    print "num_ranks 32"
    for (rank = 0; rank < 32; rank++) {
        printf "rank %d {\n", rank
        for (i = 0; i < rounds; i++) {
            if (rank < 16) printf "l%d: send 16777216b to %d tag %d\n", i, rank + 16, i
            else printf "l%d: recv 16777216b from %d tag %d\n", i, rank - 16, i
            if (i) printf "l%d requires l%d\n", i, i - 1
        }
        print "}"
    }
}' >"$work/bulk.goal"
tracegen -q storage --profile financial --records $records --lower directdrive -o "$work/storage.parquet"

# times TRANSPORT SPINES SEED: prints mean, p99 and maximum in us.
latencies() {
    simulate -q --backend packet --transport "$1" --queue 1MB --seed "$3" --placement nodes --flows "$work/flows.csv" \
        --topology "leafspine:hosts=128,tor=16,spines=$2,rate=200Gbps,latency=500ns" --nodes 128 --mapping random:7 \
        "$work/storage.parquet" --trace "$work/bulk.goal" >"$work/result"
    awk -F, 'NR > 1 && $3 < 1000000 { print $5 / 1e6 }' "$work/flows.csv" | sort -g |
        awk '{ v[NR] = $1; sum += $1 } END { print sum / NR, v[int(1 + (NR - 1) * 0.99)], v[NR] }'
}
echo 'network and statistic,transport,completion time (us),low,high' >"$work/t.csv"
for network in '1:1 16' '8:1 2'; do
    set -- $network
    for transport in mprdma ndp; do
        for seed in $(seq "$seeds"); do
            latencies $transport "$2" "$seed"
        done >"$work/times"
        field=1
        for statistic in mean p99 max; do
            value=$(cut -d' ' -f$field "$work/times" | mean)
            shown "$1, $transport: $statistic (us)" "$value"
            printf '%s %s,%s,%s\n' "$1" $statistic $transport "$value" >>"$work/t.csv"
            eval "${transport}_$statistic=${value%%,*}"
            field=$((field + 1))
        done
    done
    for statistic in mean p99 max; do
        eval "ndp=\$ndp_$statistic mprdma=\$mprdma_$statistic"
        more=$(awk -v a="$ndp" -v b="$mprdma" 'BEGIN { printf "%+.3g", (a / b - 1) * 100 }')
        case $1 in
        1:1) trend "1:1, $statistic of NDP $more %" 'within 15 % of MPRDMA' "$more < 15 && $more > -15" \
            'NDP has 50 packets per flow in flight, MPRDMA a bandwidth-delay product' ;;
        *)
            case $statistic in mean) published=14 ;; p99) published=35 ;; max) published=77 ;; esac
            trend "8:1, $statistic of NDP $more %, +$published % published" 'at least that of MPRDMA' "$more >= 0"
            ;;
        esac
    done
done
picture bars "$work/t.csv"
note "The published trace is not public. The order needs the bulk messages of this stand-in: without them, NDP has \
the shorter tails."
finish
