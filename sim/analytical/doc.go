// Package analytical simulates training on accelerators like ASTRA-sim 2.0 (Won et al., ISPASS 2023): every rank is an
// NPU whose collectives run chunk by chunk over the dimensions of a hierarchical network, with analytical link models
// that include or ignore contention. It reads ASTRA-sim's network, system and memory configuration files and reproduces
// its results to the nanosecond.
//
// [Compile] compiles a trace into a [Program], which may run several times, concurrently, with different [Options].
// Collectives remain ops; the algorithms of the system run them. Times are in whole nanoseconds; [Program.Rounded]
// counts rounded times. Events of equal time have ASTRA-sim's order; see eventQueue.
//
// docs/reference/backends/analytical.md describes the model, its parameters and its differences from ASTRA-sim.
package analytical
