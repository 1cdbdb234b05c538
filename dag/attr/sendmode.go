package attr

// The modes of sends of MPI other than the standard one.
const (
	Synchronous = "synchronous" // ends when its message has met a receive
	Buffered    = "buffered"    // ends without its receive
	Ready       = "ready"       // its receive is posted before
)

// sendMode is the member "mpi" of the attributes of a send.
type sendMode struct {
	Mode       string `json:"mode,omitempty"`
	Persistent bool   `json:"persistent,omitempty"`
}

// SendMode returns the attributes of a send of the given mode.
func SendMode(mode string) string { return Encode("mpi", sendMode{Mode: mode}) }

// PersistentSend returns the attributes of a send of a persistent request (MPI_Send_init) of the given mode, "" for the
// standard one.
func PersistentSend(mode string) string { return Encode("mpi", sendMode{mode, true}) }

// ParseSendMode returns the mode of the attributes of a send, "" if they have none, and whether the send is one of a
// persistent request.
func ParseSendMode(attrs string) (mode string, persistent bool) {
	var m sendMode
	if !Decode(attrs, "mpi", &m) {
		return "", false
	}
	return m.Mode, m.Persistent
}
