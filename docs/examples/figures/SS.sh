#!/bin/sh
# Simulation speed of ASTRA-sim 2.0 (Won et al., ISPASS 2023): an all-reduce of 1 MiB on tori of 4x4x4 and 16x16x16 NPUs.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure SS 'ASTRA-sim 2.0: time to simulate an all-reduce of 1 MiB' "$@"

echo 'NPUs,simulator,time (s)' >"$work/t.csv"
# speed NPUS NETWORK PUBLISHED: the processor time of both programs, so that other load does not matter.
speed() {
    tracegen -q collective --type allreduce --size 1MiB --ranks "$1" -o "$work/t.parquet"
    seconds=$( (time -p simulate -q --backend analytical --network "$2@50GB/s,500ns" "$work/t.parquet" >/dev/null) 2>&1 |
        awk '$1 == "user" || $1 == "sys" { sum += $2 } END { print sum }')
    trend "$1 NPUs" "$seconds s, ASTRA-sim $3 s" "$seconds < $3"
    printf '%s,ASTRA-sim,%s\n%s,tracedag,%s\n' "$1" "$3" "$1" "$seconds" >>"$work/t.csv"
}
speed 64 'Ring(4)_Ring(4)_Ring(4)' 1.70
speed 4096 'Ring(16)_Ring(16)_Ring(16)' 3.14
note "The times of tracedag are processor times of one run, from reading the trace to the result, on the machine that \
made this page. The paper has 21.42 minutes for the smaller system on Garnet, which simulates packets."
picture bars "$work/t.csv"
finish
