// Package analytical simulates training on accelerators as ASTRA-sim 2.0 does (Won et al., ISPASS 2023): every rank is
// an NPU whose collectives run chunk by chunk over the dimensions of a hierarchical network, with analytical link
// models that consider or ignore congestion. It reads ASTRA-sim's network, system and memory configuration files and
// reproduces its results to the nanosecond.
//
// [Compile] turns a trace into a [Program], which may run several times, concurrently, with different [Options].
// Collectives stay high-level: the system's algorithms carry them out. Times are in whole nanoseconds;
// [Program.Rounded] counts the times that were rounded. Events of equal time are ordered as in ASTRA-sim, see
// eventQueue.
//
// docs/reference/backends/analytical.md describes the model, its parameters and its differences from ASTRA-sim.
package analytical
