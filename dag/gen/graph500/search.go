package graph500

// The queries and messages of each process, level by level, by the rules of the reference program.

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// search is the state that all ranks share.
type search struct {
	p          *Params
	seed       int64
	root       int // the process of the root
	rootDegree int64
	levels     [][]amount // of each process
	targets    deliveries
}

// amount is the traffic of a process in a level.
type amount struct{ queries, messages int64 }

// draws returns the random stream for a purpose of a process in a level.
func draws(seed int64, level, process int, purpose string) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], uint64(seed))
	binary.LittleEndian.PutUint32(key[8:], uint32(level))
	binary.LittleEndian.PutUint32(key[12:], uint32(process))
	copy(key[16:], purpose)
	return rand.New(rand.NewChaCha8(key))
}

// newSearch draws the root and the amounts.
func newSearch(p *Params, seed int64) *search {
	s := &search{p: p, seed: seed, targets: &drawn{newTargets(p.Nodes, seed), p.Coalescing}}
	s.root, s.rootDegree = p.drawRoot(seed)
	n := int64(p.Nodes)
	total := p.totalEdges()
	all := total - (total+n-1)/n                      // queries between processes
	first := s.rootDegree - s.rootDegree/n            // of level 0
	share := float64(n-1) / float64(n)                // of edges that lead to another process
	expected := float64(total)*share - float64(first) // expected rest after a level
	s.levels = append(s.levels, make([]amount, n))
	s.levels[0][s.root] = amount{first, max(1, messagesOf(first, p.Nodes, p.Coalescing))}
	left := all - first
	w := p.equations(s.rootDegree)
	for level := 1; s.continues(level, left, all); level++ {
		mean := min(w.mean(level), math.Ceil(float64(left)/share))
		// Beyond the fitted scales and edge factors, sigma is unbounded.
		sigma := p.Variation * min(w.sigma(level), 4*float64(total))
		amounts := make([]amount, n)
		behind := int64(float64(left) - expected)
		for process := range amounts {
			amounts[process] = p.drawAmount(draws(seed, level, process, "amount"), mean, sigma, behind)
			left -= amounts[process].queries
		}
		s.levels = append(s.levels, amounts)
		expected -= mean
	}
	return s
}

// continues reports whether another level follows, given the remaining and the total number of queries.
func (s *search) continues(level int, left, all int64) bool {
	const earliest = 5 // the first level after which a rest may remain
	return left > 0 && level < s.p.MaxLevels &&
		(level <= earliest || float64(left) > s.p.Rest*float64(all))
}

// written returns the levels of the trace, from first up to, but without, end.
func (s *search) written() (first, end int) {
	if s.p.Levels == nil {
		return 0, len(s.levels)
	}
	return s.p.Levels.First, min(s.p.Levels.Last+1, len(s.levels))
}

// drawRoot returns the process and the degree of the root. It draws those that are not given.
func (p *Params) drawRoot(seed int64) (process int, degree int64) {
	if process = p.RootProcess; process < 0 {
		process = draws(seed, 0, 0, "root process").IntN(p.Nodes)
	}
	if degree = p.RootDegree; degree == 0 {
		degree = p.drawRootDegree(seed, draws(seed, 0, 0, "root degree"))
	}
	return process, degree
}

// drawAmount draws the traffic of a process. Behind is the excess of unsent queries of all processes over the expected
// number; it is negative if they have sent too many.
func (p *Params) drawAmount(r *rand.Rand, mean, sigma float64, behind int64) amount {
	n := float64(p.Nodes)
	all := int64(-1)
	for all < 0 { // at most half of the draws are below 0
		all = int64(math.Trunc((mean + sigma*r.NormFloat64()) * (n - 1) / n))
	}
	if corrected := all + behind; corrected > 0 {
		all = corrected
	}
	// With fewer queries than processes, some processes have none.
	if r.Float64() >= destinations(float64(all), n)/n {
		return amount{}
	}
	queries := all / wholeDestinations(all, p.Nodes)
	return amount{queries, messagesOf(queries, p.Nodes, p.Coalescing)}
}

// wholeDestinations is eq. 2 as the reference program computes it.
func wholeDestinations(queries int64, n int) int64 {
	return max(1, int64(destinations(float64(queries), float64(n))))
}

// messagesOf is eq. 3 as the reference program computes it.
func messagesOf(queries int64, n int, coalescing int64) int64 {
	if queries == 0 {
		return 0
	}
	to := wholeDestinations(queries, n)
	each := (queries + to - 1) / to
	return to * ((each + coalescing - 1) / coalescing)
}

// run is a sequence of messages with equally many queries.
type run struct{ messages, queries int64 }

// runs divides an amount among its messages, in the order of sending: full ones as long as at least one query is left
// for each other message; these share the rest as equally as possible, larger ones first.
func (a amount) runs(coalescing int64) [3]run {
	full := int64(0)
	if spare := a.queries - a.messages; spare >= coalescing-1 {
		full = a.messages
		if coalescing > 1 {
			full = min(full, spare/(coalescing-1))
		}
	}
	left := a.messages - full
	if left == 0 {
		return [3]run{{full, coalescing}}
	}
	rest := a.queries - full*coalescing
	return [3]run{{full, coalescing}, {rest % left, rest/left + 1}, {left - rest%left, rest / left}}
}
