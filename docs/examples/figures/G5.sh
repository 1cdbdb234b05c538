#!/bin/sh
# Figure 5 of the Graph500 traffic model (Fuentes et al.): standard deviation of the edges explored in each level by degree
# of the root, measured on a Kronecker graph of scale 17, and by the model. medium and full search from all roots.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure G5 'Graph500, Figure 5: deviation of explored edges by level and degree of the root' "$@"

roots=all
[ "$size" != small ] || roots=per-degree:200
tracegen graph500 -q --measure --scale 17 --edge-factor 16 --roots "$roots" --csv >"$work/l.csv"
echo 'degree of the root,,standard deviation' >"$work/t.csv"
# A deviation needs some roots.
awk -F, '
    NR > 1 && $5 >= 1 && $5 <= 3 && $3 >= 30 {
        if ($7 > 0) print $4 ",measured level " $5 "," $7
    }' "$work/l.csv" >>"$work/t.csv"
tracegen graph500 --print-model --scale 17 --edge-factor 16 --degrees 1-40000 --csv |
    awk -F, '$2 >= 1 && $2 <= 3 { print $1 ",model level " $2 "," $4 }' >>"$work/t.csv"
# deviation DEGREE LEVEL: sets sd and model to the deviations from the roots of a degree.
deviation() {
    eval "$(awk -F, -v d="$1" -v l="$2" 'NR > 1 && $1 == d && $5 == l { printf "sd=%.6g model=%.6g\n", $7, $9; exit }' "$work/l.csv")"
}
for level in 1 2 3; do
    for degree in 1 8; do
        deviation "$degree" "$level"
        shown "level $level, degree $degree: measured" "$sd"
        shown "level $level, degree $degree: model" "$model"
        eval "sd_${degree}_$level=$sd"
    done
done
trend 'level 1: rises with the degree' "$sd_8_1 > $sd_1_1" "$sd_8_1 > $sd_1_1"
trend 'level 2: falls with the degree' "$sd_8_2 < $sd_1_2" "$sd_8_2 < $sd_1_2"
trend 'level 3: falls with the degree' "$sd_8_3 < $sd_1_3" "$sd_8_3 < $sd_1_3"
# Medians of the relative errors of levels 1 and 2 over degrees with at least 30 roots.
for level in 1 2; do
    error=$(awk -F, -v l="$level" 'NR > 1 && $5 == l && $3 >= 30 && $7 > 0 { e = $9 / $7 - 1; print e < 0 ? -e : e }' "$work/l.csv" |
        sort -g | awk '{ e[NR] = $1 } END { printf "%.1f", 100 * (e[int((NR + 1) / 2)] + e[int(NR / 2) + 1]) / 2 }')
    trend "level $level: model" "median error $error % < 35 %" "$error < 35" \
        'measured deviations rise again near degrees 118 to 135, where equation 16 falls steadily; duplicate edges, ranges of degrees and the sample of roots are not the cause'
done
picture lines "$work/t.csv" --plot-log xy
finish
