#!/bin/sh
# Figure 4 of the Graph500 traffic model (Fuentes et al.): mean of the edges explored in each level by degree of the root,
# measured on a Kronecker graph of scale 17, with the model's curves of levels 1 to 3.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure G4 'Graph500, Figure 4: edges explored by level and degree of the root' "$@"

roots=all
[ "$size" != small ] || roots=per-degree:200
tracegen graph500 -q --measure --scale 17 --edge-factor 16 --roots "$roots" --csv >"$work/l.csv"
ends=$(tracegen graph500 -q --measure --scale 17 --edge-factor 16 --roots 1 --json | sed -n 's/.*"ends": \([0-9]*\).*/\1/p')

# The sum over levels, and the level with most edges, for each range of degrees.
awk -F, -v ends="$ends" '
    NR > 1 { key = $1 "-" $2; from[key] = $1; to[key] = $2; sum[key] += $6; if ($6 > most[key]) { most[key] = $6; level[key] = $5 } }
    END {
        for (k in sum) {
            off = sum[k] / ends - 1
            if (off < 0) off = -off
            if (off > worst) worst = off
            if (from[k] >= 2 && from[k] <= 4 && level[k] != 2) small++
            if (from[k] >= 5 && to[k] <= 5000 && level[k] != 2) other++
        }
        printf "worst=%.3g small=%d other=%d\n", 100 * worst, small, other
    }' "$work/l.csv" >"$work/found"
eval "$(cat "$work/found")"
trend 'all edges are explored' "sums over levels within $worst % of all ends" "$worst < 1"
trend 'level 2 dominates, degrees 5 to 5,000' "$other ranges with another level" "$other == 0" \
    'small searches from a sample of the roots'
trend 'level 2 dominates, degrees 2 to 4' "$small ranges with another level" "$small == 0" \
    'level 3 has more edges than level 2 from such roots'
awk -F, '
    BEGIN { print "degree of the root,,edges,low,high" }
    NR > 1 && $5 >= 1 && $5 <= 4 && $6 > 0 { print $4 ",level " $5 "," $6 ",," }' "$work/l.csv" >"$work/t.csv"
tracegen graph500 --print-model --scale 17 --edge-factor 16 --degrees 1-40000 --csv |
    awk -F, '$2 >= 1 && $2 <= 3 && $5 > 0 { print $1 ",model level " $2 "," $5 ",," }' >>"$work/t.csv"
awk -F, 'NR > 1 && $5 == 2 && $1 == 16 { printf "mean=%s\n", $6 }' "$work/l.csv" >"$work/found"
eval "$(cat "$work/found")"
shown 'level 2, degrees from 16: mean' "$mean"
picture lines "$work/t.csv" --plot-log xy
finish
