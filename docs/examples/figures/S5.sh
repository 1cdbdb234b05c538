#!/bin/sh
# Figure 5 of ASTRA-sim 2.0 (Won et al., ISPASS 2023): architectures of memory pools: switches of several levels, rings,
# meshes, and the hierarchical pool, which the paper alone describes by equations (figures 6 to 8).
#
# The figure has no numbers. The others here are loads of the busiest link, counted by hand over the shortest paths between
# all GPUs and memory groups, and times of 1 GiB per GPU by pools of equal bisection.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure S5 'ASTRA-sim 2.0, Figure 5: architectures of memory pools' "$@"

cat >"$work/load.0.json" <<END
{"version":"0.0.4"}
{"id":"0","name":"load","type":"MEM_LOAD_NODE","attr":[{"name":"tensor_size","uint64Val":"1073741824"}]}
END
explain=--explain
# pool GPUS KEYS: sets load (W) of the busiest link and ms of an access of 1 GiB per GPU.
pool() {
    printf '{%s}\n' "$2" >"$work/m.json"
    simulate -q --backend analytical --network "Switch($1)@100GB/s,0ns" --memory "$work/m.json" $explain --json \
        --replicate-rank0 "$work/load.0.json" >"$work/out.json"
    load=$(sed 's/.*"memory_pool"//' "$work/out.json" | grep -o '"load_w":[0-9.]*' | cut -d : -f 2 | sort -g | tail -n 1)
    ms=$(field makespan_ps <"$work/out.json" | awk '{ printf "%.10g\n", $1 / 1e9 }')
}
ring() { pool "$1" '"memory-type": "RING_POOL", "num-remote-memory-groups": '"$1"', "link-bw": '"$2"', "hop-latency": 0, "chunk-size": 65536'; }
# mesh GPUS SIDE BANDWIDTH COLUMNS
mesh() {
    pool "$1" '"memory-type": "MESH_POOL", "mesh-columns": '"$2"', "mesh-rows": '"$2"', "memory-columns": "'"$4"'",
        "link-bw": '"$3"', "hop-latency": 0, "chunk-size": 65536'
}
# tree GPUS BANDWIDTH: switches with 4 GPUs each below a root; links upward carry what their GPUs need.
tree() {
    pool "$1" '"memory-type": "MULTILEVEL_SWITCH_POOL", "levels": 2, "radix": [4, '$(($1 / 4))'], "chunk-size": 65536,
        "bw": ['"$2, $(awk -v b="$2" 'BEGIN { print 4 * b }'), $(awk -v b="$2" -v n="$1" 'BEGIN { print n * b }')"']'
}

# The busiest link of a ring with as many groups as GPUs, N, has (N / 8 + 1 / 4) W.
ring 4 16
exact 'ring of 4 GPUs and 4 groups (W)' 0.75 "$load"
ring 8 16
exact 'ring of 8 GPUs and 8 groups (W)' 1.25 "$load"
ring 16 16
exact 'ring of 16 GPUs and 16 groups (W)' 2.25 "$load"
mesh 16 4 16 every
exact 'mesh of 4 x 4, groups at all GPUs (W)' 1.0 "$load"
mesh 64 8 16 every
exact 'mesh of 8 x 8, groups at all GPUs (W)' 2.0 "$load"
mesh 16 4 16 both
exact 'mesh of 4 x 4, groups in two columns (W)' 1.5 "$load"
mesh 64 8 16 both
exact 'mesh of 8 x 8, groups in two columns (W)' 3.5 "$load"

# Equal bisection: a mesh has as many links there as rows, a ring two, and through the root of a tree passes half of what
# half of the GPUs read.
echo 'GPUs,architecture,time of 1 GiB per GPU (ms)' >"$work/t.csv"
for side in 4 8 16; do
    gpus=$((side * side)) cut=$((16 * side))
    tree $gpus "$(awk -v c=$cut -v n=$gpus 'BEGIN { print c * 4 / n }')"
    tree=$ms
    mesh $gpus $side 16 every
    mesh=$ms
    ring $gpus $((cut / 2))
    ring=$ms
    trend "$gpus GPUs, equal bisection: switches, mesh, ring, up to 0.01 % for the first chunk" \
        "$tree <= $mesh <= $ring ms" "$tree <= 1.0001 * $mesh && $mesh <= $ring"
    printf '%s,switches,%s\n%s,mesh,%s\n%s,ring,%s\n' $gpus "$tree" $gpus "$mesh" $gpus "$ring" >>"$work/t.csv"
done

# No pool is faster than a memory of the same bandwidth at each GPU; the time is in proportion to 1 / bandwidth.
ring 16 16
ring=$ms
ring 16 8
trend 'ring: half the bandwidth, twice the time' "$ms / $ring in 1.999..2.001" "$ms / $ring > 1.999 && $ms / $ring < 2.001"
mesh 16 4 16 every
mesh=$ms
mesh 16 4 8 every
trend 'mesh: half the bandwidth, twice the time' "$ms / $mesh in 1.999..2.001" "$ms / $mesh > 1.999 && $ms / $mesh < 2.001"
tree 16 16
tree=$ms
tree 16 8
trend 'switches: half the bandwidth, twice the time' "$ms / $tree in 1.999..2.001" \
    "$ms / $tree > 1.999 && $ms / $tree < 2.001"
explain=
pool 16 '"memory-type": "LOCAL", "latency": 0, "bandwidth": 16'
trend 'links of 16 GB/s: local memory is the fastest' "$ms < $tree, $mesh, $ring ms" \
    "$ms <= $tree && $ms <= $mesh && $ms <= $ring"
note "The figure has no numbers. The loads are counts over all shortest paths; the paper has equations for the \
hierarchical pool only, see S6 and S7. The order and the proportions are those of tracedag's own equations."
picture bars "$work/t.csv" --plot-log y
finish
