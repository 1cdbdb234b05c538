package packet

// Purposes of random streams, see [sim.Random].
const (
	forPort = iota + 1
	forSwitch
	forFlow
	forHost
)
