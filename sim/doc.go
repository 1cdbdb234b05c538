// Package sim replays a trace on a model of the machine that runs it.
//
// A trace is first compiled into a [Program]. The replay [Engine] tracks dependencies and streams, matches sends with
// receives, and asks a [Network], which a backend implements, when messages arrive. Every run returns a [Result] with
// the same fields for every backend. The packages below this one are the backends.
//
// Runs are deterministic: the same trace, parameters and seed give the same result to the last bit, whatever the number
// of threads. Each backend states its order of events of equal time.
package sim
