// Package sim replays a trace on a model of the machine it would run on.
//
// A trace is first compiled into a [Program]. The replay [Engine] tracks dependencies, streams and the matching of sends
// and receives, and asks a [Network], which a backend implements, when messages get through. Every run ends in a
// [Result] with the same fields whatever the backend. The packages below this one are the backends.
//
// Runs are deterministic: the same trace, parameters and seed give the same result to the last bit. Each backend states
// the rule by which it orders events of equal time.
package sim
