package packet

// Purposes of random streams; see [sim.NewRandom].
const (
	forPort = iota + 1
	forSwitch
	forFlow
	forHost
)
