#!/bin/sh
# Figure 10 of ATLAHS (Shen et al., SC 2025): measured and predicted times of MPI applications.
#
# The measured runs are not public, so the figure itself cannot be reproduced. The script shows the method on the MPI trace in
# testdata/mpi, a sample that was made, not measured: it compares the recorded times of the ranks with the
# predictions by messages and by packets.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure A10 'ATLAHS, Figure 10: recorded and predicted times of MPI applications (method)' "$@"

recorded=$folder/../../../testdata/mpi
echo 'simulation,time,makespan (us)' >"$work/t.csv"
# method NAME FLAGS...
method() {
    name=$1
    shift
    simulate -q --compare "$@" "$recorded" >"$work/result"
    set -- $(awk '
        function us(t) { return t ~ /ms$/ ? t * 1000 : t + 0 }
        $1 == "all" { printf "%.7g %.7g %s", us($2), us($3), $4 + 0 }' "$work/result")
    shown "$name: recorded (us)" "$1"
    shown "$name: predicted (us)" "$2"
    trend "$name: error $3 %, all below 5 % published" 'below 5 %' "$3 < 5 && $3 > -5"
    printf '%s,recorded,%s\n%s,predicted,%s\n' "$name" "$1" "$name" "$2" >>"$work/t.csv"
}
method messages --L 1us --o 500ns --g 0 --G 100Gbps
method packets --backend packet --o 500ns --topology leafspine:hosts=8,tor=2,spines=2,rate=100Gbps,latency=250ns
picture bars "$work/t.csv"
note "Not reproducible: the measured runs are not public. The script shows the method on a sample that was made, not \
measured."
finish
