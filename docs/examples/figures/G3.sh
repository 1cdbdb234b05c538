#!/bin/sh
# Figure 3 of the Graph500 traffic model (Fuentes et al.): histograms of the edges explored in level 2, by degree of the
# root. medium and full search from all roots, as the paper does.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure G3 'Graph500, Figure 3: edges explored in level 2, by degree of the root' "$@"

roots=all
[ "$size" != small ] || roots=per-degree:200
# histogram NAME RANGE: sets NAME to the mean and NAME_peaks to the number of peaks above a tenth of the highest bin.
echo 'edges,degree of the root,roots (%)' >"$work/t.csv"
histogram() {
    tracegen graph500 -q --measure --scale 17 --edge-factor 16 --roots "$roots" --table bins --level 2 --degrees "$2" \
        --csv >"$work/b.csv"
    eval "$1=$(awk -F, 'NR > 1 { n += $3; sum += $3 * ($1 + $2) / 2 } END { printf "%.0f", sum / n }' "$work/b.csv")"
    eval "$1_peaks=$(awk -F, '
        NR > 1 { n[++bins] = $3 }
        END {
            for (i = 1; i <= bins; i++) { # means of three bins
                m[i] = (n[i - 1] + n[i] + n[i + 1]) / 3
                if (m[i] > most) most = m[i]
            }
            for (i = 1; i <= bins; i++)
                if (m[i] > most / 10 && m[i] >= m[i - 1] && m[i] > m[i + 1]) peaks++
            print peaks + 0
        }' "$work/b.csv")"
    awk -F, -v of="$2" 'NR > 1 { n += $3; at[NR] = $1; roots[NR] = $3 }
        END { for (i = 2; i <= NR; i++) print at[i] "," of "," 100 * roots[i] / n }' "$work/b.csv" |
        sed 's/,1-2147483647,/,all,/' >>"$work/t.csv"
}
histogram all 1-2147483647
histogram one 1-1
histogram ten 10-20
histogram large 10000-100000
shown 'mean, degree 1' "$one"
shown 'mean, degrees 10 to 20' "$ten"
shown 'mean, degrees from 10,000' "$large"
trend 'degree 1 below 10 to 20' "$one < $ten" "$one < $ten"
trend 'degrees from 10,000 below 10 to 20' "$large < $ten" "$large < $ten"
trend 'several peaks for all degrees' "$all_peaks peaks" "$all_peaks > 1"
trend 'one peak for degree 1' "$one_peaks peaks" "$one_peaks == 1" \
    'the neighbor of such a root has one of several typical degrees, those of vertices with equally many ones in their number'
trend 'one peak for degrees 10 to 20' "$ten_peaks peaks" "$ten_peaks == 1" \
    'roots adjacent to the vertex of the largest degree have a peak of their own, at 3.4 million; the others have one at 2.9 million'
picture lines "$work/t.csv"
finish
