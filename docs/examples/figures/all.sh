#!/bin/sh
# usage: sh all.sh [--size small|medium|full] [--seeds N] [--out FOLDER] [--page PAGE.md] [--jobs N]
# Runs the scripts of all figures and prints a line each. Their tables go to FOLDER/ID.txt and FOLDER/ID.csv, their
# pictures to FOLDER/ID.svg. With --page, it also writes the results as a page of Markdown, and copies the pictures to the
# folder figures beside it. --jobs is the number of scripts at a time (default 1). Exits with 1 if an assertion failed.
set -eu

folder=$(dirname "$0")
out=. page= size=small options= jobs=1
while [ $# -gt 1 ]; do
    case $1 in
    --out) out=$2 ;;
    --page) page=$2 ;;
    --jobs) jobs=$2 ;;
    --size) size=$2 && options="$options --size $2" ;;
    --seeds) options="$options --seeds $2" ;;
    *) break ;;
    esac
    shift 2
done
if [ $# -gt 0 ]; then
    sed -n 's/^# usage: /usage: /p' "$0" >&2
    exit 2
fi
mkdir -p "$out"
failed=0
rm -f "$out"/*.failed
printf '%s\n' "$folder"/[A-Z]*.sh | xargs -P "$jobs" -I '{}' sh -c '
    id=$(basename "$1" .sh) out=$2
    shift 2
    sh "$0" "$@" --out "$out" >"$out/$id.txt" || echo $? >"$out/$id.failed"' '{}' '{}' "$out" $options
for script in "$folder"/[A-Z]*.sh; do
    id=$(basename "$script" .sh)
    title=$(sed -n "1s/^$id: \(.*\) (size .*/\1/p" "$out/$id.txt")
    if [ ! -e "$out/$id.failed" ]; then
        awk -v id="$id" -v title="$title" '
            /^  note:/ { next }
            NR > 2 && / (exact|within|trend holds)/ { good++ }
            NR > 2 && /differs:/ { known++ }
            END { printf "%-4s %-70s %d hold", id, title, good; if (known) printf ", %d differ", known; print "" }' "$out/$id.txt"
    else
        failed=1
        printf '%-4s %-70s FAILED\n' "$id" "$title"
        cat "$out/$id.txt"
    fi
done
if [ -n "$page" ]; then
    sh "$folder/page.sh" "$size" "$out" >"$page"
    mkdir -p "$(dirname "$page")/figures"
    cp "$out"/[A-Z]*.svg "$(dirname "$page")/figures/"
fi
exit "$failed"
