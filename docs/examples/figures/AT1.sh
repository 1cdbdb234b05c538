#!/bin/sh
# Table 1 of ATLAHS (Shen et al., SC 2025): its collection of traces. The traces are not public here; generated stand-ins
# take their places. GOAL has a rank per node of 4 GPUs and NCCL calls as messages, or a rank per MPI process.
#
# LAMMPS and ICON have no stand-in. The full size generates all layers; the others fewer, as the digests show.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure AT1 'ATLAHS, Table 1: stand-ins for the published traces' "$@"

case $size in
small) layers="--layers 2" wide="--layers 8" ;;
medium) layers="--layers 8" wide="--layers 16" ;;
full) layers= wide= ;;
esac
printf '  %-16s %10s %10s %12s %10s  %s\n' application GPUs/nodes 'GOAL ops' 'GOAL (B)' 'store (B)' sha256
echo 'application,format,size (kB)' >"$work/t.csv"
most=0
# table NAME UNITS: prints the line of the trace in t.parquet.
table() {
    traceconv -q -o "$work/t.bin" "$work/t.parquet"
    ops=$(tracecat "$work/t.bin" | awk '$1 == "ops" { print $2; exit }')
    goal=$(wc -c <"$work/t.bin" | awk '{ print $1 }') store=$(wc -c <"$work/t.parquet" | awk '{ print $1 }')
    digest=$(tracecat --digest "$work/t.parquet" | awk '{ print $1 }')
    printf '  %-16s %10s %10s %12s %10s  %s\n' "$1" "$2" "$ops" "$goal" "$store" "$digest"
    shown "$1 $2: ops" "$ops"
    shown "$1 $2: GOAL (B)" "$goal"
    shown "$1 $2: store (B); content $(echo "$digest" | cut -c1-16)" "$store"
    printf '%s,GOAL,%s\n%s,store,%s\n' "$1 $2" "$(awk -v b="$goal" 'BEGIN { print b / 1000 }')" "$1 $2" \
        "$(awk -v b="$store" 'BEGIN { print b / 1000 }')" >>"$work/t.csv"
    most=$(awk -v m=$most -v s="$store" -v g="$goal" 'BEGIN { print (s / g > m) ? s / g : m }')
}
# training NAME UNITS GENERATOR FLAGS...
training() {
    name=$1 units=$2
    shift 2
    tracegen -q "$@" --lower nccl --gpus-per-node ${per:-4} -o "$work/t.parquet"
    table "$name" "$units"
}
moe="--pp 8 --ep 8 --seq 1024 $wide"
per=1
training DLRM 4/4 dlrm --preset atlahs
per=4
training 'Llama 7B' 16/4 llm --preset llama-7b $layers --dp 16 --global-batch 32
training 'Llama 7B' 64/16 llm --preset llama-7b $layers --dp 64 --global-batch 64
training 'MoE 8x7B' 64/16 llm --preset mixtral-8x7b $moe --dp 8
if [ "$size" != small ]; then
    training 'Llama 7B' 128/32 llm --preset llama-7b $layers --dp 128 --global-batch 128
    training 'Llama 70B' 256/64 llm --preset llama-70b $wide --pp 8 --dp 32 --global-batch 32
    training 'MoE 8x13B' 128/32 llm --preset moe-8x13b $moe --dp 16
    training 'MoE 8x70B' 256/64 llm --preset moe-8x70b $moe --dp 32
fi
for name in lulesh hpcg milc4d cloverleaf; do
    tracegen -q stencil --preset $name --lower collectives -o "$work/t.parquet"
    table $name 64/64
done
trend "store / GOAL at most $(awk -v m=$most 'BEGIN { printf "%.3f", m }')" 'below 0.5' "$most < 0.5"
picture bars "$work/t.csv" --plot-log y
note "The published traces are not public. The sizes belong to generated stand-ins; LAMMPS and ICON have none."
finish
