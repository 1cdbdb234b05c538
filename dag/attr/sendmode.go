package attr

// The modes of sends of MPI other than the standard one.
const (
	Synchronous = "synchronous" // ends when its message has met a receive
	Buffered    = "buffered"    // ends without its receive
	Ready       = "ready"       // its receive is posted before
)

// sendMode is the member "mpi" of the attributes of a send.
type sendMode struct {
	Mode string `json:"mode"`
}

// SendMode returns the attributes of a send of the given mode.
func SendMode(mode string) string { return Encode("mpi", sendMode{mode}) }

// ParseSendMode returns the mode of the attributes of a send, "" if they have none.
func ParseSendMode(attrs string) string {
	var m sendMode
	if !Decode(attrs, "mpi", &m) {
		return ""
	}
	return m.Mode
}
