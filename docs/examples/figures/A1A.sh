#!/bin/sh
# Figure 1 A of ATLAHS (Shen et al., SC 2025): a training step with data and pipeline parallelism. All-reduces of gradients
# overlap with messages between pipeline stages on the same ranks.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure A1A 'ATLAHS, Figure 1 A: all-reduces beside pipeline messages' "$@"

case $size in
small) layers=8 batches=4 ;;
medium) layers=16 batches=8 ;;
full) layers=32 batches=8 ;;
esac
tracegen -q llm --preset llama-7b --layers $layers --pp 4 --dp 4 --micro-batches $batches --concurrent-collectives \
    --peak-flops 312TFLOPS --mem-bw 2TB/s -o "$work/llm.parquet"
simulate -q --params ai --timeline "$work/a.json" "$work/llm.parquet" >"$work/result"
simulate -q --params ai --timeline "$work/pipeline.json" --timeline-ranks 0,4,8,12 "$work/llm.parquet" >"$work/result"

# The longest overlap of an all-reduce and a pipeline message of each rank, in us.
awk '
    function number(name) { match($0, "\"" name "\":[-0-9.e+]*"); return substr($0, RSTART + length(name) + 3) + 0 }
    function text(name, s) { match($0, "\"" name "\":\"[^\"]*\""); s = substr($0, RSTART, RLENGTH - 1); sub(/.*:"/, "", s); return s }
    /"cat":"collective"/ {
        r = number("pid"); k = ++sums[r]
        from[r, k] = number("ts"); to[r, k] = from[r, k] + number("dur"); what[r, k] = text("name")
    }
    /"cat":"message"/ && /"ph":"X"/ && /"name":"(activations|gradients)"/ {
        r = number("pid"); k = ++sent[r]
        start[r, k] = number("ts"); end[r, k] = start[r, k] + number("dur"); name[r, k] = text("name")
    }
    END {
        for (r = 0; r < 16; r++) {
            best = 0
            for (i = 1; i <= sums[r]; i++)
                for (k = 1; k <= sent[r]; k++) {
                    a = from[r, i] > start[r, k] ? from[r, i] : start[r, k]
                    b = to[r, i] < end[r, k] ? to[r, i] : end[r, k]
                    if (b - a > best) {
                        best = b - a
                        line = sprintf("%d;%s %.1f..%.1f;%s %.1f..%.1f;%.1f", r, what[r, i], from[r, i], to[r, i], name[r, k],
                            start[r, k], end[r, k], best)
                    }
                }
            if (best > 0) print line
        }
    }' "$work/a.json" >"$work/overlaps"
while IFS=';' read -r rank sum message length; do
    shown "rank $rank: $sum us beside $message us (us)" "$length"
done <"$work/overlaps"
ranks=$(awk 'END { print NR }' "$work/overlaps")
trend 'all-reduces beside pipeline messages' "on $ranks of 16 ranks" "$ranks >= 1"
tracecat --plot "timeline=$out/$id.svg" --min-bytes 16MiB --plot-title "$title" "$work/pipeline.json"
note "The picture shows one of the four pipelines, with an arrow for each message between its stages."
finish
