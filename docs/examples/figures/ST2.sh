#!/bin/sh
# Table II of ASTRA-sim 2.0 (Won et al., ISPASS 2023): parameters of the models, and ranks per parallelism.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure ST2 'ASTRA-sim 2.0, Table II: parameters and parallelism of the models' "$@"

echo 'model,,parameters' >"$work/t.csv"
# model NAME PUBLISHED GENERATOR FLAGS...: parameters in 10^6, of the title of a small trace.
model() {
    name=$1 published=$2
    shift 2
    tracegen -q "$@" -o "$work/t.parquet"
    title=$(tracecat -q "$work/t.parquet" | sed -n 's/^title *//p')
    here=$(echo "$title" | awk '{
        for (i = 1; i < NF; i++) if ($(i + 1) == "million") print $i; else if ($(i + 1) == "billion") print $i * 1000
    }')
    within 1 "$name: parameters (million)" "$published" "$here"
    echo "$name,,$(awk -v m="$here" 'BEGIN { printf "%.0f\n", m * 1e6 }')" >>"$work/t.csv"
    ranks=$(tracecat -q "$work/t.parquet" | sed -n 's/^ranks *//p')
    exact "$name: NPUs of model and data parallelism" 1024 "$ranks"
}
model 'DLRM (MLPs)' 57 dlrm
model GPT-3 175000 llm --preset gpt3-175b --tp 16 --dp 64
model T-1T 1000000 llm --preset transformer-1t --tp 128 --dp 8
shown 'T-1T of the authors, msft-1t (million)' \
    "$(tracegen -q llm --preset msft-1t --dp 1 | tracecat -q | sed -n 's/^title .* of \([0-9.]*\) billion.*/\1/p' |
        awk '{ print $1 * 1000 }')"
note "GPT-3 has model parallelism of 16 and data \
parallelism of 64, T-1T 128 and 8, DLRM 1024 of both: its tables on all NPUs, and replicas of its MLPs."
picture bars "$work/t.csv" --plot-log y
finish
