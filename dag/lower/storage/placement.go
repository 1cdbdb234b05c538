package storage

// arrange returns the ranks of the components of each kind, of which there are n.
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

// evenly returns i*total/parts, rounded to the nearest, a half to the even one.
func evenly(i, total, parts int64) int32 {
	whole, rest := i*total/parts, i*total%parts
	if 2*rest > parts || 2*rest == parts && whole%2 == 1 {
		whole++
	}
	return int32(whole)
}

// circle is the ranks in a circle, of which some are taken.
type circle struct {
	left, right []int32 // of each rank, one that is nearer to the next free one, or itself if it is free
}

func newCircle(n int32) *circle {
	c := &circle{make([]int32, n), make([]int32, n)}
	for i := range n {
		c.left[i], c.right[i] = i, i
	}
	return c
}

// take takes the free rank that is nearest to the one wanted, of two the one to the left.
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

// nearest follows the ranks from i on to one that leads to itself, and shortens the way.
func nearest(next []int32, i int32) int32 {
	for next[i] != i {
		next[i] = next[next[i]]
		i = next[i]
	}
	return i
}
