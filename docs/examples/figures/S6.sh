#!/bin/sh
# Figures 6 to 8 of ASTRA-sim 2.0 (Won et al., ISPASS 2023): the load of links of a memory pool of 8 memory groups and 4
# switches for 16 nodes of 16 GPUs, without and with collectives in the switches, in units of W, the bytes per GPU.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure S6 'ASTRA-sim 2.0, Figures 6 to 8: link loads of a hierarchical memory pool' "$@"

cat >"$work/load.0.json" <<'END'
{"version":"0.0.4"}
{"id":"0","name":"load","type":"MEM_LOAD_NODE","attr":[{"name":"tensor_size","uint64Val":"16777216"}]}
END
echo 'link,collectives,load (W)' >"$work/t.csv"
# pool IN-SWITCH NAME LOAD1 LOAD2 LOAD3: an access of 16 MiB per GPU.
pool() {
    cat >"$work/m.json" <<END
{"memory-type": "HIERARCHICAL_POOL", "num-nodes": 16, "num-npus-per-node": 16, "num-out-node-switches": 4,
 "num-remote-memory-groups": 8, "chunk-size": 1048576, "mem-side-bw": 100, "gpu-side-bw": 100, "in-node-bw": 256,
 "in-switch": $1}
END
    simulate -q --backend analytical --network 'Switch(256)@100GB/s,0ns' --memory "$work/m.json" --explain \
        --replicate-rank0 "$work/load.0.json" >"$work/out.txt"
    for link in "memory group to switch=$3" "switch to node=$4" "node's switch to NPU=$5"; do
        here=$(awk -v link="${link%=*}" 'index($0, link) == 1 { n = split($0, f, "  +"); print f[3] + 0 }' "$work/out.txt")
        exact "$2: ${link%=*} (W)" "${link#*=}" "$here"
        printf '%s,%s,%s\n' "${link%=*}" "$2" "$here" >>"$work/t.csv"
    done
    shown "$2: time of 16 MiB per GPU (ns)" "$(sed -n 's/^access.* stages, \([0-9.]*\) ns$/\1/p' "$work/out.txt")"
}
pool 0 plain 8 4 1
pool 1 in-switch 8 64 256
trend 'loads equal the published ones' 'all of the text' "$failed == 0"
note "These are all published loads of the three figures: plain accesses, and accesses that switches gather."
picture bars "$work/t.csv"
finish
