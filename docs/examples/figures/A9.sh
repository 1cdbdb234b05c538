#!/bin/sh
# Figure 9 of ATLAHS (Shen et al., SC 2025): sizes of traces of AI training in GOAL and Chakra. The metric of its artefact is
# the size of the binary GOAL file, with a rank per node and NCCL calls as messages, and of all Chakra files.
#
# The published ratios are labels of a picture and belong to recorded traces, which are not public: Chakra traces of PyTorch
# have every CPU and GPU kernel. Those of the generator have a node per layer and pass only, so that GOAL, which has every
# chunk of every channel, is larger here. The figure cannot be reproduced with them.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure A9 'ATLAHS, Figure 9: sizes of traces' "$@"

case $size in
small) layers="--layers 2" wide="--layers 8" ;;
medium) layers="--layers 8" wide="--layers 16" ;;
full) layers= wide= ;;
esac
bytes() { cat "$@" | wc -c | awk '{ print $1 }'; }
echo 'trace,format,size (kB)' >"$work/t.csv"
# sizes NAME FLAGS...
sizes() {
    name=$1
    shift
    rm -rf "$work/et"
    mkdir "$work/et"
    tracegen -q llm "$@" -o "$work/t.parquet"
    traceconv -q --to chakra -o "$work/et/t" "$work/t.parquet"
    traceconv -q --lower nccl --gpus-per-node 4 -o "$work/nccl.parquet" "$work/t.parquet"
    traceconv -q -o "$work/t.bin" "$work/nccl.parquet"
    goal=$(bytes "$work/t.bin") chakra=$(bytes "$work"/et/*)
    store=$(bytes "$work/nccl.parquet") whole=$(bytes "$work/t.parquet")
    shown "$name: GOAL (B)" "$goal"
    shown "$name: Chakra (B)" "$chakra"
    shown "$name: GOAL / Chakra" "$(ratio "$goal" "$chakra")"
    shown "$name: store, lowered (B)" "$store"
    shown "$name: store, collectives (B)" "$whole"
    trend "$name: store / GOAL $(ratio "$store" "$goal")" 'below 0.05' "$store < 0.05 * $goal"
    for row in "GOAL $goal" "Chakra $chakra" "store (lowered) $store" "store $whole"; do
        echo "$name,${row% *},$(awk -v b="${row##* }" 'BEGIN { print b / 1000 }')" >>"$work/t.csv"
    done
}
sizes 'Llama 7B 16' --preset llama-7b $layers --dp 16 --global-batch 32
sizes 'Llama 7B 64' --preset llama-7b $layers --dp 64 --global-batch 64
[ "$size" = small ] || sizes 'Llama 7B 128' --preset llama-7b $layers --dp 128 --global-batch 128
[ "$size" = small ] || sizes 'Llama 70B 256' --preset llama-70b $wide --pp 8 --dp 32 --global-batch 32
sizes 'MoE 8x7B 64' --preset mixtral-8x7b $wide --seq 1024 --pp 8 --dp 8 --ep 8
picture bars "$work/t.csv" --plot-log y
note "Not reproducible: the recorded traces are not public, and the published ratios are labels of a picture. The \
Chakra traces of PyTorch have every CPU and GPU kernel; generated ones have a node per layer and pass, so that \
here GOAL, with every chunk of every channel, is the larger one."
finish
