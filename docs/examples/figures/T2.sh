#!/bin/sh
# Figure 2 of the TrafPy paper on vectorised packing (Parsonson et al., OFC 2023): node matrices of 8 to 1,024 nodes in
# four racks, of which a fifth of the nodes asks for 55 % of the load and 70 % of the load leaves its rack. Published are
# the picture and these shares.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure T2 'TrafPy: node matrices of 8 to 1,024 nodes' "$@"

# Each matrix gives: its sum, the largest cell from a node to itself, the largest difference between both directions of a
# pair, the share between racks, that of the busiest fifth of the nodes at either end, and the load of the busiest port.
for nodes in 8 16 32 64 128 256 512 1024; do
    tracegen matrix -q --preset university --racks 4 --ranks "$nodes" --load 0.5 --auto-correct --matrix-only \
        -o "$work/$nodes.csv"
    awk -F, -v n="$nodes" '
        function off(a, b) { return a > b ? a - b : b - a }
        /^racks/ { next }
        {
            i++
            for (j = 1; j <= n; j++) {
                sum += $j; node[i] += $j; port[i] += $j; node[j] += $j
                if (int((i - 1) * 4 / n) != int((j - 1) * 4 / n)) between += $j
                if (i == j && $j > self) self = $j
                cell[i, j] = $j
                if (j < i && off(cell[j, i], $j) > uneven) uneven = off(cell[j, i], $j)
            }
        }
        END {
            for (k = 0; k < 0.2 * n; k++) {
                most = 0
                for (i = 1; i <= n; i++) if (!(i in busy) && (!most || node[i] > node[most])) most = i
                busy[most] = 1
            }
            for (i in busy) both += node[i]
            for (i in busy) for (j in busy) both -= cell[i, j]
            for (i = 1; i <= n; i++) if (port[i] > full) full = port[i]
            printf "%.12f %.3g %.3g %.9f %.4f %.4f\n", sum, self, uneven, between, both, full * n * 0.5 / 2
        }' "$work/$nodes.csv" >"$work/shares"
    read -r sum self uneven between both full <"$work/shares"
    trend "$nodes nodes, sum" "$sum is 1, by 1e-9" "$sum > 1 - 1e-9 && $sum < 1 + 1e-9"
    trend "$nodes nodes, a node to itself" "$self is 0" "$self == 0"
    trend "$nodes nodes, both directions of pairs" "differ by $uneven" "$uneven == 0"
    trend "$nodes nodes, between racks" "$between is 0.7, by 1e-6" "$between > 0.699999 && $between < 0.700001"
    trend "$nodes nodes, busiest fifth" "$both of the load, 0.55 by 0.02" "$both > 0.53 && $both < 0.57"
    trend "$nodes nodes, busiest port" "$full of its capacity, at most 1" "$full <= 1"
done
(cd "$work" && tracecat --plot "matrix=T2.svg" --plot-title "$title" --plot-size 40cm:20cm \
    8.csv 16.csv 32.csv 64.csv 128.csv 256.csv 512.csv 1024.csv)
mv "$work/T2.svg" "$out/$id.svg"
finish
