#!/bin/sh
# usage: sh testdata/packet-studies/make.sh FOLDER
# Writes the inputs of docs/examples/packet-studies.sh to FOLDER: training in rings, the same beside a halo exchange, a block
# store alone and beside bulk transfers, and networks of two tiers. Needs awk, gzip, and tracegen and traceconv on the PATH.
#
# ddp_32, ddplight_32 and the packed placements are byte for byte those that ATLAHS ran. The placements at random and the
# block store are other draws of the same kind.
set -eu
out=${1:?usage: make.sh FOLDER}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# jobs RANKS STRIDE BUCKETS BYTES COMPUTE [ITERATIONS COMPUTE SEED]: prints GOAL text. 32 ranks train: per bucket of
# gradients, a calc of COMPUTE ns and an allreduce of BYTES in a ring, which goes on STRIDE ranks. With ITERATIONS, 64
# others exchange halos of 64 KiB with their neighbors on a periodic 4 x 4 x 4 grid. SEED other than 0 places both at random.
jobs() {
    awk -v ranks="$1" -v stride="$2" -v buckets="$3" -v bytes="$4" -v compute="$5" -v iterations="${6:-0}" \
        -v halo="${7:-0}" -v seed="${8:-0}" '
        # op prints an op and its dependencies: labels, with spaces between.
        function op(text, after,    list, i, n) {
            print "l" label ": " text
            n = split(after, list, " ")
            for (i = 1; i <= n; i++) print "l" label " requires l" list[i]
            return label++
        }
        function train(rank,    from, to, bucket, step, calc, last, after, tag) {
            # The ring begins 0, stride, 2 stride, ..., then 1, 1 + stride, ...
            to = rank + stride < 32 ? rank + stride : (rank % stride + 1) % stride
            from = rank >= stride ? rank - stride : 32 - stride + (rank + stride - 1) % stride
            calc = op("calc 1000", "")
            last = ""
            for (bucket = 0; bucket < buckets; bucket++) {
                calc = op("calc " compute " cpu 0", calc)
                after = calc (last == "" ? "" : " " last)
                for (step = 0; step < 62; step++) {
                    tag++
                    op("send " bytes / 32 "b to " node[to] " tag " tag " cpu 1", after)
                    after = last = op("recv " bytes / 32 "b from " node[from] " tag " tag " cpu 2", after)
                }
            }
        }
        function neighbor(cell, distance, step,    at) {
            at = int(cell / distance) % 4
            return 32 + cell + ((at + step + 4) % 4 - at) * distance
        }
        function exchange(cell,    i, d, ahead, behind, calc, after, distance) {
            after = op("calc 1000", "")
            for (i = 0; i < iterations; i++) {
                calc = op("calc " halo " cpu 0", after)
                after = ""
                for (d = 0; d < 3; d++) {
                    distance = 4 ^ (2 - d)
                    ahead = node[neighbor(cell, distance, 1)]
                    behind = node[neighbor(cell, distance, -1)]
                    op("send 65536b to " ahead " tag " 6 * i + 2 * d " cpu 0", calc)
                    after = after " " op("recv 65536b from " ahead " tag " 6 * i + 2 * d + 1 " cpu 1", calc)
                    op("send 65536b to " behind " tag " 6 * i + 2 * d + 1 " cpu 0", calc)
                    after = after " " op("recv 65536b from " behind " tag " 6 * i + 2 * d " cpu 1", calc)
                }
            }
        }
        BEGIN {
            for (i = 0; i < ranks; i++) node[i] = i
            for (i = ranks - 1; seed && i > 0; i--) { # Fisher-Yates with the generator of Park and Miller
                seed = seed * 16807 % 2147483647
                k = seed % (i + 1)
                other = node[i]; node[i] = node[k]; node[k] = other
            }
            for (i = 0; i < ranks; i++) at[node[i]] = i
            print "num_ranks " ranks
            for (n = 0; n < ranks; n++) {
                print "\nrank " n " {"
                label = 0
                if (at[n] < 32) train(at[n])
                else if (at[n] < 96) exchange(at[n] - 32)
                else { label = 1; op("calc 1", "") }
                print "}"
            }
        }'
}
mib=1048576
jobs 32 8 6 $((8 * mib)) 1300000 >"$work/ddp_32.goal"
jobs 32 8 8 $((4 * mib)) 900000 >"$work/ddplight_32.goal"
for seed in 0 7; do
    placement=$([ $seed = 0 ] && echo packed || echo random)
    jobs 128 1 4 $((8 * mib)) 450000 10 400000 $seed >"$work/placement_${placement}_128.goal"
    jobs 128 1 4 $((4 * mib)) 900000 15 200000 $seed >"$work/placementlight_${placement}_128.goal"
done

# store ACCESSES SCALE SPAN ORDER: a block store by Direct Drive: accesses of 64 hosts, three of four writes, with the sizes of a
# transaction system times SCALE, within SPAN us. Its small messages have 64 or 128 bytes, and its services take no time.
store() {
    awk -v accesses="$1" -v scale="$2" -v span="$3" -v seed=5 '
        function random(n) { seed = seed * 16807 % 2147483647; return seed % n }
        BEGIN {
            split("1 2 4 6 7 8 8 16 32 48", blocks, " ")
            for (i = 0; i < accesses; i++)
                printf "%d,%d,%d,%s,%.6f\n", random(64), random(1048576), blocks[1 + random(10)] * 512 * scale,
                    random(4) ? "W" : "R", span * i / accesses / 1e6
        }' >"$work/store.spc"
    traceconv -q --lower "directdrive:n_bss=53,mount=off,order=$4,lookup-request=64B,lookup-reply=128B,read-request=64B,replica-ack=64B,write-reply=64B,lookup-time=0s,read-rate=1TB/s,write-rate=1TB/s" \
        "$work/store.spc" -o "$work/store.parquet"
}
# 16 pairs of hosts that send 16 MiB each.
awk 'BEGIN {
    print "num_ranks 32"
    for (i = 0; i < 32; i++)
        printf "rank %d {\nl0: %s 16777216b %s %d tag 0\n}\n", i, i < 16 ? "send" : "recv", i < 16 ? "to" : "from", (i + 16) % 32
}' >"$work/bulk.goal"
store 1000 16 0 window:4
traceconv -q --placement random:7 --nodes 128 --job "$work/store.parquet" -o "$work/storageonly_128.goal"
store 1500 1 150 timed
traceconv -q --mode multi-tenant --placement random:7 --nodes 128 --job "$work/store.parquet" --job "$work/bulk.goal" \
    -o "$work/storagebulk_128.goal"

for file in "$work"/*_32.goal "$work"/*_128.goal; do
    gzip -9n <"$file" >"$out/$(basename "$file").gz"
done

# network HOSTS TOR OVERSUBSCRIPTION: a leaf-spine of 200 Gbit/s and 500 ns per link.
network() {
    cat >"$out/ls$1_$3os.topo" <<END
Nodes $1
Tiers 2
Podsize $1

Tier 0
Downlink_speed_Gbps 200
Radix_Down $2
Radix_Up $(($2 / $3))
Downlink_Latency_ns 500
Switch_Latency_ns 0
Oversubscribed $3

Tier 1
Downlink_speed_Gbps 200
Radix_Down $(($1 / $2))
Downlink_Latency_ns 500
Switch_Latency_ns 0
END
}
network 32 8 1
network 32 8 4
network 128 16 1
network 128 16 4
network 128 16 8
