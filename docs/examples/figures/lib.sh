# lib.sh: what the scripts of figures share. A script sources it and calls
#
#   figure ID "TITLE" "$@"      first: parses the options, see usage
#   exact ITEM PUBLISHED HERE   the numbers are equal to the digits of PUBLISHED
#   within PERCENT ITEM PUBLISHED HERE
#   trend ITEM "STATEMENT" CONDITION ["REASON"]
#                               CONDITION is an expression of awk over numbers; with a reason, a false one is no failure
#   shown ITEM HERE             a number that nobody published
#                               HERE may be MEAN,LOW,HIGH, as the function mean prints them: the verdict has the interval
#   differs ITEM PUBLISHED HERE "REASON"    a number that is known to differ; no failure
#   picture bars|lines TABLE [FLAG...]
#                               draws the CSV file TABLE: group, series, value[, low, high]; flags of tracecat --plot
#   note "TEXT"                 a sentence for the page, such as why a number differs
#   keep NAME FILE...           keeps finished runs in NAME-runs.csv for the next start with the same programs and files
#   kept KEY COMMAND...         prints KEY, a comma and the line that the command prints, of a kept run if there is one
#   finish                      last: exits with 1 if an assertion failed
#
# It needs a POSIX shell, awk, and the programs of tracedag on the PATH.
set -eu

usage() {
    echo "usage: sh $id.sh [--size small|medium|full] [--seeds N] [--out FOLDER]" >&2
    exit 2
}

figure() {
    id=$1 title=$2
    shift 2
    size=small seeds= out=.
    while [ $# -gt 0 ]; do
        [ $# -gt 1 ] || usage
        case $1 in
        --size) size=$2 ;;
        --seeds) seeds=$2 ;;
        --out) out=$2 ;;
        *) usage ;;
        esac
        shift 2
    done
    case $size in
    small) seeds=${seeds:-${small_seeds:-3}} ;;
    medium) seeds=${seeds:-10} ;;
    full) seeds=${seeds:-${published_seeds:-10}} ;;
    *) usage ;;
    esac
    mkdir -p "$out"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    failed=0
    csv=$out/$id.csv
    echo 'figure,item,published,here,ratio,verdict' >"$csv.part"
    rm -f "$csv.note"
    printf '%s: %s (size %s)\n' "$id" "$title" "$size"
    printf '  %-40s %16s %16s %8s  %s\n' item published here ratio verdict
}

# row ITEM PUBLISHED HERE RATIO VERDICT
row() {
    printf '  %-40s %16s %16s %8s  %s\n' "$1" "${2:--}" "${3:--}" "${4:--}" "$5"
    printf '%s,"%s",%s,%s,%s,"%s"\n' "$id" "$1" "$2" "$3" "$4" "$5" >>"$csv.part"
    case $5 in
    DIFFERS) failed=1 ;;
    esac
}

ratio() { awk -v here="$1" -v published="$2" 'BEGIN { if (published + 0 != 0) printf "%.4g", here / published }'; }

exact() {
    digits=${2#*.}
    [ "$digits" != "$2" ] || digits=
    if awk -v p="$2" -v h="$3" -v n="${#digits}" 'BEGIN { exit !(sprintf("%." n "f", h) == sprintf("%." n "f", p)) }'; then
        row "$1" "$2" "$3" "$(ratio "$3" "$2")" exact
    else
        row "$1" "$2" "$3" "$(ratio "$3" "$2")" DIFFERS
    fi
}

within() {
    here=${4%%,*}
    off=$(awk -v p="$3" -v h="$here" 'BEGIN { d = (h / p - 1) * 100; printf "%.2g", d < 0 ? -d : d }')
    # A missing number is at no distance; as a text, -nan would be less than all numbers.
    if awk -v d="$off" -v most="$1" 'BEGIN { exit !(d ~ /[0-9]$/ && d + 0 <= most + 0) }'; then
        row "$2" "$3" "$here" "$(ratio "$here" "$3")" "within $off % (accepted: $1 %)$(interval "$4")"
    else
        row "$2" "$3" "$here" "$(ratio "$here" "$3")" DIFFERS
    fi
}

trend() {
    if awk "BEGIN { exit !($3) }"; then
        row "$1" '' '' '' "trend holds: $2"
    elif [ $# -gt 3 ]; then
        row "$1" '' '' '' "differs: not $2; $4"
    else
        row "$1: $2" '' '' '' DIFFERS
    fi
}

shown() { row "$1" '' "${2%%,*}" '' "no published value$(interval "$2")"; }

# interval MEAN,LOW,HIGH: prints the interval of a mean over several seeds.
interval() {
    case $1 in
    *,*) [ "$seeds" -eq 1 ] || echo "$1" | awk -F, -v n="$seeds" '{ printf "; 95 %% interval of %d: %.6g to %.6g", n, $2, $3 }' ;;
    esac
}

differs() { row "$1" "$2" "$3" "$(ratio "$3" "$2")" "differs: $4"; }

note() {
    printf '  note: %s\n' "$1"
    printf '%s\n' "$1" >>"$csv.note"
}

picture() {
    kind=$1 table=$2
    shift 2
    tracecat --plot "$kind=$out/$id.svg" --plot-title "$title" "$@" "$table"
}

finish() {
    mv "$csv.part" "$csv"
    rm -f "$out/$id.note"
    [ ! -f "$csv.note" ] || mv "$csv.note" "$out/$id.note"
    exit "$failed"
}

keep() {
    runs=$out/$1-runs.csv
    shift
    made="# $(cat "$@" "$(command -v tracegen)" "$(command -v simulate)" | cksum | tr ' ' '-')"
    if [ "$(head -n 1 "$runs" 2>/dev/null)" != "$made" ]; then
        echo "$made" >"$runs"
    fi
}

kept() {
    key=$1
    shift
    if ! grep "^$key," "$runs"; then
        line=$("$@")
        echo "$key,$line" | tee -a "$runs"
    fi
}

# mean: prints the mean of the numbers of standard input and the bounds of its 95 % interval (Student), with commas
# between.
mean() {
    awk '
        { n++; sum += $1; values[n] = $1 }
        END {
            split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 " \
                "2.110 2.101 2.093 2.086 2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042", t, " ")
            m = sum / n
            for (i = 1; i <= n; i++) squares += (values[i] - m) ^ 2
            half = n < 2 ? 0 : (n - 1 in t ? t[n - 1] : 1.96) * sqrt(squares / (n - 1) / n)
            printf "%.10g,%.10g,%.10g\n", m, m - half, m + half
        }'
}

# field NAME: prints the first number of a member of JSON from standard input.
field() {
    awk -v name="\"$1\":" '
        !found && (i = index($0, name)) {
            rest = substr($0, i + length(name))
            if (match(rest, /^[-0-9.e+]+/)) { print substr(rest, 1, RLENGTH); found = 1 }
        }'
}
