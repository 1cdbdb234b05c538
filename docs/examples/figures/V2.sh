#!/bin/sh
# Figure 2 of the extended VEF paper (Andujar et al., J. Supercomputing 2023): FLOWS on a switch with input queues. The
# published size has 2,000,000 flows, 2.2e12 bytes: full runs one seed of it, which takes about one hour of processor time
# for each variant and 2.5 hours for perc, at 32 million flits per second; and 30 seeds of 20,000 flows. medium has 5,000
# flows; small also divides the size of long flows by 20. A started script continues with the first run that has not
# finished.
folder=$(dirname "$0")
. "$folder/lib.sh"
. "$folder/vef.sh"
figure V2 'VEF, Figure 2: FLOWS on a switch' "$@"

long=min=1MiB,max=10MiB
case $size in
small) flows=2000 time=200us long=min=51KiB,max=512KiB ;;
medium) flows=5000 time=500us ;;
full) flows=20000 time=2ms ;;
esac
# traffic TASKS PERCENT DESTINATION [FLAG...]: PERCENT of the flows are long and have that destination.
traffic() {
    tasks=$1 percent=$2 destination=$3
    shift 3
    tracegen flows -q --messages "$flows" --time "$time" --tasks "$tasks" \
        --class "min=1KiB,max=10KiB,percent=$((100 - percent)),destination=uniform" \
        --class "$long,percent=$percent,destination=$destination" "$@"
}
keep "$id" "$0" "$folder/vef.sh"
begin_picture
variant ref 8 traffic 128 20 uniform
variant task256 16 traffic 256 20 uniform
variant gauss 8 traffic 128 20 gauss
variant perc 8 traffic 128 50 uniform

cycles=$(awk -v t="${time%[um]s}" -v u="${time#"${time%[um]s}"}" 'BEGIN { print t * (u == "us" ? 1e3 : 1e6) }')
trend ref 'saturated: time over twice that of the arrivals' "$ref_t > 2 * $cycles"
trend ref 'throughput at the limit of head-of-line blocking' "$ref_x > 0.4 && $ref_x < 0.65"
trend task256 'faster' "$task256_t < 0.75 * $ref_t"
trend task256 'throughput lower, latencies within 10 %' "$task256_x < $ref_x && $task256_e < 1.1 * $ref_e && \
$task256_e > 0.9 * $ref_e && $task256_n < 1.1 * $ref_n && $task256_n > 0.9 * $ref_n"
trend gauss 'slower and worse' "$gauss_t > 1.5 * $ref_t && $gauss_x < 0.7 * $ref_x && $gauss_e > 1.3 * $ref_e && \
$gauss_n > 1.3 * $ref_n"
if [ "$size" = small ]; then
    trend perc 'time more than doubles' "$perc_t > 2 * $ref_t"
else
    within 10 'perc: time, as a part of ref' 2.493 "$(ratio "$perc_t" "$ref_t")"
fi
trend perc 'latencies and throughput within 10 %' "$perc_e < 1.1 * $ref_e && $perc_e > 0.9 * $ref_e && \
$perc_n < 1.1 * $ref_n && $perc_n > 0.9 * $ref_n && $perc_x < 1.1 * $ref_x && $perc_x > 0.9 * $ref_x"
if [ "$size" = full ]; then
    flows=2000000 time=200ms seeds=1
    variant published_ref 8 traffic 128 20 uniform
    variant published_task256 16 traffic 256 20 uniform
    variant published_gauss 8 traffic 128 20 gauss
    variant published_perc 8 traffic 128 50 uniform
    trend 'published size: task256' 'faster' "$published_task256_t < 0.75 * $published_ref_t"
    trend 'published size: gauss' 'slower' "$published_gauss_t > 1.5 * $published_ref_t"
    within 10 'published size: perc, time as a part of ref' 2.493 "$(ratio "$published_perc_t" "$published_ref_t")"
fi
picture bars "$work/t.csv"
finish
