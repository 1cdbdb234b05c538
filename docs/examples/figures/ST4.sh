#!/bin/sh
# Table IV of ASTRA-sim 2.0 (Won et al., ISPASS 2023): an access of 1 GiB per GPU of 256 GPUs to the memory of ZeRO-Infinity
# and to the hierarchical pools. The paper publishes the time of a training step, of which a part does not depend on memory.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure ST4 'ASTRA-sim 2.0, Table IV: access to remote memory' "$@"

cat >"$work/load.0.json" <<'END'
{"version":"0.0.4"}
{"id":"0","name":"load","type":"MEM_LOAD_NODE","attr":[{"name":"tensor_size","uint64Val":"1073741824"}]}
END
# access: prints the time in ms with the memory of standard input.
access() {
    cat >"$work/m.json"
    simulate -q --backend analytical --network 'Switch(256)@100GB/s,0ns' --memory "$work/m.json" --replicate-rank0 --json \
        "$work/load.0.json" | field makespan_ps | awk '{ printf "%.10g\n", $1 / 1e9 }'
}
# pool FABRIC GROUP: bandwidths in GB/s within a node and of a memory group; chunks of 64 KiB.
pool() {
    access <<END
{"memory-type": "HIERARCHICAL_POOL", "num-nodes": 16, "num-npus-per-node": 16, "num-out-node-switches": 16,
 "num-remote-memory-groups": 256, "chunk-size": 65536, "gpu-side-bw": 1e6, "in-node-bw": $1, "remote-mem-group-bw": $2}
END
}
zero=$(echo '{"memory-type": "PER_NPU_MEMORY_EXPANSION", "remote-mem-latency": 0, "remote-mem-bw": 100}' | access)
base=$(pool 256 100) opt=$(pool 512 500)
printf 'memory,,time (ms)\nZeRO-Infinity,,%s\nHierMem,,%s\nHierMem (opt),,%s\n' "$zero" "$base" "$opt" >"$work/t.csv"
shown 'ZeRO-Infinity (ms)' "$zero"
shown 'HierMem, 256 and 100 GB/s (ms)' "$base"
shown 'HierMem (opt), 512 and 500 GB/s (ms)' "$opt"
within 0.1 'HierMem / ZeRO-Infinity' 1.001 "$(ratio "$base" "$zero")"
differs 'HierMem / HierMem (opt)' 4.6 "$(ratio "$base" "$opt")" \
    'the published value is of a whole step, of which compute does not become faster'
best=$(pool 2048 500)
trend 'no gain from more than 512 GB/s within nodes' "$opt / $best < 1.01" "$opt / $best < 1.01"
trend 'both bandwidths are needed' 'a gain of more than 20 %' "$(pool 256 500) > 1.2 * $opt && $(pool 512 400) > 1.2 * $opt"
picture bars "$work/t.csv"
finish
