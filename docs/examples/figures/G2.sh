#!/bin/sh
# Figure 2 of the Graph500 traffic model (Fuentes et al.): histogram of the degrees of a Kronecker graph, scale 17, 16 edges
# per vertex. The expected shares are sums over the distribution of Kronecker edges; the plot has no numbers.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure G2 'Graph500, Figure 2: degrees of a Kronecker graph of scale 17' "$@"

measure() { tracegen graph500 -q --measure --scale 17 --edge-factor 16 --roots 1 "$@"; }
measure --json >"$work/m.json"
measure --table degrees --csv >"$work/d.csv"
vertices=131072
isolated=$(awk -F, '$1 == "0" { print $2 }' "$work/d.csv")
within 1.6 'isolated vertices (%)' 31.2 "$(awk -v i="$isolated" -v v="$vertices" 'BEGIN { printf "%.2f", 100 * i / v }')"
within 2 'largest degree, duplicate edges kept' 39190 "$(tail -n 1 "$work/d.csv" | cut -d, -f 1)"
within 3 'largest degree, without duplicates' 15690 "$(measure --dedup --table degrees --csv | tail -n 1 | cut -d, -f 1)"
# Means of three neighbors from degree 1 to 40.
rises=$(awk -F, '
    $1 >= 1 && $1 <= 41 { n[$1] = $2 }
    END { for (d = 3; d <= 40; d++) if (n[d - 1] + n[d] + n[d + 1] > n[d - 2] + n[d - 1] + n[d]) rises++; print rises + 0 }' \
    "$work/d.csv")
trend 'counts fall from degree 1 to 40' "$rises rises" "$rises == 0" \
    'degrees of Kronecker graphs oscillate: further maxima are near 12 and 39'
awk -F, 'BEGIN { print "degree,,vertices" } $1 >= 1 && $1 <= 200 { print $1 ",," $2 }' "$work/d.csv" >"$work/t.csv"
picture lines "$work/t.csv" --plot-log y
finish
