# vef.sh: what V1, V2 and V3 share. They source it after lib.sh; it runs traces on the switch of the extended VEF paper.

published_seeds=30

# variant NAME PORTS COMMAND...: runs the traces of the command, with seeds added, on a switch of PORTS ports. It sets
# NAME_t, NAME_e, NAME_n and NAME_x to the means of time and latencies in cycles and of throughput in flits per cycle and
# port, and adds NAME and the time, with its 95 % interval, to the picture.
variant() {
    name=$1 ports=$2
    shift 2
    : >"$work/runs"
    seed=1
    while [ "$seed" -le "$seeds" ]; do
        # A run is a line that the next start of the script skips.
        kept=$out/$id-runs.csv
        key=$name,$size,$seed
        if ! grep -s "^$key," "$kept" >>"$work/runs"; then
            "$@" --seed "$seed" -o "$work/trace.parquet"
            simulate -q --backend flit --preset vef-switch --topology "star:hosts=$ports" --csv=results "$work/trace.parquet" |
                awk -F, -v key="$key" '
                    $6 == "backend_stats.cycles" { t = $8 }
                    $6 == "backend_stats.flit_latency" { e = $8 }
                    $6 == "backend_stats.flit_network_latency" { n = $8 }
                    $6 == "backend_stats.accepted_load" { x = $8 }
                    END { print key "," t "," e "," n "," x }' | tee -a "$work/runs" >>"$kept"
        fi
        seed=$((seed + 1))
    done
    for column in t:4 e:5 n:6 x:7; do
        numbers=$(cut -d, -f "${column#*:}" "$work/runs" | mean)
        eval "${name}_${column%:*}=${numbers%%,*}"
        case $column in
        t:4) echo "$name,,$numbers" >>"$work/t.csv" ;;
        esac
        case $column in
        t:4) what='time (cycles)' ;;
        e:5) what='latency (cycles)' ;;
        n:6) what='network latency' ;;
        x:7) what='throughput' ;;
        esac
        shown "$name, $what" "$(echo "$numbers" | awk -F, '{ printf "%.6g", $1 }')"
    done
}

begin_picture() { echo 'variant,,time (cycles),low,high' >"$work/t.csv"; }
