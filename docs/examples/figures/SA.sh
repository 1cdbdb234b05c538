#!/bin/sh
# The first figure of the case studies of ASTRA-sim 2.0 (Won et al., ISPASS 2023): an all-reduce of 1 GiB, DLRM, GPT-3 and
# T-1T on the six systems of Table I, with collectives in the order of dimensions (baseline) and as Themis schedules them.
#
# Every dimension is a switch with the bandwidth per NPU of the table. Rings and fully connected dimensions with links of
# that bandwidth divided by their number are slower, because their algorithms do not use all links at once.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure SA 'ASTRA-sim 2.0: four workloads on the systems of Table I' "$@"

# system SCHEDULING INTRA CHUNKS [ALGORITHM...]: prints the description of the system layer; the algorithms are those of an
# all-reduce in each dimension, by default those for switches.
system() {
    scheduling=$1 intra=$2 chunks=$3
    shift 3
    [ $# -gt 0 ] || set -- halvingDoubling halvingDoubling halvingDoubling halvingDoubling
    algorithms=$(printf ', "%s"' "$@")
    cat <<END
{"all-reduce-implementation": [${algorithms#, }],
 "all-to-all-implementation": ["direct", "direct", "direct", "direct"],
 "collective-optimization": "localBWAware", "preferred-dataset-splits": $chunks, "active-chunks-per-dimension": 1,
 "endpoint-delay": 1, "inter-dimension-scheduling": "$scheduling",
 "intra-dimension-scheduling": "$intra", "roofline-enabled": 1, "peak-perf": 234, "local-mem-bw": 1e6}
END
}
system ascending FIFO 64 >"$work/baseline.json"
system themis FIFO 64 >"$work/themis.json"
system themis smallestFirst 64 >"$work/smallest.json"
system ascending FIFO 256 >"$work/baseline256.json"
system themis FIFO 256 >"$work/themis256.json"
# A wafer's alltoall has 511 messages per chunk and NPU, and the number of chunks changes its time by less than 0.1 %.
system ascending FIFO 4 >"$work/baseline4.json"
system themis FIFO 4 >"$work/themis4.json"

# run NETWORK SYSTEM TRACE: sets us, compute and exposed.
run() {
    simulate -q --backend analytical --network "$1,0ns" --system "$work/$2.json" --json "$work/$3.parquet" \
        >"$work/out.json"
    us=$(field makespan_ps <"$work/out.json" | awk '{ printf "%.10g\n", $1 / 1e6 }')
    compute=$(part compute) exposed=$(part exposed_communication)
}
# part NAME: prints the mean of a part in us.
part() { sed 's/.*"mean":{//' "$work/out.json" | field "$1" | awk '{ printf "%.10g\n", $1 / 1e3 }'; }

echo 'system,workload,exposed communication / W-1D-350' >"$work/t.csv"
# both NAME SYSTEM NETWORK TRACE [SUFFIX]: runs the baseline and Themis; sets base and themis, base_exposed and
# themis_exposed.
both() {
    run "$3" "baseline${5-}" "$4"
    base=$us base_exposed=$exposed
    [ "$2" != W-1D-350 ] || first=$exposed
    run "$3" "themis${5-}" "$4"
    themis=$us themis_exposed=$exposed
    printf '%s,%s,%s\n%s,%s,%s\n' "$2" "$1" "$(ratio "$base_exposed" "$first")" \
        "$2" "$1 (Themis)" "$(ratio "$themis_exposed" "$first")" >>"$work/t.csv"
}

# workload NAME TRACE: an all-reduce or DLRM, which use all dimensions.
workload() {
    name=$1 trace=$2
    on W-1D-350 'Switch(512)@350GB/s' $wafer
    b350=$base
    trend "$name: W-1D gains nothing from Themis" "$themis / $base in 0.999..1.001" \
        "$themis / $base < 1.001 && $themis / $base > 0.999"
    on W-1D-500 'Switch(512)@500GB/s' $wafer
    b500=$base
    on W-1D-600 'Switch(512)@600GB/s' $wafer
    b600=$base
    on W-2D 'Switch(32)_Switch(16)@250,250GB/s'
    equal 0.02 W-2D W-1D-500 "$themis" "$b500"
    on Conv-3D 'Switch(16)_Switch(8)_Switch(4)@200,100,50GB/s'
    equal 0.04 Conv-3D W-1D-350 "$themis" "$b350"
    trend "$name: Conv-3D gains from Themis" "$base / $themis > 1.4" "$base / $themis > 1.4"
    on Conv-4D 'Switch(2)_Switch(8)_Switch(8)_Switch(4)@250,200,100,50GB/s'
    trend "$name: Conv-4D beats W-1D-350" "$base < $b350" "$base < $b350"
    equal 0.12 Conv-4D W-1D-600 "$themis" "$b600"
    run 'Switch(2)_Switch(8)_Switch(8)_Switch(4)@250,200,100,50GB/s' smallest "$trace"
    equal 0.05 'Conv-4D, smallest chunk first,' W-1D-600 "$us" "$b600"
}
# on SYSTEM NETWORK [SUFFIX]
on() {
    both "$name" "$1" "$2" "$trace" "${3-}"
    shown "$name, $1, baseline (us)" "$base"
    shown "$name, $1, Themis (us)" "$themis"
    [ "$compute" = 0 ] || shown "$name, $1: compute (us)" "$compute"
}
# equal SHARE SYSTEM WAFER TIME WAFER-TIME: Themis makes a system as fast as the wafer of equal bandwidth.
equal() {
    trend "$name: $2 with Themis is $3" "$4 / $5 within $1 of 1" "$4 / $5 - 1 < $1 && 1 - $4 / $5 < $1" ${reason:+"$reason"}
}
reason= wafer=
tracegen -q collective --type allreduce --size 1GiB --ranks 512 -o "$work/allreduce.parquet"
workload all-reduce allreduce

# upstream NAME CYCLES NETWORK SCHEDULING INTRA ALGORITHM...: the cycles that ASTRA-sim prints for the same input.
upstream() {
    name=$1 cycles=$2 network=$3
    shift 3
    scheduling=$1 intra=$2
    shift 2
    system "$scheduling" "$intra" 64 "$@" >"$work/upstream.json"
    run "$network" upstream allreduce
    exact "all-reduce, $name: cycles of ASTRA-sim" "$cycles" "$(awk -v us="$us" 'BEGIN { printf "%.0f", us * 1000 }')"
}
halving=halvingDoubling
upstream 'W-1D-350, baseline' 5705216 'Switch(512)@350GB/s' ascending FIFO $halving
upstream 'W-1D-600, baseline' 3328640 'Switch(512)@600GB/s' ascending FIFO $halving
upstream 'W-2D, baseline' 7752000 'Switch(32)_Switch(16)@250,250GB/s' ascending FIFO $halving $halving
upstream 'W-2D, Themis' 4063547 'Switch(32)_Switch(16)@250,250GB/s' themis FIFO $halving $halving
rings3='Ring(16)_FC(8)_Switch(4)@200,100,50GB/s' rings4='Ring(2)_FC(8)_Ring(8)_Switch(4)@250,200,100,50GB/s'
upstream 'Conv-3D by rings, baseline' 9378368 "$rings3" ascending FIFO ring ring $halving
upstream 'Conv-3D by rings, Themis' 5874426 "$rings3" themis FIFO ring ring $halving
upstream 'Conv-3D by rings, Themis, smallest chunk first' 5801180 "$rings3" themis smallestFirst ring ring $halving
upstream 'Conv-4D by rings, baseline' 4439168 "$rings4" ascending FIFO ring ring ring $halving
upstream 'Conv-4D by rings, Themis' 3718379 "$rings4" themis FIFO ring ring ring $halving
upstream 'Conv-4D by rings, Themis, smallest chunk first' 3442734 "$rings4" themis smallestFirst ring ring ring $halving

reason='alltoalls: Themis cannot help them, see the note' wafer=4
tracegen -q dlrm --ranks 512 -o "$work/dlrm.parquet"
workload DLRM dlrm

# GPT-3 and T-1T: model parallelism on the lowest dimensions, data parallelism on the others, with the batches that give
# the published inputs' all-reduces. On a wafer, groups of NPUs are parts of one dimension.
case $size in
small) layers=2 depth='2 layers' chunks=64 ;;
medium) layers=4 depth='4 layers' chunks=256 ;;
full) layers= depth='all layers' chunks=256 ;;
esac
few=
[ $chunks = 256 ] || few=', 64 chunks'
# model NAME PRESET BATCH MP DP
model() {
    name=$1 preset=$2 batch=$3 mp=$4 dp=$5
}
# hybrid SYSTEM NETWORK SIZES DIMS: the model on dimensions of these sizes.
hybrid() {
    tracegen -q llm --preset "$preset" ${layers:+--layers "$layers"} --vocab 0 --micro-batch "$batch" --tp "$mp" \
        --dp "$dp" --network-dims "$3" --dims "$4" -o "$work/h.parquet"
    both "$name" "$1" "$2" h "$([ $chunks = 64 ] || echo $chunks)"
    shown "$name, $1: compute (us)" "$compute"
    shown "$name, $1: exposed, baseline$few (us)" "$base_exposed"
    shown "$name, $1: exposed, Themis$few (us)" "$themis_exposed"
}
# conventional SYSTEM WAFER-EXPOSED WAFER NETWORK: the wafer is ahead of the system of the last run. The small size also has
# one model with 256 chunks.
conventional() {
    trend "$name: $3 is ahead of $1 with Themis" "$2 < $themis_exposed us exposed" "$2 < $themis_exposed"
    [ $chunks = 64 ] && [ "$name" = T-1T ] || return 0
    run "$4" themis256 h
    shown "$name, $1: exposed, Themis, 256 chunks (us)" "$exposed"
    trend "$name: $3 is ahead of $1 with Themis, 256 chunks" "$2 < $exposed us exposed" "$2 < $exposed"
}
conv3='Switch(16)_Switch(8)_Switch(4)@200,100,50GB/s'
conv4='Switch(2)_Switch(8)_Switch(8)_Switch(4)@250,200,100,50GB/s'

model GPT-3 gpt3-175b 16 16 32
hybrid W-1D-350 'Switch(16*32)@350GB/s' 16x32 tp=0,dp=1
w350=$base_exposed
trend "$name: W-1D gains nothing from Themis" "$themis / $base in 0.999..1.001" \
    "$themis / $base < 1.001 && $themis / $base > 0.999"
hybrid W-1D-500 'Switch(16*32)@500GB/s' 16x32 tp=0,dp=1
hybrid W-1D-600 'Switch(16*32)@600GB/s' 16x32 tp=0,dp=1
w600=$base_exposed
hybrid W-2D 'Switch(16*2)_Switch(16)@250,250GB/s' 16x2x16 tp=0,dp=1+2
hybrid Conv-3D "$conv3" 16x8x4 tp=0,dp=1+2
conventional Conv-3D "$w350" W-1D-350 "$conv3"
hybrid Conv-4D "$conv4" 2x8x8x4 tp=0+1,dp=2+3
conventional Conv-4D "$w600" W-1D-600 "$conv4"

model T-1T msft-1t 8 128 4
hybrid W-1D-350 'Switch(128*4)@350GB/s' 128x4 tp=0,dp=1
w350=$base_exposed
trend "$name: W-1D gains nothing from Themis" "$themis / $base in 0.999..1.001" \
    "$themis / $base < 1.001 && $themis / $base > 0.999"
hybrid W-1D-500 'Switch(128*4)@500GB/s' 128x4 tp=0,dp=1
hybrid W-1D-600 'Switch(128*4)@600GB/s' 128x4 tp=0,dp=1
w600=$base_exposed
hybrid W-2D 'Switch(32)_Switch(4*4)@250,250GB/s' 32x4x4 tp=0+1,dp=2
hybrid Conv-3D "$conv3" 16x8x4 tp=0+1,dp=2
conventional Conv-3D "$w350" W-1D-350 "$conv3"
hybrid Conv-4D "$conv4" 2x8x8x4 tp=0+1+2,dp=3
conventional Conv-4D "$w600" W-1D-600 "$conv4"

# closed NAME BYTES FROM SIZES BANDWIDTHS [Themis|REASON]: an all-reduce on the dimensions from number FROM on, of 512 NPUs in all,
# against closed forms without latency. An NPU sends 2 S (n - 1) / n in a dimension of n, and a part of 1 / n of S in the
# next ones: the slowest dimension determines the baseline, and the sum of the bandwidths the time with Themis.
closed() {
    network=$(awk -v sizes="$4" -v bandwidths="$5" -v from="$3" 'BEGIN {
        n = split(sizes, size, ","); split(bandwidths, bandwidth, ",")
        all = 512; for (i = 1; i <= n; i++) all /= size[i]
        if (from > 0) { name = "Switch(" all ")_"; rate = bandwidth[1] "," }
        for (i = 1; i <= n; i++) { name = name "Switch(" size[i] ")_"; rate = rate bandwidth[i] "," }
        if (from == 0 && all > 1) { name = name "Switch(" all ")_"; rate = rate bandwidth[1] "," }
        print substr(name, 1, length(name) - 1) "@" substr(rate, 1, length(rate) - 1) "GB/s" }')
    set -- "$1" "$2" "$(awk -v from="$3" -v sizes="$4" 'BEGIN {
        n = split(sizes, size, ","); for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", from + i }')" "$4" "$5" "${6-}" \
        "$(awk -v bytes="$2" -v sizes="$4" -v bandwidths="$5" 'BEGIN {
            n = split(sizes, size, ","); split(bandwidths, bandwidth, ",")
            left = bytes; product = 1
            for (i = 1; i <= n; i++) {
                t = 2 * left * (size[i] - 1) / size[i] / bandwidth[i]
                if (t > most) most = t
                left /= size[i]; product *= size[i]; sum += bandwidth[i]
            }
            scale = 1e6 / 2 ^ 30
            printf "%.1f %.1f", most * scale, 2 * bytes * (product - 1) / product / sum * scale }')"
    tracegen -q collective --type allreduce --size "$2" --ranks 512 --dims "$3" -o "$work/c.parquet"
    run "$network" baseline256 c
    within 2 "$1, baseline (us)" "${7% *}" "$us"
    [ -n "$6" ] || return 0
    run "$network" themis256 c
    if [ "$6" = Themis ]; then
        within 2 "$1, Themis (us)" "${7#* }" "$us"
    else
        differs "$1, Themis (us)" "${7#* }" "$us" "$6"
    fi
}
mp=805306368 gpt=452984832 t1t=226492416
closed 'GPT-3, Conv-3D: all-reduce of MP' $mp 0 16 200
closed 'GPT-3, Conv-3D: all-reduce of DP' $gpt 1 8,4 100,50 Themis
closed 'GPT-3, Conv-4D: all-reduce of MP' $mp 0 2,8 250,200 \
    'a chunk begins in the dimension of the least load, which is always the first here, as in the baseline'
closed 'GPT-3, W-1D-350: all-reduce of MP' $mp 0 16 350
closed 'GPT-3, W-1D-350: all-reduce of DP' $gpt 1 32 350
closed 'T-1T, Conv-3D: all-reduce of MP' $mp 0 16,8 200,100 Themis
closed 'T-1T, Conv-3D: all-reduce of DP' $t1t 1 4 50
closed 'T-1T, Conv-4D: all-reduce of MP' $mp 0 2,8,8 250,200,100 Themis
closed 'T-1T, W-1D-350: all-reduce of MP' $mp 0 128 350
closed 'T-1T, W-1D-350: all-reduce of DP' $t1t 1 4 350
note "Table II has 1024 NPUs for GPT-3 and T-1T, Table I has 512: data parallelism is halved. Both have $depth \
here, without embedding and output layer, at 234 TFLOPS per NPU, which memory does not limit, and 256 chunks per \
collective unless a row states another number. All-reduces and DLRM have 64. The published values of the last rows are closed forms without latency, of the all-reduces \
of model parallelism (MP), and of the gradients of two layers (DP), with 256 chunks. Every dimension is a switch with the bandwidth per NPU of the table: the algorithms of \
rings and cliques do not use all links at once. Those of the rows with cycles of ASTRA-sim are rings and cliques with the \
table's bandwidth per link. DLRM: whatever the order of the dimensions, each of the two alltoalls sends the same bytes in \
each of them, which takes 20 us at 50 GB/s. On a wafer an alltoall takes no time in this model, because an NPU sends to \
all others at once, each at the full bandwidth. Even with both limited by the bandwidth per NPU, and all dimensions busy \
all the time, a step would take 632 us on W-1D-350 and 667 us on Conv-3D."
picture bars "$work/t.csv"
finish
