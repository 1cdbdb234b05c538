// The patterns.

package schedgen

import (
	"fmt"
	"math/bits"

	"github.com/tracedag/tracedag/dag"
)

var both = []Variant{Upstream, ATLAHS}

var patterns = []Pattern{
	{"allreduce_recdoub", "reduce-scatter by recursive halving, then allgather by doubling", both, allreduceRecdoub},
	{"allreduce_ring", "2 (n - 1) rounds with the two neighbours in a ring", both, allreduceRing},
	{"binarytreebcast", "broadcast down a binary tree", both, binaryTreeBcast},
	{"binomialtreebcast", "broadcast down a binomial tree", both, tree(BinomialBcast)},
	{"binomialtreereduce", "reduction up a binomial tree", both, tree(BinomialReduce)},
	{"chained_dissem", "five disseminations in a chain, with marks that no rank receives", both, chainedDissem},
	{"dissemination", "rounds with the ranks at distances 1, 2, 4, ...", both, flat(Dissemination)},
	{"doublering", "a message around a ring, and one in the opposite direction", both, doubleRing},
	{"gather", "every rank sends to the root", both, gather},
	{"linbarrier", "every rank sends to rank 0, which answers when it has heard from all", both, linbarrier},
	{"linear_alltoall", "every rank sends to every other", both, flat(LinearAlltoall)},
	{"linear_alltoallv", "linear_alltoall with random sizes", both, linearAlltoallv},
	{"nwaydissemination", "dissemination to several ranks a round, with a reduction", both, nwayDissemination},
	{"pipelinedring", "broadcast along a chain, in segments", both, pipelinedRing(false)},
	{"pipelinedringdep", "pipelinedring that receives a segment once the one before is sent", both,
		pipelinedRing(true)},
	{"random_bisect", "half of the ranks send to the other half, in random pairs", both, randomBisect(false)},
	{"random_bisect_fd_sym", "random_bisect in both directions", both, randomBisect(true)},
	{"resnet", "a training step of ResNet-152: ten overlapped allreduces", []Variant{Upstream}, resnet},
	{"resnet152", "resnet with tags that differ from rank to rank", []Variant{ATLAHS}, resnet},
	{"scatter", "the root sends to every other rank", both, scatter},
}

// checkRoot returns an error if the root is not a rank.
func (p *Params) checkRoot() error {
	if p.Root < 0 || p.Root >= p.Ranks {
		return fmt.Errorf("root is %d, expected 0..%d", p.Root, p.Ranks-1)
	}
	return nil
}

// call returns the collective's description of a rank's part in a pattern.
func (p *Params) call(rank int) Call {
	return Call{Ranks: p.Ranks, Rank: rank, Root: p.Root, Bytes: p.Bytes}
}

// flat is the pattern of a collective without a root.
func flat(collective func(*Emitter, Call)) func(*Params, int64) (plan, error) {
	return func(p *Params, _ int64) (plan, error) {
		return func(e *Emitter, rank int) { collective(e, p.call(rank)) }, nil
	}
}

// tree is the pattern of a collective with a root.
func tree(collective func(*Emitter, Call)) func(*Params, int64) (plan, error) {
	return rooted(func(p *Params, e *Emitter, rank int) { collective(e, p.call(rank)) })
}

// rooted is a pattern with a root.
func rooted(emit func(p *Params, e *Emitter, rank int)) func(*Params, int64) (plan, error) {
	return func(p *Params, _ int64) (plan, error) {
		return func(e *Emitter, rank int) { emit(p, e, rank) }, p.checkRoot()
	}
}

// binaryTreeBcast compares ranks with positions in the tree, so that its messages match for root 0 only.
var binaryTreeBcast = rooted(func(p *Params, e *Emitter, rank int) {
	c := p.call(rank)
	recv := none
	if rank > 0 {
		recv = e.Recv(c.swap((rank-1)/2), p.Bytes, 0)
	}
	sends, n := [2]int{}, 0
	for child := 2*rank + 1; child <= 2*rank+2 && child < p.Ranks; child++ {
		sends[n] = e.Send(c.swap(child), p.Bytes, 0)
		n++
	}
	if rank > 0 {
		for _, send := range sends[:n] {
			e.Requires(send, recv)
		}
	}
})

func pipelinedRing(dep bool) func(*Params, int64) (plan, error) {
	return func(p *Params, _ int64) (plan, error) {
		if p.Bytes/p.SegmentSize >= maxSteps {
			return nil, fmt.Errorf("bytes is %d and segmentsize %d, expected fewer than %d segments",
				p.Bytes, p.SegmentSize, maxSteps)
		}
		return func(e *Emitter, rank int) { emitPipelinedRing(p, e, rank, dep) }, p.checkRoot()
	}
}

func emitPipelinedRing(p *Params, e *Emitter, rank int, dep bool) {
	c := p.call(rank)
	v := c.swap(rank)
	before := none // the previous round's send
	for done := int64(0); done < p.Bytes; done += p.SegmentSize {
		size := min(p.SegmentSize, p.Bytes-done)
		send, recv := none, none
		if v > 0 {
			recv = e.Recv(c.swap(v-1), size, 0)
		}
		if v < p.Ranks-1 {
			send = e.Send(c.swap(v+1), size, 0)
		}
		if send != none && recv != none {
			e.Requires(send, recv)
		}
		if dep && before != none && recv != none {
			e.Requires(recv, before)
		}
		before = send
	}
}

func doubleRing(p *Params, _ int64) (plan, error) {
	return func(e *Emitter, rank int) {
		next, previous := (rank+1)%p.Ranks, (rank-1+p.Ranks)%p.Ranks
		for range 2 {
			send := e.Send(next, p.Bytes, 0)
			recv := e.Recv(previous, p.Bytes, 0)
			if rank > 0 {
				e.Requires(send, recv)
			}
			next, previous = previous, next
		}
	}, nil
}

var gather = rooted(func(p *Params, e *Emitter, rank int) {
	if rank != p.Root {
		e.Send(p.Root, p.Bytes, 0)
		return
	}
	c := p.call(rank)
	for i := 1; i < p.Ranks; i++ {
		e.Recv(c.swap(i), p.Bytes, 0)
	}
})

var scatter = rooted(func(p *Params, e *Emitter, rank int) {
	if rank != p.Root {
		e.Recv(p.Root, p.Bytes, 0)
		return
	}
	c := p.call(rank)
	for i := 1; i < p.Ranks; i++ {
		e.Send(c.swap(i), p.Bytes, 0)
	}
})

func linbarrier(p *Params, _ int64) (plan, error) {
	return func(e *Emitter, rank int) {
		if rank > 0 {
			e.Send(0, 1, 0)
			e.Recv(0, 1, 0)
			return
		}
		all := e.Calc(0, 0)
		for i := 1; i < p.Ranks; i++ {
			recv := e.Recv(i, 1, 0)
			send := e.Send(i, 1, 0)
			e.Requires(all, recv)
			e.Requires(send, all)
		}
	}, nil
}

func linearAlltoallv(p *Params, _ int64) (plan, error) {
	modulus := p.Bytes / p.SkewRatio
	if modulus < 1 {
		return nil, fmt.Errorf("a2av-skew-ratio is %d, expected at most bytes, which is %d", p.SkewRatio, p.Bytes)
	}
	n := p.Ranks
	if n > maxMatrix {
		return nil, fmt.Errorf("ranks is %d, expected at most %d", n, maxMatrix)
	}
	// Drawn sizes are in 1..2^31; the size of a message is drawn[source*n + destination].
	drawn := make([]uint32, n*n)
	random := newAdditive()
	full := func(source, destination int) bool {
		return destination == p.Root || p.Outcast && source == (p.Root+1)%n
	}
	for i := range n {
		for j := range n {
			if !full(i, j) {
				drawn[i*n+j] = uint32(int64(random.next())%modulus) + 1
			}
		}
	}
	size := func(source, destination int) int64 {
		if full(source, destination) {
			return p.Bytes
		}
		return int64(drawn[source*n+destination])
	}
	return func(e *Emitter, rank int) {
		for s := 1; s < n; s++ {
			to, from := (rank+s)%n, (rank-s+n)%n
			e.Send(to, size(rank, to), 0)
			e.Recv(from, size(from, rank), 0)
		}
	}, nil
}

// maxMatrix is the largest number of ranks with a matrix of sizes.
const maxMatrix = 1 << 16

func allreduceRecdoub(p *Params, _ int64) (plan, error) {
	steps := bits.Len(uint(p.Ranks)) - 1
	return func(e *Emitter, rank int) {
		size, last := p.Bytes, none
		exchange := func(mask int, final bool) {
			send := e.Send(rank^mask, size, 0)
			if last != none {
				e.Requires(send, last)
			}
			last = e.Recv(rank^mask, size, 0)
			if p.RplDepCmp != None && !final {
				last = e.Calc(p.RplDepCmp, 0)
			}
		}
		for step := range steps {
			size /= 2
			exchange(1<<step, false)
		}
		for step := steps - 1; step >= 0; step-- {
			exchange(1<<step, step == 0)
			size *= 2
		}
	}, nil
}

func allreduceRing(p *Params, _ int64) (plan, error) {
	size := p.Bytes
	if p.Variant == Upstream {
		size /= int64(p.Ranks)
	}
	return func(e *Emitter, rank int) {
		next, previous := (rank+1)%p.Ranks, (rank-1+p.Ranks)%p.Ranks
		last := none
		for range 2 * (p.Ranks - 1) {
			send := e.Send(next, size, 0)
			if last != none {
				e.Requires(send, last)
			}
			last = e.Recv(previous, size, 0)
		}
	}, nil
}

// The patterns of deep learning number their collectives from here.
const (
	firstCollective = 100000
	communicator1   = 1 << 24 // in tags of upstream
)

// gradients are the numbers of floating-point values in the allreduces of ResNet-152.
var gradients = [...]int64{
	6511592, 6567936, 5905920, 6113280, 6176256, 6112768, 6176256, 6112768, 5321216, 5194816,
}

const (
	forward  = 119000 * dag.Nanosecond
	backward = 23800 * dag.Nanosecond // per gradient
)

func resnet(p *Params, _ int64) (plan, error) {
	return func(e *Emitter, rank int) {
		tag := int64(communicator1 + firstCollective)
		if p.Variant == ATLAHS {
			tag = firstCollective + int64(len(gradients)*rank) // the count continues from rank to rank
		}
		var last []int
		start := e.Calc(forward, 0)
		for i, n := range gradients {
			calc := e.Calc(backward, 0)
			e.Requires(calc, start)
			ready := e.Calc(0, 0)
			e.Requires(ready, calc)
			e.Mark()
			c := p.call(rank)
			c.Bytes, c.Tag = 4*n, tag+int64(i)
			Dissemination(e, c)
			last = e.Last(last[:0])
			for _, op := range last {
				e.Requires(op, ready)
			}
		}
	}, nil
}

func chainedDissem(p *Params, _ int64) (plan, error) {
	const (
		runs       = 5
		bytes      = 10000
		noReceiver = 9999999 // marks for another tool; no rank receives them
	)
	return func(e *Emitter, rank int) {
		tag := int64(communicator1 + firstCollective)
		if p.Variant == ATLAHS {
			tag = firstCollective
		}
		var first, last []int
		before := none
		for i := range int64(runs) {
			e.Mark()
			c := p.call(rank)
			c.Bytes, c.Tag = bytes, tag+i
			Dissemination(e, c)
			first, last = e.First(first[:0]), e.Last(last[:0])
			mark := e.Send(noReceiver, 0, c.Tag)
			if before != none {
				for _, op := range first {
					e.Requires(op, before)
				}
			}
			for _, op := range last {
				e.Requires(mark, op)
			}
			before = mark
		}
	}, nil
}

func randomBisect(symmetric bool) func(*Params, int64) (plan, error) {
	return func(p *Params, seed int64) (plan, error) {
		if p.Ranks < 2 {
			return nil, fmt.Errorf("ranks is %d, expected 2 or more", p.Ranks)
		}
		p.Ranks &^= 1
		half := p.Ranks / 2
		random := newMersenneTwister(uint32(seed))
		draw := random.fraction
		if p.Variant == ATLAHS {
			draw = random.uniform
		}
		order := permutation(p.Ranks, draw)
		peer, sends := make([]int32, p.Ranks), make([]bool, p.Ranks)
		for i := range half {
			a, b := order[i], order[i+half]
			peer[a], peer[b] = b, a
			sends[a] = true
		}
		return func(e *Emitter, rank int) {
			other := int(peer[rank])
			if sends[rank] {
				e.Send(other, p.Bytes, 0)
			}
			if !sends[rank] || symmetric {
				e.Recv(other, p.Bytes, 0)
			}
			if !sends[rank] && symmetric {
				e.Send(other, p.Bytes, 0)
			}
		}, nil
	}
}
