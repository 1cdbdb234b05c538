# pool.sh: what the scripts about link loads share, a memory pool of 8 memory groups and 4 switches for 16 nodes of 16 GPUs.

# explain IN-SWITCH [RANKS]: loads 16 MiB per GPU, the parts of a number of ranks together, and keeps the report.
explain() {
    cat >"$work/m.json" <<END
{"memory-type": "HIERARCHICAL_POOL", "num-nodes": 16, "num-npus-per-node": 16, "num-out-node-switches": 4,
 "num-remote-memory-groups": 8, "chunk-size": 1048576, "mem-side-bw": 100, "gpu-side-bw": 100, "in-node-bw": 256,
 "in-switch": $1}
END
    gather=${2:+",{\"name\":\"gather\",\"uint64Val\":\"$2\"}"}
    cat >"$work/load.0.json" <<END
{"version":"0.0.4"}
{"id":"0","name":"load","type":"MEM_LOAD_NODE","attr":[{"name":"tensor_size","uint64Val":"16777216"}$gather]}
END
    simulate -q --backend analytical --network 'Switch(256)@100GB/s,0ns' --memory "$work/m.json" --explain \
        --replicate-rank0 "$work/load.0.json" >"$work/out.txt"
}

# column LINK NUMBER: prints the number in a column of the report.
column() {
    awk -v link="$1" -v column="$2" '
        index($0, link) == 1 { split($0, f, "  +"); sub(".*= ", "", f[column]); printf "%.12g\n", f[column] + 0 }' "$work/out.txt"
}

# load LINK EXPECTED [RANKS]: compares the load of a link in units of W.
load() {
    here=$(column "$1" 3)
    exact "$1${3:+, $3 ranks} (W)" "$2" "$here"
    printf '%s,%s,%s\n' "$1" "${3:+$3 ranks}" "$here" >>"$work/t.csv"
}

# chunk LINK NUMBER EXPECTED: compares the time of a chunk on a link, which the paper calls t1, t2 and t3.
chunk() { exact "$1: t$2 (ns)" "$3" "$(column "$1" 4)"; }

stages() { sed -n 's/^access.*n = \([0-9]*\) stages.*/\1/p' "$work/out.txt"; }

nanoseconds() { sed -n 's/^access.* stages, \([0-9.]*\) ns$/\1/p' "$work/out.txt"; }
