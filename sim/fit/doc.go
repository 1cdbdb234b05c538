// Package fit estimates parameters of simulation backends from measured times of messages. [Read] reads the tables of
// micro-benchmarks, [Split] divides a table into segments of message size, [LogGOPS] estimates the parameters of a
// backend with confidence intervals, and [File] is the parameter file that backends read again.
//
// Times are float64 seconds, as benchmarks print them: they are measurements, not clocks of a simulation.
package fit
