// Algorithms of collectives.

package schedgen

import "math/bits"

// Call describes a rank's part in a collective.
type Call struct {
	Ranks int   // number of participants: all ranks of the trace, 1 or more
	Rank  int   // this rank
	Root  int   // a rank; used by binomial trees only
	Bytes int64 // of each message
	Tag   int64 // of each message: 0..2^32-1, or dag.AnyTag for GOAL's -1
}

// swap exchanges the root with rank 0. It turns ranks into their positions in a tree, and positions into ranks.
func (c *Call) swap(rank int) int {
	switch rank {
	case 0:
		return c.Root
	case c.Root:
		return 0
	}
	return rank
}

// none is the index of no op.
const none = -1

// Dissemination emits a rank's ops of a dissemination: a round for each power of two below the number of ranks.
func Dissemination(e *Emitter, c Call) {
	recv := none
	for dist := 1; dist < c.Ranks; dist *= 2 {
		send := e.Send((c.Rank+dist)%c.Ranks, c.Bytes, c.Tag)
		if recv != none {
			e.Requires(send, recv)
		}
		recv = e.Recv((c.Rank-dist+c.Ranks)%c.Ranks, c.Bytes, c.Tag)
	}
}

// BinomialBcast emits a rank's ops of a broadcast from the root down a binomial tree. If the number of ranks is not a
// power of two, some dependencies are repeated.
func BinomialBcast(e *Emitter, c Call) {
	v := c.swap(c.Rank)
	send, recv := none, none
	for k := range rounds(c.Ranks) {
		p := 1 << k
		if v < p && v+p < c.Ranks {
			send = e.Send(c.swap(v+p), c.Bytes, c.Tag)
		}
		if send != none && recv != none {
			e.Requires(send, recv)
		}
		if p <= v && v < 2*p {
			recv = e.Recv(c.swap(v-p), c.Bytes, c.Tag)
		}
	}
}

// BinomialReduce emits a rank's ops of a reduction up a binomial tree to the root. The send of a rank stands before the
// receives that it depends on. If the number of ranks is not a power of two, some dependencies are repeated.
func BinomialReduce(e *Emitter, c Call) {
	v := c.swap(c.Rank)
	send, recv := none, none
	for k := range rounds(c.Ranks) {
		p := 1 << k
		if v < p && v+p < c.Ranks {
			recv = e.Recv(c.swap(v+p), c.Bytes, c.Tag)
		}
		if send != none && recv != none {
			e.Requires(send, recv)
		}
		if p <= v && v < 2*p {
			send = e.Send(c.swap(v-p), c.Bytes, c.Tag)
		}
	}
}

// rounds returns the logarithm of n to base 2, rounded up.
func rounds(n int) int {
	return bits.Len(uint(n - 1))
}

// LinearAlltoall emits a rank's ops of an unordered all-to-all exchange.
func LinearAlltoall(e *Emitter, c Call) {
	for s := 1; s < c.Ranks; s++ {
		e.Send((c.Rank+s)%c.Ranks, c.Bytes, c.Tag)
		e.Recv((c.Rank-s+c.Ranks)%c.Ranks, c.Bytes, c.Tag)
	}
}

// RecursiveDoubling emits a rank's ops of MPICH's allreduce: the even ones of the first ranks send their data to their
// neighbours, so that a power of two remains; these exchange data with ranks at doubling distances.
func RecursiveDoubling(e *Emitter, c Call) {
	power := 1 << (bits.Len(uint(c.Ranks)) - 1)
	extra := c.Ranks - power
	last, id := none, c.Rank-extra
	if c.Rank < 2*extra {
		if c.Rank%2 == 0 {
			e.Send(c.Rank+1, c.Bytes, c.Tag)
			e.Recv(c.Rank+1, c.Bytes, c.Tag)
			return
		}
		last, id = e.Recv(c.Rank-1, c.Bytes, c.Tag), c.Rank/2
	}
	for mask := 1; mask < power; mask *= 2 {
		peer := id ^ mask
		if peer < extra {
			peer = 2*peer + 1
		} else {
			peer += extra
		}
		send := e.Send(peer, c.Bytes, c.Tag)
		if last != none {
			e.Requires(send, last)
		}
		last = e.Recv(peer, c.Bytes, c.Tag)
	}
	if c.Rank < 2*extra {
		e.Requires(e.Send(c.Rank-1, c.Bytes, c.Tag), last)
	}
}
