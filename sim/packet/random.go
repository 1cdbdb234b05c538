package packet

// The purposes of generators, see [sim.Random].
const (
	forPort = iota + 1
	forSwitch
	forFlow
	forHost
)
