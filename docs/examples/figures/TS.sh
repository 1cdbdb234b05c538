#!/bin/sh
# The campaign of TrafPy's benchmark (Parsonson et al., Optical Switching and Networking 46, 2022): completion times,
# throughput and accepted flows of four schedulers by load, in time slots. Published: means of five runs in the authors'
# notebook notebooks/benchmark_mean_summary_dataframes_plotbed.ipynb, for the traffic rack_sensitivity_02, and at load 0.9 for
# 04, 06 and 08, with more of the bytes within racks. The summary table of the repository is the first of the runs of 02. Network, slot and end of runs are those of the notebook and of
# trafpy/benchmarker/main_testbed_benchmark_data.py. A started script continues where the last one ended.
folder=$(dirname "$0")
. "$folder/lib.sh"
published_seeds=5 small_seeds=1
figure TS 'TrafPy: flow completion times of schedulers by load' "$@"

case $size in
small) loads='0.1 0.5 0.9' others= ;;
medium) loads='0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9' others='04 06 08' seeds=$(awk "BEGIN { print $seeds < 5 ? $seeds : 5 }") ;;
full) loads='0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9' others='04 06 08' ;;
esac
# run TRAFFIC LOAD SEED: prints, of each scheduler, the mean and 99th percentile of completion times in us, throughput and the share
# of accepted flows. Runs end two slots after the slot of the last arrival.
run() {
    tracegen matrix -q --preset "rack_sensitivity_$1" --ranks 64 --racks 4 --capacity 1250 --load "$2" --auto-correct \
        --min-duration 320ms --seed "$3" -o "$work/t.parquet"
    end=$(tracecat --stats --json "$work/t.parquet" | sed -n 's/.*"last_release_ps": *\([0-9]*\).*/\1/p' |
        awk '{ s = int($1 / 1e9); print s + ($1 > s * 1e9) + 1 }')
    for scheduler in ff fs random srpt; do
        simulate -q --backend slots --compat trafpy --topology leafspine:hosts=64,tor=16,spines=2,rate=5Gbps/40Gbps \
            --slot 1ms --packet-size 300 --scheduler "$scheduler" --end "${end}ms" --seed "$3" --json "$work/t.parquet" \
            >"$work/r.json"
        for name in mean_fct_ps p99_fct_ps throughput_frac flows_dropped; do
            field "$name" <"$work/r.json"
        done | awk 'NR < 3 { printf "%.1f,", $1 / 1e6 } NR == 3 { printf "%.4f,", $1 } NR == 4 { printf "%.4f,", 1 - $1 }'
    done
    echo
}
keep "$id" "$0"
# runs NAME TRAFFIC LOAD: runs all seeds.
runs() {
    for root in $(awk -v n="$seeds" 'BEGIN { for (i = 1; i <= n; i++) print i }'); do
        kept "$2:$3:$root" run "$2" "$3" "$root" >>"$work/load$1"
    done
}
for load in $loads; do runs "$load" 02 "$load"; done
for traffic in $others; do runs "0.9_$traffic" "$traffic" 0.9; done

# of LOAD[_TRAFFIC] SCHEDULER FIELD: prints the mean over seeds: field 1 is the mean, 2 the 99th percentile, 3 throughput, 4 accepted.
of() {
    case $2 in
    ff) column=1 ;;
    fs) column=5 ;;
    random) column=9 ;;
    srpt) column=13 ;;
    esac
    all=$(cut -d, -f "$((column + $3))" "$work/load$1" | mean)
    echo "${all%%,*}"
}

echo 'load,scheduler,mean flow completion time (us)' >"$work/t.csv"
# number PERCENT ITEM PUBLISHED HERE: a single run may differ more.
number() {
    if [ "$seeds" -ge 3 ]; then
        within "$@"
    else
        within "$((2 * $1))" "$2" "$3" "$4"
    fi
}
# compare LOAD[_TRAFFIC] SCHEDULER MEAN P99 THROUGHPUT ACCEPTED
compare() {
    at="load $(echo "$1" | sed 's/_/, rack_sensitivity_/')"
    number 10 "$2 at $at, mean FCT (us)" "$3" "$(of "$1" "$2" 1 | awk '{ printf "%.1f", $1 }')"
    number 20 "$2 at $at, p99 FCT (us)" "$4" "$(of "$1" "$2" 2 | awk '{ printf "%.1f", $1 }')"
    number 4 "$2 at $at, throughput" "$5" "$(of "$1" "$2" 3 | awk '{ printf "%.4f", $1 }')"
    number 1 "$2 at $at, accepted flows" "$6" "$(of "$1" "$2" 4 | awk '{ printf "%.4f", $1 }')"
}
# published LOAD SCHEDULER MEAN P99 THROUGHPUT ACCEPTED: compares, and adds both means to the picture.
published() {
    case " $loads " in
    *" $1 "*) ;;
    *) return 0 ;;
    esac
    compare "$@"
    printf '%s,%s,%s\n%s,%s published,%s\n' "$1" "$2" "$(of "$1" "$2" 1)" "$1" "$2" "$3" >>"$work/t.csv"
}
published 0.1 ff 1547.1 2905.6 0.993 0.999
published 0.1 fs 1514.8 1997.1 0.994 0.999
published 0.1 random 1538.9 2708.2 0.991 0.999
published 0.1 srpt 1514.5 1997.6 0.994 0.999
published 0.2 ff 1613.3 4210.8 0.985 0.999
published 0.2 fs 1522.9 1998.9 0.986 1.000
published 0.2 random 1575.6 3009.0 0.978 0.999
published 0.2 srpt 1524.5 2252.2 0.987 1.000
published 0.3 ff 1751.4 6744.9 0.989 0.999
published 0.3 fs 1534.7 2247.8 0.990 0.999
published 0.3 random 1649.2 3891.9 0.977 0.999
published 0.3 srpt 1539.5 2626.4 0.989 0.999
published 0.4 ff 1924.1 9755.3 0.977 0.998
published 0.4 fs 1541.5 2542.4 0.980 0.999
published 0.4 random 1795.0 5339.0 0.941 0.998
published 0.4 srpt 1552.2 2802.5 0.979 0.999
published 0.5 ff 2239.7 14440.3 0.979 0.998
published 0.5 fs 1564.2 2914.5 0.980 0.999
published 0.5 random 2330.3 9746.8 0.892 0.997
published 0.5 srpt 1580.9 2940.4 0.978 0.999
published 0.6 ff 2842.5 22991.2 0.967 0.996
published 0.6 fs 1595.6 3658.7 0.972 0.999
published 0.6 random 3265.3 16613.3 0.825 0.994
published 0.6 srpt 1619.1 3390.5 0.961 0.999
published 0.7 ff 3465.2 27554.1 0.950 0.994
published 0.7 fs 1648.7 4775.0 0.950 0.999
published 0.7 random 4658.5 25482.9 0.755 0.985
published 0.7 srpt 1678.0 3916.3 0.927 0.999
published 0.8 ff 4604.8 37588.2 0.904 0.988
published 0.8 fs 1759.3 7189.5 0.886 0.998
published 0.8 random 5891.2 32310.3 0.694 0.977
published 0.8 srpt 1757.8 4908.0 0.853 0.998
published 0.9 ff 6385.1 52863.8 0.871 0.980
published 0.9 fs 1956.4 11288.2 0.845 0.998
published 0.9 random 8399.6 46907.3 0.650 0.964
published 0.9 srpt 1963.3 7596.5 0.786 0.998
if [ -n "$others" ]; then
    compare 0.9_04 ff 5497.1 46230.6 0.851 0.983
    compare 0.9_04 fs 1872.4 9593.3 0.827 0.997
    compare 0.9_04 random 3347.1 29914.9 0.608 0.987
    compare 0.9_04 srpt 1861.4 5931.5 0.781 0.997
    compare 0.9_06 ff 5773.6 46545.8 0.867 0.978
    compare 0.9_06 fs 1872.7 9645.7 0.844 0.997
    compare 0.9_06 random 3943.0 39082.1 0.595 0.981
    compare 0.9_06 srpt 1900.9 6304.4 0.793 0.997
    compare 0.9_08 ff 6797.9 53200.8 0.866 0.977
    compare 0.9_08 fs 1891.3 10007.9 0.856 0.998
    compare 0.9_08 random 5968.6 63779.3 0.540 0.971
    compare 0.9_08 srpt 1935.1 6647.8 0.792 0.998
fi

a=$(of 0.1 ff 1) b=$(of 0.1 fs 1) c=$(of 0.1 random 1) d=$(of 0.1 srpt 1)
trend 'load 0.1: all within 3 %' "$a $b $c $d us" "$a < 1.03 * $d && $c < 1.03 * $d && $b < 1.03 * $d && $d < 1.03 * $b"
a=$(of 0.9 ff 1) b=$(of 0.9 fs 1) c=$(of 0.9 random 1) d=$(of 0.9 srpt 1)
trend 'load 0.9: mean of fs below those of ff and random' "$b < $a, $c us" "$b <= $a && $b <= $c"
trend 'load 0.9: mean of srpt below those of ff and random' "$d < $a, $c us" "$d <= $a && $d <= $c"
trend 'load 0.9: mean of srpt at most that of fs' "$d <= $b us" "$d <= $b" \
    'the published means are 1963.3 and 1956.4 us, within their margins'
a=$(of 0.9 ff 2) b=$(of 0.9 fs 2) c=$(of 0.9 random 2) d=$(of 0.9 srpt 2)
trend 'load 0.9: p99 of srpt < fs < both others' "$d < $b < $a, $c us" "$d < $b && $b < $a && $b < $c"
for load in $loads; do
    a=$(of "$load" fs 1) b=$(of "$load" srpt 1)
    case $load in
    0.9) ;;
    *) trend "load $load: means of fs and srpt within 5 %" "$a and $b us" "$a < 1.05 * $b && $b < 1.05 * $a" ;;
    esac
    a=$(of "$load" ff 3) b=$(of "$load" fs 3) c=$(of "$load" random 3) d=$(of "$load" srpt 3)
    case $load in
    0.1 | 0.2) ;;
    *) trend "load $load: lowest throughput: random" "$c < $a, $b, $d" "$c < $a && $c < $b && $c < $d" ;;
    esac
    case $load in
    0.[6-9]) trend "load $load: throughput of srpt below fs and ff" "$d < $b, $a" "$d < $b && $d < $a" ;;
    esac
done
note 'Published are the means of five runs of random traffic of the same kind; single runs differ by up to 3 %, at load 0.9 by 15 %; there, queues grow with the length of a run, and the first published run has twice the length of the others. --compat trafpy repeats the schedulers of the program, which draw flows again and replace flows of equal cost: without it, ff and random are faster by up to a third, and the 99th percentile of srpt at load 0.9 is half as long.'
picture lines "$work/t.csv" --plot-log y
finish
