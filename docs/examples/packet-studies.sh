#!/bin/sh
# Runs inputs in place of those of the three studies of the ATLAHS paper on the packet backend, with ATLAHS' rules, and
# prints the results of ATLAHS for the same inputs beside them. packet-studies.md explains the results.
#
#   packet-studies.sh FOLDER [SEEDS]
#
# FOLDER has the inputs: ddp_32.goal.gz, ls32_1os.topo and so on, of testdata/packet-studies/make.sh. The default of SEEDS is
# 1 2 3.
set -eu

inputs=${1:?usage: packet-studies.sh FOLDER [SEEDS]}
seeds=${2:-1 2 3}
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT

# range FORMAT: prints the minimum and the maximum of the first column.
range() {
    sort -g | awk -v format="$1" 'NR == 1 { least = $1 } { most = $1 } END { printf format ".." format, least, most }'
}

# ran TRACE RESULT: prints the result of ATLAHS if the trace is the one that it ran, and - for another trace of that kind.
ran() {
    case $(gzip -dc "$inputs/$1.goal.gz" | cksum) in
    '3697562872 1395155' | '1005294092 1865955' | '3882121752 1419040' | '2515712452 1682080' | '1021785323 1426312' | \
        '424260617 1690012' | '388143405 722473' | '965257896 1142544') echo "$2" ;;
    *) echo - ;;
    esac
}

# flags CONFIGURATION: prints the flags of mprdma, asscripted (a constant window and queues of one bandwidth-delay product) and ndp.
flags() {
    case $1 in
    mprdma) echo --transport mprdma --queue 1000000 ;;
    asscripted) echo --transport constant ;;
    ndp) echo --transport ndp --queue 1000000 ;;
    esac
}

# packets CONFIGURATION TOPOLOGY TRACE SEED
packets() {
    simulate -q --backend packet --compat atlahs $(flags "$1") --topology "$inputs/$2.topo" --seed "$4" --flows "$dir/flows.csv" \
        --json --max-flows 0 "$inputs/$3.goal.gz"
}

# makespan TRACE TOPOLOGY CONFIGURATION RANGE: prints it in ms, here and by ATLAHS.
makespan() {
    ours=$(for seed in $seeds; do
        packets "$3" "$2" "$1" "$seed" | sed 's/.*"makespan_ps":\([0-9]*\).*/\1/' | awk '{ print $1 / 1e9 }'
    done | range %.2f)
    printf '  %-24s %-10s %-10s %-14s %s\n' "$1" "$2" "$3" "$ours" "$(ran "$1" "$4")"
}

# latencies TRACE TOPOLOGY CONFIGURATION RANGES: prints mean, p99 and maximum, in us, of messages below 1 MB, here and by
# ATLAHS.
latencies() {
    for seed in $seeds; do
        packets "$3" "$2" "$1" "$seed" > "$dir/result"
        awk -F, 'NR > 1 && $3 < 1000000 { print $5 / 1e6 }' "$dir/flows.csv" | sort -g |
            awk '{ v[NR] = $1; sum += $1 } END { print sum / NR, v[int(1 + (NR - 1) * 0.99)], v[NR] }' >> "$dir/times"
    done
    mean=$(range %.2f < "$dir/times")
    p99=$(awk '{ print $2 }' "$dir/times" | range %.1f)
    most=$(awk '{ print $3 }' "$dir/times" | range %.1f)
    rm "$dir/times"
    printf '  %-16s %-9s %-10s %-13s %-13s %-13s  %s\n' "$1" "$2" "$3" "$mean" "$p99" "$most" "$(ran "$1" "$4")"
}

echo 'Messages or packets: training in rings that cross ToRs. Makespan, ms'
printf '  %-24s %-10s %-10s %-14s %s\n' trace topology transport here ATLAHS
for trace in ddp_32 ddplight_32; do
    printf '  %-24s %-10s %-10s %-14s %s\n' "$trace" - LogGOPS "$(simulate -q --model atlahs --L 3700 --o 200 --g 5 --G 0.04 --O 0 --S 0 \
        --json "$inputs/$trace.goal.gz" | sed 's/.*"makespan_ps":\([0-9]*\).*/\1/' | awk '{ printf "%.2f", $1 / 1e9 }')" \
        "$(ran $trace "$([ $trace = ddp_32 ] && echo 8.71 || echo 7.78)")"
done
makespan ddp_32 ls32_1os asscripted 8.86..8.87
makespan ddp_32 ls32_1os mprdma 8.91..8.92
makespan ddp_32 ls32_4os asscripted 19.29..23.77
makespan ddp_32 ls32_4os mprdma 17.60..21.56
makespan ddplight_32 ls32_1os asscripted 7.87
makespan ddplight_32 ls32_4os asscripted 15.85..15.88
makespan ddplight_32 ls32_4os mprdma 11.79..11.80

echo
echo 'Packed or random: training on 32 hosts beside a halo exchange on 64. Makespan, ms'
printf '  %-24s %-10s %-10s %-14s %s\n' trace topology transport here ATLAHS
makespan placement_packed_128 ls128_4os asscripted 4.25
makespan placement_random_128 ls128_4os asscripted 4.98..5.00
makespan placement_packed_128 ls128_4os mprdma 4.25
makespan placement_random_128 ls128_4os mprdma 5.17..5.18
makespan placementlight_packed_128 ls128_4os mprdma 4.09
makespan placementlight_random_128 ls128_4os mprdma 4.29

echo
echo 'NDP or MPRDMA: a block store, alone and beside bulk transfers. Messages below 1 MB at the sender, us'
printf '  %-16s %-9s %-10s %-13s %-13s %-13s  %s\n' trace topology transport mean p99 max 'ATLAHS (mean, p99, max)'
latencies storageonly_128 ls128_1os asscripted '8.85..9.42 53.4..68.4 132..171'
latencies storageonly_128 ls128_1os mprdma '8.54..8.66 47.7..48.6 109..161'
latencies storageonly_128 ls128_1os ndp '8.32..8.43 41.0..44.9 79..111'
latencies storageonly_128 ls128_8os asscripted '31.8..32.5 230..266 529..637'
latencies storageonly_128 ls128_8os mprdma '25.6..26.0 181..214 574..701'
latencies storageonly_128 ls128_8os ndp '28.9 131..137 257..384'
latencies storagebulk_128 ls128_1os mprdma '4.53 5.7 7.3 (one seed)'
latencies storagebulk_128 ls128_1os ndp '4.57 8.0 11.0 (one seed)'
latencies storagebulk_128 ls128_8os asscripted '6.66 26.8 62.9 (one seed)'
latencies storagebulk_128 ls128_8os mprdma '6.06 20.4 26.1 (one seed)'
latencies storagebulk_128 ls128_8os ndp '8.75 44.6 49.6 (one seed)'
