#!/bin/sh
# Figure 3 of the extended VEF paper (Andujar et al., J. Supercomputing 2023): HOROVOD on a switch of 7 ports with 14 cores
# each. The captured AlexNet trace is not published: tracegen horovod --model alexnet stands in for it. Allreduces are rings;
# the last rows show other algorithms, with which latencies rise less.
folder=$(dirname "$0")
. "$folder/lib.sh"
. "$folder/vef.sh"
figure V3 'VEF, Figure 3: HOROVOD on a switch' "$@"

case $size in
small) part=100 layers=2 ;;
medium) part=10 layers=2 ;;
full) part=1 layers=2 ;;
esac
# horovod ALGORITHM COMPUTE_US LOOP_US KIB [FLAG...]: times and sizes are divided by part.
horovod() {
    algorithm=$1 compute=$2 loop=$3 kib=$4
    shift 4
    tracegen horovod -q --ranks 98 --batches 1 --layers "$layers" --compute "$((compute * 1000 / part))ns" \
        --negotiation-loop "$((loop * 1000 / part))ns" --allreduce-bytes "$((kib * 1024 / part))" \
        --lower "allreduce=$algorithm" "$@"
}
# alexnet [FLAG...]: one batch of the stand-in, divided by part.
alexnet() {
    tracegen horovod -q --model alexnet --batches 1 --compute "$((20000000 / part))ns" \
        --negotiation-loop "$((1400000 / part))ns" --layer "0:allreduce-bytes=$((16388000 / part))" \
        --layer "1:allreduce-bytes=$((67125248 / part))" --layer "2:allreduce-bytes=$((151011328 / part))" \
        --layer "3:allreduce-bytes=$((9336320 / part))" --lower allreduce=ring "$@"
}
keep "$id" "$0" "$folder/vef.sh"
begin_picture
variant ref 7 horovod ring 20000 1400 51200
variant allreduce 7 horovod ring 20000 1400 102400
variant compute 7 horovod ring 2000 1400 51200
variant loop 7 horovod ring 20000 700 51200
variant alexnet 7 alexnet

tracegen horovod -q --model alexnet --lower allreduce=ring -o "$work/alexnet.parquet"
within 5 'bytes of alexnet (stand-in, not the capture)' 249e9 \
    "$(tracecat --stats --json "$work/alexnet.parquet" | sed -n 's/.*"sent_bytes": *\([0-9]*\).*/\1/p' | head -n 1)"
trend allreduce 'time, latencies and throughput up' \
    "$allreduce_t > $ref_t && $allreduce_e > 1.01 * $ref_e && $allreduce_n > $ref_n && $allreduce_x > $ref_x" \
    'latencies rise by less than 1 % if allreduces are larger than 1 MiB'
trend compute 'slightly faster' "$compute_t <= $ref_t && $ref_t - $compute_t < $ref_t - $loop_t"
trend compute 'latencies not lower by 2 %' "$compute_e > 0.98 * $ref_e && $compute_n > 0.98 * $ref_n"
trend loop 'time near one half' "$loop_t > 0.5 * $ref_t && $loop_t < 0.65 * $ref_t"
trend loop 'throughput doubled' "$loop_x > 1.6 * $ref_x && $loop_x < 2.05 * $ref_x"
trend loop 'latencies within 5 %' \
    "$loop_e < 1.05 * $ref_e && $loop_e > 0.95 * $ref_e && $loop_n < 1.05 * $ref_n && $loop_n > 0.95 * $ref_n"
trend loop 'throughput near that of allreduce' "$loop_x < 1.25 * $allreduce_x && $loop_x > 0.75 * $allreduce_x"
# Runs of algorithms other than the ring: rises of latencies when allreduces are doubled.
for algorithm in recdoubling rabenseifner; do
    measured "ref_$algorithm" 7 horovod "$algorithm" 20000 1400 51200
    measured "allreduce_$algorithm" 7 horovod "$algorithm" 20000 1400 102400
    for latency in e:latency n:'network latency'; do
        eval "r=\$(ratio \"\$allreduce_${algorithm}_${latency%%:*}\" \"\$ref_${algorithm}_${latency%%:*}\")"
        shown "$algorithm: ${latency#*:} of allreduce by ref" "$r"
    done
done
picture bars "$work/t.csv"
finish
