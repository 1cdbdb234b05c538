package nccl

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// algorithm is an NCCL algorithm, by NCCL's number.
type algorithm uint8

const (
	tree algorithm = iota
	ring
	collnetDirect
	collnetChain
	nvls
	nvlsTree
	pat
)

// algorithmNames are the names in traces and on the command line.
var algorithmNames = [...]string{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}

// simpleOnly reports whether an algorithm exists with the protocol Simple only.
func (a algorithm) simpleOnly() bool { return a > ring }

// switched reports whether an algorithm reduces inside NVSwitches.
func (a algorithm) switched() bool { return a == nvls || a == nvlsTree }

// has reports whether NCCL has an algorithm for a collective.
func (a algorithm) has(kind dag.Subkind) bool {
	switch a {
	case ring:
		return true
	case nvls:
		return kind == dag.Allreduce || kind == dag.Allgather || kind == dag.ReduceScatter
	case pat:
		return kind == dag.Allgather || kind == dag.ReduceScatter
	}
	return kind == dag.Allreduce
}

func parseAlgorithm(name string) (algorithm, bool) {
	i := slices.Index(algorithmNames[:], name)
	return algorithm(max(i, 0)), i >= 0
}

// protocol is an NCCL protocol, by NCCL's number: LL has a flag in each line of 16 bytes, LL128 in each of 128 bytes.
type protocol uint8

const (
	ll protocol = iota
	ll128
	simple
	protocols = iota
)

// protocolNames are the names in traces and on the command line.
var protocolNames = [protocols]string{"ll", "ll128", "simple"}

func parseProtocol(name string) (protocol, bool) {
	i := slices.Index(protocolNames[:], name)
	return protocol(max(i, 0)), i >= 0
}
