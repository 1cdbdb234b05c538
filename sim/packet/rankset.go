package packet

// rankSet is a set of ranks that lists them in the order in which an unordered_set<int> of libstdc++ does that was made
// for them: ATLAHS lets ranks go on in that order.
type rankSet struct {
	buckets   []int32 // of each, the rank before its first in the list; front: the list's first is its first
	next      []int32 // of each rank, the one behind it in the list
	in        []bool  // by rank
	first     int32
	size      int
	sizeIndex int // place of the number of buckets in bucketCounts
}

const (
	noRank   = -1
	listHead = -2
)

// bucketCounts are the numbers of buckets that the set grows through, primes.
var bucketCounts = [...]int{13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697,
	1447153, 2938679}

func newRankSet(ranks int) rankSet {
	s := rankSet{next: make([]int32, ranks), in: make([]bool, ranks), first: noRank}
	s.rehash(0)
	return s
}

// spread empties the buckets, of which there are as many as bucketCounts says.
func (s *rankSet) rehash(grown int) {
	s.sizeIndex = grown
	n := bucketCounts[grown]
	if cap(s.buckets) < n {
		s.buckets = make([]int32, n)
	}
	s.buckets = s.buckets[:n]
	for i := range s.buckets {
		s.buckets[i] = noRank
	}
}

// clear makes the set a new one.
func (s *rankSet) clear() {
	if s.size == 0 {
		return
	}
	for r := s.first; r != noRank; r = s.next[r] {
		s.in[r] = false
	}
	s.first, s.size = noRank, 0
	s.rehash(0)
}

func (s *rankSet) add(rank uint32) {
	if s.in[rank] {
		return
	}
	if s.size == len(s.buckets) && s.sizeIndex+1 < len(bucketCounts) {
		list := s.first
		s.first = noRank
		s.rehash(s.sizeIndex + 1)
		for list != noRank {
			r := list
			list = s.next[r]
			s.insert(r)
		}
	}
	s.in[rank] = true
	s.size++
	s.insert(int32(rank))
}

// link puts a rank at the front of its bucket, or if that is empty, of the list.
func (s *rankSet) insert(r int32) {
	bucket := &s.buckets[int(r)%len(s.buckets)]
	switch *bucket {
	case noRank:
		s.next[r] = s.first
		if s.first != noRank {
			s.buckets[int(s.first)%len(s.buckets)] = r
		}
		s.first, *bucket = r, listHead
	case listHead:
		s.next[r], s.first = s.first, r
	default:
		s.next[r], s.next[*bucket] = s.next[*bucket], r
	}
}
