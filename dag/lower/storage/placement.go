package storage

// arrange places n[kind] components of each kind on ranks, kind after kind or spread evenly, and returns their ranks.
func arrange(spread bool, n []int64) [][]int32 {
	total := int64(0)
	for _, count := range n {
		total += count
	}
	ranks := make([][]int32, len(n))
	var free *circle
	if spread {
		free = newCircle(int32(total))
	}
	next := int32(0)
	for kind, count := range n {
		ranks[kind] = make([]int32, count)
		for i := range ranks[kind] {
			if spread {
				next = free.take(evenly(int64(i)+1, total, count+1))
			}
			ranks[kind][i] = next
			next++
		}
	}
	return ranks
}

// evenly returns i*total/parts, rounded half to even.
func evenly(i, total, parts int64) int32 {
	whole, rest := i*total/parts, i*total%parts
	if 2*rest > parts || 2*rest == parts && whole%2 == 1 {
		whole++
	}
	return int32(whole)
}

// circle finds free ranks on a ring of ranks, by union-find in both directions.
type circle struct {
	left, right []int32 // next candidate of each rank in each direction; a free rank refers to itself
}

func newCircle(n int32) *circle {
	c := &circle{make([]int32, n), make([]int32, n)}
	for i := range n {
		c.left[i], c.right[i] = i, i
	}
	return c
}

// take takes the free rank nearest to the wanted one; the left one if two are equally near.
func (c *circle) take(want int32) int32 {
	n := int32(len(c.left))
	l, r := nearest(c.left, want), nearest(c.right, want)
	at := r
	if (want-l+n)%n <= (r-want+n)%n {
		at = l
	}
	c.left[at], c.right[at] = (at-1+n)%n, (at+1)%n
	return at
}

// nearest follows the candidates from i to a free rank and halves the path.
func nearest(next []int32, i int32) int32 {
	for next[i] != i {
		next[i] = next[next[i]]
		i = next[i]
	}
	return i
}
