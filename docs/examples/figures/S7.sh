#!/bin/sh
# Figure 8 of ASTRA-sim 2.0 (Won et al., ISPASS 2023): the load of links of the memory pool of figure 6 if its switches run
# collectives in transit: every GPU receives the parts of all.
folder=$(dirname "$0")
. "$folder/lib.sh"
. "$folder/pool.sh"
figure S7 'ASTRA-sim 2.0, Figure 8: link loads of a memory pool with collectives in its switches' "$@"

echo 'link,gathered,load (W)' >"$work/t.csv"
explain 1
load 'memory group to switch' 8 256
load 'switch to node' 64 256
load "node's switch to NPU" 256 256
# The equations of the paper in ns: c / b_m, R c / b_g and R S c / b_i, with chunks of 1 MiB.
chunk 'memory group to switch' 1 10485.76
chunk 'switch to node' 2 83886.08
chunk "node's switch to NPU" 3 131072
exact 'stages of 16 MiB per GPU' 128 "$(stages)"
exact 'time of 16 MiB per GPU (ns)' 16871587.84 "$(nanoseconds)"
# Groups of consecutive GPUs gather parts of their own: of g GPUs, the link of a GPU has g W. The links of a node have 16 W
# if its 16 GPUs are in several groups, otherwise g W; each of the 4 switches has a quarter.
for ranks in 64 16 4 1; do
    explain 1 $ranks
    load 'switch to node' $(((ranks > 16 ? ranks : 16) / 4)) $ranks
    load "node's switch to NPU" $ranks $ranks
done
note "The loads of 256 ranks are those of the text, the times its equations, computed by hand. Groups of fewer ranks are \
an extension; one rank has the loads without collectives."
picture bars "$work/t.csv" --plot-log y
finish
