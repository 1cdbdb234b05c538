package dag

import "fmt"

// Kind is the kind of an op.
type Kind uint8

// The kinds of op. The zero value is Calc.
const (
	Calc Kind = iota // compute for Duration (or Flops, for roofline models) on a stream
	Send             // send Bytes to Peer
	Recv             // receive Bytes from Peer
	Coll             // participate in a collective of communicator Comm; Subkind is the collective
	Mem              // access memory; Subkind is Load or Store
	IO               // access storage; Subkind is Read or Write

	NumKinds = iota
)

var kindNames = [NumKinds]string{"calc", "send", "recv", "coll", "mem", "io"}

// String returns the kind's name in the store and in every listing, such as "calc".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind is the inverse of [Kind.String].
func ParseKind(name string) (Kind, bool) {
	for i, n := range kindNames {
		if n == name {
			return Kind(i), true
		}
	}
	return 0, false
}

// Subkind narrows a Kind: the collective, or the direction of a memory or storage access.
type Subkind uint8

// The subkinds. Sends and receives have NoSubkind only; most calcs have it too.
const (
	NoSubkind Subkind = iota

	Barrier
	Bcast
	Reduce
	Allreduce
	Gather
	Gatherv
	Scatter
	Scatterv
	Allgather
	Allgatherv
	Alltoall
	Alltoallv
	ReduceScatter
	Scan
	Exscan

	Load  // memory
	Store // memory

	Read  // storage
	Write // storage

	Marker // calc that does nothing and takes no time, such as a node of metadata; see Rank.CalcTime

	NumSubkinds = iota
)

var subkinds = [NumSubkinds]struct {
	name string
	kind Kind
}{
	NoSubkind:     {"", Calc},
	Barrier:       {"barrier", Coll},
	Bcast:         {"bcast", Coll},
	Reduce:        {"reduce", Coll},
	Allreduce:     {"allreduce", Coll},
	Gather:        {"gather", Coll},
	Gatherv:       {"gatherv", Coll},
	Scatter:       {"scatter", Coll},
	Scatterv:      {"scatterv", Coll},
	Allgather:     {"allgather", Coll},
	Allgatherv:    {"allgatherv", Coll},
	Alltoall:      {"alltoall", Coll},
	Alltoallv:     {"alltoallv", Coll},
	ReduceScatter: {"reducescatter", Coll},
	Scan:          {"scan", Coll},
	Exscan:        {"exscan", Coll},
	Load:          {"load", Mem},
	Store:         {"store", Mem},
	Read:          {"read", IO},
	Write:         {"write", IO},
	Marker:        {"marker", Calc},
}

// String returns the subkind's name in the store and in every listing, such as "allreduce"; NoSubkind is "".
func (s Subkind) String() string {
	if int(s) < len(subkinds) {
		return subkinds[s].name
	}
	return fmt.Sprintf("subkind(%d)", uint8(s))
}

// ParseSubkind is the inverse of [Subkind.String].
func ParseSubkind(name string) (Subkind, bool) {
	for i := range subkinds {
		if subkinds[i].name == name {
			return Subkind(i), true
		}
	}
	return 0, false
}

// Of reports whether an op of kind k may have subkind s. A collective, memory or storage op needs one of its own
// subkinds, a calc may be a Marker, and the other kinds have NoSubkind.
func (s Subkind) Of(k Kind) bool {
	if k == Calc || k == Send || k == Recv {
		return s == NoSubkind || k == Calc && s == Marker
	}
	return s != NoSubkind && int(s) < len(subkinds) && subkinds[s].kind == k
}

// Rooted reports whether s is a collective with a root. The Peer of such an op is the root's rank.
func (s Subkind) Rooted() bool {
	switch s {
	case Bcast, Reduce, Gather, Gatherv, Scatter, Scatterv:
		return true
	}
	return false
}
