// Package sim replays a trace on a model of the machine that runs it.
//
// [Compile] compiles a trace into a [Program]. The replay [Engine] tracks dependencies and streams, matches sends with
// receives, and asks a [Network] for the arrival times of messages. Each backend implements a network or its own replay
// loop, in a package below this one. Every run returns a [Result] with the same fields for every backend.
//
// Runs are deterministic: the same trace, parameters and seed give the same result to the last bit with any number of
// threads. Each backend defines its order of events of equal time.
package sim
