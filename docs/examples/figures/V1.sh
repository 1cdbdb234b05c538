#!/bin/sh
# Figure 1 of the extended VEF paper (Andujar et al., J. Supercomputing 2023): DCNW traffic on a switch with input queues.
folder=$(dirname "$0")
. "$folder/lib.sh"
. "$folder/vef.sh"
figure V1 'VEF, Figure 1: DCNW on a switch' "$@"

case $size in
small) messages=5000 ;;
medium) messages=100000 ;;
full) messages=2000000 ;;
esac
dcnw() { tracegen dcnw -q --messages "$messages" "$@"; }
keep "$id" "$0" "$folder/vef.sh"
begin_picture
variant ref 8 dcnw --load 1 --destination uniform
variant task256 16 dcnw --load 1 --destination uniform --tasks 256
variant gauss 8 dcnw --load 1 --destination gauss
variant load 8 dcnw --load 0.5 --destination uniform

trend task256 'time near one half' "$task256_t < 0.65 * $ref_t && $task256_t > 0.45 * $ref_t"
trend task256 'latencies up, by less than 30 %' \
    "$task256_n >= $ref_n && $task256_n < 1.3 * $ref_n && $task256_e >= $ref_e && $task256_e < 1.3 * $ref_e"
trend task256 'throughput lower, by less than 5 %' "$task256_x <= $ref_x && $task256_x > 0.95 * $ref_x" \
    'messages between tasks of a host do not count, and 256 tasks have fewer of them'
few=
[ "$size" != small ] || few='5,000 messages end at different times'
trend 'task256, with messages within hosts' "throughput lower, by less than 5 %: $task256_y <= $ref_y" \
    "$task256_y <= $ref_y && $task256_y > 0.95 * $ref_y" ${few:+"$few"}
trend gauss 'time up' "$gauss_t >= $ref_t"
trend gauss 'latencies up' "$gauss_n > 1.2 * $ref_n && $gauss_e > 1.1 * $ref_e"
trend load 'twice as long' "$load_t > 1.8 * $ref_t && $load_t < 2.1 * $ref_t"
trend load 'latencies well down' "$load_n < 0.85 * $ref_n && $load_e < 0.9 * $ref_e"
trend gauss 'throughput down' "$gauss_x < $ref_x" \
    'messages between tasks of a host do not count, and Gaussian destinations have fewer of them'
trend 'gauss, with messages within hosts' "throughput down: $gauss_y < $ref_y" "$gauss_y < $ref_y"
note 'The published throughput is slightly lower with 256 tasks and with Gaussian destinations. That holds if messages between tasks of a host count, which do not cross the switch; for those that cross it, throughput rises with their part: 15 of 127 destinations are on the same host with 128 tasks, 15 of 255 with 256.'
picture bars "$work/t.csv"
finish
