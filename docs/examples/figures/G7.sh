#!/bin/sh
# Figure 7 of the Graph500 traffic model (Fuentes et al.): edges explored in levels 1 and 2 by degree of the root, measured
# and by the model. The paper has a graph of scale 22; small has scale 14.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure G7 'Graph500, Figure 7: model against measured' "$@"

scale=22
[ "$size" != small ] || scale=14
measure() { tracegen graph500 -q --measure --scale "$scale" --edge-factor 16 --roots per-degree:200 "$@"; }
measure --json >"$work/m.json"
# error LEVEL NAME: prints a relative error in percent, over the ranges of degrees.
error() {
    awk -v level="\"level\": \"$1\"," -v name="\"$2\":" '
        index($0, "\"model_errors\"") { inside = 1 }
        inside && index($0, level) { here = 1 }
        here && index($0, name) { sub(/,$/, "", $2); printf "%.1f\n", 100 * $2; exit }' "$work/m.json"
}
share=$(error 1 share_below_18_percent)
reason='published for exact degrees; here ranges of degrees, and equation 7 of the reference program'
trend 'level 1: error below 18 % in over 90 % of cases' "$share % of the ranges" "$share > 90" "$reason"
mean=$(error 2 mean)
trend 'level 2: mean error 12.5 %' "$mean %" "$mean <= 12.5" "$reason"
median=$(error 1 median)
trend 'level 1: median error within 35 %' "$median %" "$median < 35" "$reason"
median=$(error 2 median)
trend 'level 2: median error within 35 %' "$median %" "$median < 35" "$reason"
measure --csv | awk -F, '
    BEGIN { print "degree of the root,,edges" }
    NR > 1 && ($5 == 1 || $5 == 2) && $6 > 0 { print $4 ",measured level " $5 "," $6; print $4 ",model level " $5 "," $8 }' \
    >"$work/t.csv"
picture lines "$work/t.csv" --plot-log xy
finish
