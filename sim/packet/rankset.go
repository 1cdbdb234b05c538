package packet

// rankSet is a set of ranks with the iteration order of std::unordered_set<int> of libstdc++. ATLAHS resumes ranks in
// that order.
type rankSet struct {
	buckets   []int32 // by bucket: the rank before its first one in the list; listHead: none
	next      []int32 // by rank: the next one in the list
	in        []bool  // by rank: it is in the set
	first     int32
	size      int
	sizeIndex int // index in bucketCounts
}

const (
	noRank   = -1
	listHead = -2
)

// bucketCounts are the prime numbers of buckets of a growing set.
var bucketCounts = [...]int{13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061,
	712697, 1447153, 2938679}

func newRankSet(ranks int) rankSet {
	s := rankSet{next: make([]int32, ranks), in: make([]bool, ranks), first: noRank}
	s.rehash(0)
	return s
}

// rehash empties the buckets and sets their number.
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

// clear resets the set, including its number of buckets.
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

// insert adds a rank at the front of its bucket, or of the list if the bucket is empty.
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
