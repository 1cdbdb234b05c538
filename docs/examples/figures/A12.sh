#!/bin/sh
# Figure 12 of ATLAHS (Shen et al., SC 2025): a training step on 32 nodes by messages (LogGOPS) and by packets, with 8 nodes
# per switch and 8 or 2 uplinks: messages do not see the oversubscription. Published numbers: its artefact.
#
# The trace of the artefact is not public. The stand-in is a narrow model with 32 replicas whose rings cross switches
# (placement strided:8), with compute between the all-reduces. Transport and rules are those of the published scripts: a
# constant window of one bandwidth-delay product, links of 1 ns.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure A12 'ATLAHS, Figure 12: messages and packets with oversubscription' "$@"

case $size in
small) model="--layers 2 --hidden 1024 --ffn 2752 --vocab 2000" ;;
medium) model="--layers 4 --hidden 1024 --ffn 2752 --vocab 2000" ;;
full) model="--layers 32 --hidden 4096 --ffn 11008 --vocab 32000" ;;
esac
tracegen -q llm --preset llama-7b $model --heads 8 --dp 32 --peak-flops 100TFLOPS --mem-bw 2TB/s \
    --lower collectives=ring --to goal -o "$work/llama.goal"
messages=$(simulate -q --params ai --model atlahs --json "$work/llama.goal" | field makespan_ps)
# packets SPINES: sets makespan (ps) and drops, the packets that switches trimmed.
packets() {
    simulate -q --backend packet --compat atlahs --transport constant --placement strided:8 --json --max-flows 0 \
        --topology "leafspine:hosts=32,tor=8,spines=$1,rate=200Gbps,latency=1ns" "$work/llama.goal" >"$work/result"
    makespan=$(field makespan_ps <"$work/result")
    drops=$(($(field switch_trims_tail <"$work/result") + $(field switch_trims_arriving <"$work/result")))
}
milliseconds() { awk -v t="$1" 'BEGIN { printf "%.4g", t / 1e9 }'; }
packets 8
full=$makespan full_drops=$drops
packets 2
few=$makespan few_drops=$drops
shown 'messages (ms)' "$(milliseconds "$messages")"
shown 'packets, 1:1 (ms)' "$(milliseconds "$full")"
shown 'packets, 4:1 (ms)' "$(milliseconds "$few")"
trend "1:1, packets / messages $(ratio "$full" "$messages"), 1.005 published" 'within 5 % of 1' \
    "$full / $messages < 1.05 && $messages / $full < 1.05"
trend "4:1, packets / messages $(ratio "$few" "$messages"), 2.2 published" 'above 1.5' "$few / $messages > 1.5"
shown 'trimmed packets, 1:1 (292,765 published)' "$full_drops"
shown 'trimmed packets, 4:1 (206,409,686 published)' "$few_drops"
trend 'trimmed packets, 4:1' 'more than 10 times those at 1:1' "$few_drops > 10 * $full_drops"
{
    echo 'uplinks,simulation,time (ms)'
    for network in "1:1 $full" "4:1 $few"; do
        set -- $network
        printf '%s,messages,%s\n%s,packets,%s\n' "$1" "$(milliseconds "$messages")" "$1" "$(milliseconds "$2")"
    done
} >"$work/t.csv"
picture bars "$work/t.csv"
note "The published trace is not public; the stand-in is a narrow model with the same structure."
finish
