#!/bin/sh
# usage: sh page.sh SIZE FOLDER
# Prints the page of all figures from the tables in FOLDER, which all.sh made at the size.
set -eu
size=$1 out=$2

cat <<END
# Example: figures and tables of papers

Each script of [figures](figures) runs a figure or a table of a paper that tracedag implements,
compares the numbers with the published ones, and draws a picture. From a clone, with the programs
on the \`PATH\`:

\`\`\`sh
sh docs/examples/figures/ST3.sh --size small --out results
sh docs/examples/figures/all.sh --size medium --out results --page docs/examples/figures.md
\`\`\`

\`small\` takes seconds, \`medium\` minutes, \`full\` is the size of the paper. The pictures of the papers
were not available: published numbers come from their texts and from the public files of their
authors. "trend holds" refers to a statement of the text. The results below have the size
\`$size\`.
END
for table in "$out"/[A-Z]*.txt; do
    id=$(basename "$table" .txt)
    title=$(sed -n "1s/^$id: \(.*\) (size .*/\1/p" "$table")
    printf '\n## %s\n\n![%s](figures/%s.svg)\n\n' "$title" "$title" "$id"
    if [ -f "$out/$id.note" ]; then
        awk '
            {
                for (i = 1; i <= NF; i++) {
                    if (length(line) + length($i) > 98) { print line; line = "" }
                    line = line (line == "" ? "" : " ") $i
                }
            }
            END { print line; print "" }' "$out/$id.note"
    fi
    of=$(sed -n "1s/^$id: .* (size \(.*\))/\1/p" "$table")
    [ "$of" = "$size" ] || printf 'The results have the size `%s`.\n\n' "$of"
    printf 'Script: [%s.sh](figures/%s.sh)\n\n| item | published | here | ratio | verdict |\n' "$id" "$id"
    printf '| --- | ---: | ---: | ---: | --- |\n'
    sed 1d "$out/$id.csv" | awk '
        {
            n = 0; cell = ""; quoted = 0; split("", cells)
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1)
                if (c == "\"") quoted = !quoted
                else if (c == "," && !quoted) { cells[++n] = cell; cell = "" }
                else cell = cell c
            }
            cells[++n] = cell
            print "| " cells[2] " | " cells[3] " | " cells[4] " | " cells[5] " | " cells[6] " |"
        }'
done
