#!/bin/sh
# Figure 7 of ATLAHS (Shen et al., SC 2025): one interface to any network simulator, about 350 lines for htsim.
#
# The peer below is a whole network simulator in the shell: each host sends one message at a time. simulate connects it by
# --backend exec. With equal latency and bandwidth, its times are those of the loggops backend to the picosecond, if no two
# messages arrive at a host at once: the peer has no queues there.
folder=$(dirname "$0")
. "$folder/lib.sh"
figure AX 'ATLAHS, Figure 7: any network simulator by one interface' "$@"

cat >"$work/peer.sh" <<'END'
latency=1000000 perbyte=80 flying=
while read -r word id time source target bytes rest; do
    case $word in
    hello) echo 'ready shell 1' ;;
    send)
        eval "free=\${free_$source:-0}"
        [ "$free" -gt "$time" ] || free=$time
        eval "free_$source=\$((free + bytes * perbyte))"
        flying="$flying $((free + latency + (bytes - 1) * perbyte)):$id"
        ;;
    run)
        first=
        for message in $flying; do
            [ -n "$first" ] && [ "$first" -le "${message%:*}" ] || first=${message%:*}
        done
        if [ -z "$first" ]; then
            echo "now $id"
        elif [ "$id" != - ] && [ "$first" -gt "$id" ]; then
            echo "now $id"
        else
            left=
            for message in $flying; do
                if [ "${message%:*}" = "$first" ]; then echo "done ${message#*:} $first"; else left="$left $message"; fi
            done
            flying=$left
            echo "now $first"
        fi
        ;;
    bye) exit ;;
    esac
done
END
lines=$(awk 'END { print NR }' "$work/peer.sh")
case $size in
small) ranks=8 ;;
medium) ranks=16 ;;
full) ranks=32 ;;
esac
makespan() { simulate -q --json "$@" | field makespan_ps | awk '{ printf "%.10g\n", $1 / 1e6 }'; }
echo 'trace,simulator,makespan (us)' >"$work/t.csv"
# trace NAME FILE
trace() {
    peer=$(makespan --backend "exec:sh $work/peer.sh" "$2")
    own=$(makespan --L 1us --o 0 --g 80ps --G 100Gbps --S 1GiB "$2")
    shown "$1: shell peer (us)" "$peer"
    shown "$1: loggops (us)" "$own"
    trend "$1: equal times" 'to the picosecond' "$peer == $own"
    printf '%s,shell peer,%s\n%s,loggops,%s\n' "$1" "$peer" "$1" "$own" >>"$work/t.csv"
}
tracegen -q collective --type allreduce --ranks $ranks --bytes 1MiB --lower collectives=ring -o "$work/ring.parquet"
trace 'ring all-reduce' "$work/ring.parquet"
tracegen -q collective --type bcast --ranks $ranks --bytes 1MiB --lower collectives=binomial -o "$work/tree.parquet"
trace 'binomial broadcast' "$work/tree.parquet"
tracegen -q collective --type scatter --ranks $ranks --bytes 1MiB --lower collectives=linear -o "$work/star.parquet"
trace 'linear scatter' "$work/star.parquet"
trend "the peer has $lines lines" 'less than the 350 published for htsim' "$lines < 350"
note "The figure is a drawing of the interface. The paper needed about 350 lines to connect htsim."
picture bars "$work/t.csv"
finish
