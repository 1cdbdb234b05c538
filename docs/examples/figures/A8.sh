#!/bin/sh
# Figure 8 of ATLAHS (Shen et al., SC 2025): measured and predicted times of AI training, by messages, by packets and by
# ASTRA-sim, and the time to simulate them.
#
# The measured runs are not public, so the figure itself cannot be reproduced. The script shows the method: it reads the
# exports of Nsight Systems in testdata/nsys/training, a sample that was made, not measured, executes their NCCL calls,
# and compares the recorded times of the ranks with the predictions. Parameters are those of the artefact.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure A8 'ATLAHS, Figure 8: recorded and predicted times of training (method)' "$@"

recorded=$folder/../../../testdata/nsys/training
# predict FLAGS...: sets measured and predicted (ms), and error (%).
predict() {
    simulate -q --compare "$@" "$recorded" >"$work/result"
    set -- $(awk '
        function ms(t) { return t ~ /us$/ ? t / 1000 : t ~ /ms$/ ? t + 0 : t * 1000 }
        $1 == "all" { printf "%.7g %.7g %s", ms($2), ms($3), $4 + 0 }' "$work/result")
    measured=$1 predicted=$2 error=$3
}
echo 'simulation,time,makespan (ms)' >"$work/t.csv"
# method NAME FLAGS...
method() {
    name=$1
    shift
    predict "$@"
    shown "$name: recorded (ms)" "$measured"
    shown "$name: predicted (ms)" "$predicted"
    trend "$name: error $error %, all below 5 % published" 'below 5 %' "$error < 5 && $error > -5" \
        'the sample was made, not measured'
    printf '%s,recorded,%s\n%s,predicted,%s\n' "$name" "$measured" "$name" "$predicted" >>"$work/t.csv"
}
packet='--backend packet --transport mprdma --queue 1MB --o 200ns'
method messages --lower nccl --params ai
method packets --lower nccl $packet --topology leafspine:hosts=1024,tor=32,spines=32,rate=200Gbps,latency=500ns
# ASTRA-sim runs collectives. The network has a GPU in each of two nodes, so the artefact's dimension between nodes only.
cat >"$work/system.json" <<'END'
{"all-reduce-implementation": ["ring"], "collective-optimization": "baseline", "preferred-dataset-splits": 4,
 "endpoint-delay": 10, "local-mem-bw": 4000}
END
method ASTRA-sim --backend analytical --network 'Switch(2)@25GB/s,37us' --system "$work/system.json"

case $size in
small) model="--layers 1 --hidden 1024 --ffn 2752 --vocab 2000" ;;
medium) model="--layers 4 --hidden 2048 --ffn 5504 --vocab 2000" ;;
full) model="--layers 32 --hidden 4096 --ffn 11008 --vocab 32000" ;;
esac
tracegen -q llm --preset llama-7b $model --heads 8 --dp 16 --peak-flops 300TFLOPS --mem-bw 2TB/s \
    -o "$work/llama.parquet"
traceconv -q --lower collectives=ring "$work/llama.parquet" -o "$work/llama.goal"
# seconds FLAGS... TRACE: the processor time of a simulation.
seconds() {
    (time -p simulate -q "$@" >"$work/result") 2>&1 | awk '$1 == "user" || $1 == "sys" { sum += $2 } END { print sum }'
}
messages=$(seconds --params ai "$work/llama.goal")
packets=$(seconds $packet --topology leafspine:hosts=1024,tor=32,spines=32,rate=200Gbps,latency=500ns "$work/llama.goal")
astra=$(seconds --backend analytical --network 'Switch(4)_Switch(4)@150,25GB/s,1us,37us' "$work/llama.parquet")
shown 'time to simulate a step on 4 nodes, messages (s); 5.5 published' "$messages"
shown 'time to simulate a step on 4 nodes, ASTRA-sim (s); 76.63 published' "$astra"
shown 'time to simulate a step on 4 nodes, packets (s); 180.01 published' "$packets"
trend 'time to simulate' "packets $packets s > messages $messages s" "$packets > $messages"
picture bars "$work/t.csv"
note "Not reproducible: the measured runs are not public. The script shows the method on a sample that was made, not \
measured. In the rows of ASTRA-sim its model runs, which is the analytical backend here. The step whose simulation is \
timed is that of a smaller model than the published one."
finish
