#!/bin/sh
# The second figure of the case studies of ASTRA-sim 2.0 (Won et al., ISPASS 2023): GPT-3 and T-1T on the systems of Table
# III, which grow in their last dimension (scale-out) or in their first (wafer).
#
# The paper leaves the degrees of model parallelism open. Those that end at the border of a dimension are used for both
# models: the first two dimensions. The batch of a model-parallel group is the same on all systems.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure SB 'ASTRA-sim 2.0: GPT-3 and T-1T, scaled up and out' "$@"

case $size in
small) layers=2 chunks=16 ;;
medium) layers=4 chunks=64 ;;
full) layers=8 chunks=64 ;;
esac
cat >"$work/system.json" <<END
{"all-reduce-implementation": ["halvingDoubling", "halvingDoubling", "halvingDoubling", "halvingDoubling"],
 "collective-optimization": "localBWAware", "preferred-dataset-splits": $chunks, "active-chunks-per-dimension": 1,
 "endpoint-delay": 1, "roofline-enabled": 1, "peak-perf": 234, "local-mem-bw": 1e9}
END
# part NAME: prints the mean of a part in us.
part() { sed 's/.*"mean":{//' "$work/out.json" | field "$1" | awk '{ printf "%.10g\n", $1 / 1e3 }'; }
echo 'system,part,time (ms)' >"$work/t.csv"
# system FIRST LAST: runs the model on a system, and sets exposed.
system() {
    name=$1_8_8_$2
    tracegen -q llm --preset "$preset" --layers "$layers" --vocab 0 --micro-batch "$batch" --tp $(($1 * 8)) \
        --dp $(($2 * 8)) --network-dims "$1x8x8x$2" --dims tp=0+1,dp=2+3 -o "$work/t.parquet"
    simulate -q --backend analytical --network "Switch($1)_Switch(8)_Switch(8)_Switch($2)@1000,200,100,50GB/s,1ns" \
        --system "$work/system.json" --json "$work/t.parquet" >"$work/out.json"
    exposed=$(part exposed_communication)
    shown "$model, $name: compute (us)" "$(part compute)"
    shown "$model, $name: exposed communication (us)" "$exposed"
    printf '%s,%s compute,%s\n%s,%s exposed,%s\n' "$name" "$model" "$(part compute)" "$name" "$model" "$exposed" |
        awk -F , '{ print $1 "," $2 "," $3 / 1000 }' >>"$work/t.csv"
}
# scaled MODEL PRESET BATCH
scaled() {
    model=$1 preset=$2 batch=$3
    system 2 4
    base=$exposed
    for last in 8 16 32; do
        system 2 "$last"
        trend "$model: 2_8_8_$last as long as 2_8_8_4" "$exposed / $base in 0.95..1.05" \
            "$exposed / $base > 0.95 && $exposed / $base < 1.05"
    done
    system 4 4
    four=$exposed
    trend "$model: 4_8_8_4 shorter than 2_8_8_4" "$four < $base" "$four < $base"
    system 8 4
    eight=$exposed
    trend "$model: 8_8_8_4 shorter than 4_8_8_4" "$eight < $four" "$eight < $four"
    system 16 4
    trend "$model: 8_8_8_4 not longer than 16_8_8_4" "$eight <= $exposed" "$eight <= $exposed" \
        'twice the model parallelism halves the parameters of an NPU, and the exposed allreduce of their gradients'
}
# tensor FIRST RANKS: prints the time of an allreduce of model parallelism in us.
tensor() {
    tracegen -q collective --type allreduce --size 768MiB --ranks "$2" --dims 0,1 |
        simulate -q --backend analytical --network "Switch($1)_Switch(8)_Switch(8)_Switch(4)@1000,200,100,50GB/s,1ns" \
            --system "$work/system.json" --json | field makespan_ps | awk '{ printf "%.10g\n", $1 / 1e6 }'
}
scaled GPT-3 gpt3-175b 16
scaled T-1T msft-1t 8
eight=$(tensor 8 2048) sixteen=$(tensor 16 4096)
trend 'allreduce of model parallelism: 8_8_8_4 not longer than 16_8_8_4' "$eight <= $sixteen us" "$eight <= $sixteen"
note "The paper leaves the degrees of model parallelism open. Here it has the first two dimensions, 16 to 128 NPUs, and \
data parallelism the others; a group has the same batch on all systems. Both models have $layers layers without \
embedding and output layer, and $chunks chunks per collective."
picture bars "$work/t.csv" --plot-log y
finish
