#!/bin/sh
# Validation of ASTRA-sim 2.0 (Won et al., ISPASS 2023): all-reduces on 4 and 16 V100 in a ring with NVLink at 150 GB/s. The
# paper reports a mean error of 5 % against NCCL 2.4.6 and has the measured times only in a picture, so the column
# "published" has closed forms without latency: the bus bandwidth is that of the link, and the time grows in proportion to
# the size.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure SV 'ASTRA-sim 2.0: all-reduces on rings of 4 and 16 GPUs' "$@"

cat >"$work/s.json" <<'END'
{"all-reduce-implementation": ["ring"], "collective-optimization": "baseline", "preferred-dataset-splits": 1,
 "endpoint-delay": 10, "local-mem-bw": 0}
END
echo 'size (MiB),GPUs,bus bandwidth (GiB/s)' >"$work/t.csv"
for n in 4 16; do
    small=
    for mib in 64 128 256 512 768 1024 1536; do
        ps=$(tracegen -q collective --type allreduce --size "${mib}MiB" --ranks "$n" |
            simulate -q --backend analytical --network "Ring($n)@150GB/s,500ns" --system "$work/s.json" --json |
            field makespan_ps)
        bus=$(awk -v ps="$ps" -v mib="$mib" -v n="$n" 'BEGIN { printf "%.6g", 2 * (n - 1) / n * mib / 1024 / (ps / 1e12) }')
        within 2 "$n GPUs, $mib MiB: bus bandwidth (GiB/s)" 150 "$bus"
        printf '%s,%s GPUs,%s\n' "$mib" "$n" "$bus" >>"$work/t.csv"
        small=${small:-$ps}
    done
    growth=$(awk -v a="$ps" -v b="$small" 'BEGIN { printf "%.6g", a / b }')
    if [ "$n" = 4 ]; then
        within 1 "$n GPUs: time of 1536 MiB / 64 MiB" 24 "$growth"
    else
        differs "$n GPUs: time of 1536 MiB / 64 MiB" 24 "$growth" '30 messages of 510 ns are 2 % of the smaller time'
    fi
    within 1 "$n GPUs: algorithm bandwidth (GiB/s)" "$((150 * n / (2 * (n - 1))))" \
        "$(awk -v ps="$ps" 'BEGIN { printf "%.6g", 1.5 / (ps / 1e12) }')"
done
note "Not reproducible: the mean error of 5 % against NCCL, because the measured times are only in a picture. The column \
published has closed forms: the bandwidth of the link, 24 times the size, and 150 n / (2 (n - 1)) GiB/s."
picture lines "$work/t.csv"
finish
