#!/bin/sh
# Figures 6 and 7 of ASTRA-sim 2.0 (Won et al., ISPASS 2023): the load of links of a memory pool of 8 memory groups and 4
# switches for 16 nodes of 16 GPUs, in units of W, the bytes per GPU, and the times of its chunks.
folder=$(dirname "$0")
. "$folder/lib.sh"
. "$folder/pool.sh"
figure S6 'ASTRA-sim 2.0, Figures 6 and 7: link loads of a hierarchical memory pool' "$@"

echo 'link,,load (W)' >"$work/t.csv"
explain 0
load 'memory group to switch' 8
load 'switch to node' 4
load "node's switch to NPU" 1
# The equations of the paper in ns: c / b_m, R c / (M b_g) and R S c / (N b_i), with chunks of 1 MiB.
chunk 'memory group to switch' 1 10485.76
chunk 'switch to node' 2 5242.88
chunk "node's switch to NPU" 3 512
exact 'stages of 16 MiB per GPU' 128 "$(stages)"
exact 'time of 16 MiB per GPU (ns)' 1347932.16 "$(nanoseconds)"
note "The loads are those of the text. The times are the paper's equations, computed by hand."
picture bars "$work/t.csv"
finish
