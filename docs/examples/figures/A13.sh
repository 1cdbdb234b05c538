#!/bin/sh
# Figure 13 of ATLAHS (Shen et al., SC 2025): a training job of 32 nodes and a halo exchange of 64 share a cluster of 128
# nodes at 4:1, placed packed or at random. Published numbers: its artefact, whose traces are not public.
published_seeds=5
folder=$(dirname "$0")
. "$folder/lib.sh"
figure A13 'ATLAHS, Figure 13: packed and random placement of two jobs' "$@"

case $size in
small) model="--layers 2 --hidden 1024 --ffn 2752 --vocab 2000" iterations=4 ;;
medium) model="--layers 4 --hidden 1024 --ffn 2752 --vocab 2000" iterations=8 ;;
full) model="--layers 32 --hidden 4096 --ffn 11008 --vocab 32000" iterations=500 ;;
esac
tracegen -q llm --preset llama-7b $model --heads 8 --dp 32 --peak-flops 200TFLOPS --mem-bw 2TB/s \
    --lower collectives=ring -o "$work/training.parquet"
tracegen -q stencil --preset lulesh --iterations $iterations --compute 3ms --lower collectives -o "$work/halo.parquet"

# jobs MAPPING: prints the makespans of training and halo exchange in ms.
jobs() {
    simulate -q --backend packet --compat atlahs --transport mprdma --queue 1MB --placement nodes --json --max-flows 0 \
        --topology leafspine:hosts=128,tor=16,spines=4,rate=200Gbps,latency=500ns --nodes 128 --mapping "$1" \
        "$work/training.parquet" --trace "$work/halo.parquet" | tr '{' '\n' |
        sed -n 's/.*"first_rank".*"makespan_ps":\([0-9]*\).*/\1/p' | awk '{ printf "%.6g ", $1 / 1e9 }'
}
set -- $(jobs packed)
training=$1 halo=$2
for seed in $(seq "$seeds"); do
    jobs "random:$seed"
    echo
done >"$work/random"
trainings=$(cut -d' ' -f1 "$work/random" | mean) halos=$(cut -d' ' -f2 "$work/random" | mean)
training_random=${trainings%%,*} halo_random=${halos%%,*}
percent() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3g", (a / b - 1) * 100 }'; }
slower=$(percent "$training_random" "$training") halo_slower=$(percent "$halo_random" "$halo")
shown 'training, packed (ms)' "$training"
shown 'training, random (ms)' "$trainings"
shown 'halo exchange, packed (ms)' "$halo"
shown 'halo exchange, random (ms)' "$halos"
trend "training with random placement +$slower %, +35 % published" 'slower by more than 10 %' "$slower > 10"
trend "halo exchange with random placement +$halo_slower %, +1 % published" 'slows less than training' \
    "$halo_slower < $slower"
{
    echo 'job,placement,time (ms),low,high'
    printf 'training,packed,%s,,\ntraining,random,%s\n' "$training" "$trainings"
    printf 'halo exchange,packed,%s,,\nhalo exchange,random,%s\n' "$halo" "$halos"
} >"$work/t.csv"
picture bars "$work/t.csv"
note "The published traces are not public; the stand-ins are a narrow model and a halo exchange."
finish
