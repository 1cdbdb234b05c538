# vef.sh: what V1, V2 and V3 share. They source it after lib.sh; it runs traces on the switch of the extended VEF paper.

published_seeds=30

# switched SEED PORTS COMMAND...: prints time, latencies and throughput of the trace of a command with a seed, and the
# throughput with messages between tasks of a host, which do not enter the network.
switched() {
    seed=$1 ports=$2
    shift 2
    "$@" --seed "$seed" -o "$work/trace.parquet"
    simulate -q --backend flit --preset vef-switch --topology "star:hosts=$ports" --csv=results "$work/trace.parquet" \
        >"$work/results.csv"
    awk -F, -v ports="$ports" '
        $6 == "bytes" { bytes = $8 }
        $6 == "backend_stats.cycles" { t = $8 }
        $6 == "backend_stats.flit_latency" { e = $8 }
        $6 == "backend_stats.flit_network_latency" { n = $8 }
        $6 == "backend_stats.accepted_load" { x = $8 }
        END { print t "," e "," n "," x "," bytes / 16 / t / ports }' "$work/results.csv"
}

# measured NAME PORTS COMMAND...: runs the traces of the command, with seeds added, on a switch of PORTS ports. It sets
# NAME_t, NAME_e, NAME_n and NAME_x to the means of time and latencies in cycles and of throughput in flits per cycle and
# port, NAME_y to the throughput of all messages, and NAME_ts and so on to them with their 95 % intervals. The next start of
# the script skips finished runs.
measured() {
    name=$1 ports=$2
    shift 2
    : >"$work/runs"
    for root in $(awk -v n="$seeds" 'BEGIN { for (i = 1; i <= n; i++) print i }'); do
        kept "$name:$size:$root" switched "$root" "$ports" "$@" >>"$work/runs"
    done
    for column in t:2 e:3 n:4 x:5 y:6; do
        numbers=$(cut -d, -f "${column#*:}" "$work/runs" | mean)
        eval "${name}_${column%:*}=${numbers%%,*} ${name}_${column%:*}s=$numbers"
    done
}

# variant NAME PORTS COMMAND...: measures, shows the means and intervals, and adds NAME and the time to the picture.
variant() {
    measured "$@"
    eval "echo \"$1,,\$${1}_ts\"" >>"$work/t.csv"
    for column in t:'time (cycles)' e:'latency (cycles)' n:'network latency' x:throughput; do
        eval "numbers=\$${1}_${column%%:*}s"
        shown "$1, ${column#*:}" "$(echo "$numbers" | awk -F, '{ printf "%.6g,%s,%s", $1, $2, $3 }')"
    done
}

begin_picture() { echo 'variant,,time (cycles),low,high' >"$work/t.csv"; }
