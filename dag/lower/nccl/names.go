package nccl

import "slices"

// algorithm is how NCCL carries out a collective.
type algorithm uint8

const (
	tree algorithm = iota
	ring
	collnetDirect
	collnetChain
	nvls
	nvlsTree
)

// algorithmNames are the algorithms in traces and on the command line, in NCCL's order.
var algorithmNames = [...]string{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"}

func parseAlgorithm(name string) (algorithm, bool) {
	i := slices.Index(algorithmNames[:], name)
	return algorithm(max(i, 0)), i >= 0
}

// protocol is how NCCL moves data: with flags in each line of 16 or of 128 bytes, or plainly.
type protocol uint8

const (
	ll protocol = iota
	ll128
	simple
	protocols = iota
)

// protocolNames are the protocols in traces and on the command line, in NCCL's order.
var protocolNames = [protocols]string{"ll", "ll128", "simple"}

func parseProtocol(name string) (protocol, bool) {
	i := slices.Index(protocolNames[:], name)
	return protocol(max(i, 0)), i >= 0
}
