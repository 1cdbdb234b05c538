#!/bin/sh
# The campaign of TrafPy's benchmark (Parsonson et al., Optical Switching and Networking 46, 2022): flow completion times
# and throughput of four schedulers by load, in time slots. Published: the summary table of the authors' repository. Its
# traffic is not recorded; here it is university flow sizes with 20 % of the bytes between racks.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure TS 'TrafPy: flow completion times of schedulers by load' "$@"

case $size in
small) loads='0.1 0.5 0.9' duration=320ms seeds=1 ;;
medium) loads='0.1 0.3 0.5 0.6 0.7 0.8 0.9' duration=320ms seeds=3 ;;
full) loads='0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9' duration=640ms ;;
esac
for load in $loads; do
    seed=1
    while [ "$seed" -le "$seeds" ]; do
        tracegen matrix -q --preset rack_sensitivity_08 --ranks 64 --racks 4 --capacity 1250 --load "$load" \
            --auto-correct --min-duration "$duration" --seed "$seed" -o "$work/t.parquet"
        for scheduler in ff fs random srpt; do
            simulate -q --backend slots --topology leafspine:hosts=64,tor=16,spines=2,rate=5Gbps/16Gbps --slot 1ms \
                --packet-size 300 --scheduler "$scheduler" --end last-arrival --seed "$seed" --json "$work/t.parquet" \
                >"$work/r.json"
            for name in mean_fct_ps p99_fct_ps throughput_frac; do
                field "$name" <"$work/r.json" >>"$work/$name-$scheduler-$load"
            done
        done
        seed=$((seed + 1))
    done
done

# of NAME SCHEDULER LOAD: prints the mean over seeds.
of() {
    all=$(mean <"$work/$1-$2-$3")
    echo "${all%%,*}"
}
fct() { of mean_fct_ps "$1" "$2" | awk '{ printf "%.1f", $1 / 1e6 }'; } # in us
p99() { of p99_fct_ps "$1" "$2" | awk '{ printf "%.1f", $1 / 1e6 }'; }
throughput() { of throughput_frac "$1" "$2" | awk '{ printf "%.4f", $1 }'; }

# published LOAD MEANS THROUGHPUTS: shows both beside ours, for ff, fs, random and srpt.
published() {
    load=$1 means=$2 throughputs=$3
    for scheduler in ff fs random srpt; do
        here=$(fct "$scheduler" "$load")
        differs "$scheduler at load $load, mean FCT (us)" "${means%% *}" "$here" 'the traffic and the length of the runs are not known'
        here=$(throughput "$scheduler" "$load")
        differs "$scheduler at load $load, throughput" "${throughputs%% *}" "$here" 'the traffic and the length of the runs are not known'
        means=${means#* } throughputs=${throughputs#* }
    done
}
published 0.1 '1559.6 1517.3 1541.6 1516.5' '0.983 0.984 0.984 0.984'
published 0.5 '2261.2 1564.4 2451.9 1578.4' '0.981 0.984 0.894 0.983'
published 0.9 '6989.1 2063.1 11205.3 1971.1' '0.883 0.869 0.653 0.786'

a=$(fct ff 0.1) b=$(fct fs 0.1) c=$(fct random 0.1) d=$(fct srpt 0.1)
trend 'load 0.1: all within 3 %' "$a $b $c $d us" "$a < 1.03 * $d && $c < 1.03 * $d && $b < 1.03 * $d && $d < 1.03 * $b"
trend 'load 0.1: means 1,500 to 1,560 us' "$a $b $c $d us" \
    "$a < 1560 && $b < 1560 && $c < 1560 && $d < 1560 && $a > 1500 && $b > 1500 && $c > 1500 && $d > 1500" \
    'ff has 1,559.6 us there'
a=$(fct ff 0.9) b=$(fct fs 0.9) c=$(fct random 0.9) d=$(fct srpt 0.9)
trend 'load 0.9: mean of fs below those of ff and random' "$b < $a, $c us" "$b <= $a && $b <= $c"
trend 'load 0.9: mean of srpt below those of ff and random' "$d < $a, $c us" "$d <= $a && $d <= $c"
trend 'load 0.9: mean of srpt at most that of fs' "$d <= $b us" "$d <= $b" \
    'perhaps ties: flows of equal remaining slots are in the order of arrival here, and replace each other there'
a=$(p99 ff 0.9) b=$(p99 fs 0.9) c=$(p99 random 0.9) d=$(p99 srpt 0.9)
trend 'load 0.9: p99 of srpt < fs < both others' "$d < $b < $a, $c us" "$d < $b && $b < $a && $b < $c"
a=$(throughput random 0.9)
trend 'load 0.9: throughput of random below 0.7' "$a" "$a < 0.7"
for load in $loads; do
    a=$(fct fs "$load") b=$(fct srpt "$load")
    case $load in
    0.9) ;;
    *) trend "load $load: means of fs and srpt within 5 %" "$a and $b us" "$a < 1.05 * $b && $b < 1.05 * $a" ;;
    esac
    a=$(throughput ff "$load") b=$(throughput fs "$load") c=$(throughput random "$load") d=$(throughput srpt "$load")
    case $load in
    0.1 | 0.2) ;;
    *) trend "load $load: lowest throughput: random" "$c < $a, $b, $d" "$c < $a && $c < $b && $c < $d" ;;
    esac
    case $load in
    0.[6-9]) trend "load $load: throughput of srpt below fs and ff" "$d < $b, $a" "$d < $b && $d < $a" ;;
    esac
done

echo 'load,scheduler,mean flow completion time (us)' >"$work/t.csv"
for load in $loads; do
    for scheduler in ff fs random srpt; do
        printf '%s,%s,%s\n' "$load" "$scheduler" "$(fct "$scheduler" "$load")" >>"$work/t.csv"
    done
done
picture lines "$work/t.csv" --plot-log y
finish
