package simulate

const long = `Run a trace on a simulated machine and report when each rank finishes.

TRACE is a file or folder in any format that can be read (default: stdin).`

const examples = `  tracegen horovod | simulate
  simulate --backend packet --topology fattree:k=8 --transport dctcp x.parquet
  simulate --sweep 'L=1us..10us:10;G=0.02,0.04' --csv=summary x.parquet`

// sweepPage is the help of sweeps.
const sweepPage = `--sweep GRID runs a grid of options, several points concurrently, and prints a JSON line per point in the order of the
grid, or with --csv a table ("--help result").

  simulate --sweep 'L=1us..10us:10;G=0.02,0.04' --csv=summary x.parquet
  simulate --backend packet --topology fattree:k=4 --sweep 'transport=ndp,dctcp;queue=100kB,1MB' --replicas 5 x.parquet

Semicolons separate axes, commas separate values; | separates values with commas. FROM..TO:N are N values at equal
distances, FROM..TO:N:log at equal ratios. An axis is any option that changes results: parameters of the backend
("simulate --help packet"), transport, topology, keys such as topology.rate, placement, collective, backend, trace,
seed.

--replicas N runs each point with N seeds and prints means with 95 % intervals.

A point that fails prints its parameters and an error, and does not stop the others; the exit status is then 1. Larger
grids are studies ("--help study").`

// jobsPage is the help of jobs.
const jobsPage = `Several traces, or a plan, run as jobs at the same time:

  simulate --trace a.parquet --trace b.parquet@5ms --alone
  simulate --plan cluster.yaml

The trace that the argument names is the first job. The result has the times of each job.`

// resultPage is the help of results.
const resultPage = `The result is a table, or with --json one JSON object with the same fields for every backend: run (what ran: trace,
topology, settings, seed, version), backend, model, params, complete, makespan_ps, finish_ps (by rank), ops, never_run,
events, messages, bytes, with --timing wall_s and ops_per_s, and, if they apply, leftover, stuck, aborted, overflow,
backend_stats, critical_path, op_times, jobs and compare. Times are in ps.

Three tables have the same columns for every backend, as CSV (--csv) or in files (.csv or .parquet): points, a row per
run; results, a row per number of a run; summary, a row per point and number with mean and 95 % interval over the seeds
of a sweep such as --sweep 'seed=1..5:5'.

A run is incomplete if ops never ran, or if messages or receives have no partner: the first ten are listed with the
reason, "complete" is false, and the exit status is 1.

For a trace of several jobs, the result has the times of each job and its compute time without concurrent communication.
--diff compares two files of such results, or of sweeps, and exits with 0 if they are equal, 1 if they differ and 2 on
failure: what ran, then the values that changed most, as a table, with --json or with --csv.

--alone also runs each job alone and adds its slowdown. --compare adds the measured time of each rank and the error of
the simulated one.`

// timelinePage is the help of timelines.
const timelinePage = `--timeline FILE writes the run for a viewer. The name of the file selects the format:

  .pftrace  Perfetto's own format (https://ui.perfetto.dev); the smallest and fastest one, in whole nanoseconds
  .json     Chromium's Trace Event Format, for Perfetto and chrome://tracing; exact to the picosecond
  .json.gz  the same, compressed; Perfetto opens it directly
  .viz      the format of LogGOPSim's viewer; only with --backend loggops

Each rank has a track per stream, for waits and collectives, and per NIC, with a slice per message and arrows from its
send to its receive. With --backend packet and --sample, counters show queues, utilization of ports and flows.

  simulate --timeline run.pftrace x.parquet
  simulate --timeline run.pftrace --timeline-ranks 0..63,128 --timeline-window 10ms..20ms x.parquet`
