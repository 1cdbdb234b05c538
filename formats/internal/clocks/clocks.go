// Package clocks corrects the clocks of the hosts of a job by events that end at the same time on all of them.
package clocks

import "slices"

// Ends collects by how much later events end on a host than on another one, in any unit of time.
type Ends map[[2]int32][]int64

// Add adds an event that ends on host a by late later than on host b, and thus on b by that much earlier.
func (e Ends) Add(a, b int32, late int64) {
	e[[2]int32{a, b}] = append(e[[2]int32{a, b}], late)
	e[[2]int32{b, a}] = append(e[[2]int32{b, a}], -late)
}

// Corrections returns, for each of n hosts, the time to add to its clock, at most the given one either way: the median
// difference to a host that is already corrected, beginning with the first host.
func (e Ends) Corrections(n int, most int64) []int64 {
	corrections := make([]int64, n)
	done := make([]bool, n)
	for root := range n {
		if done[root] {
			continue
		}
		done[root] = true
		for queue := []int32{int32(root)}; len(queue) > 0; queue = queue[1:] {
			for host := range int32(n) {
				if late := e[[2]int32{queue[0], host}]; len(late) > 0 && !done[host] {
					slices.Sort(late)
					corrections[host] = min(max(corrections[queue[0]]+late[len(late)/2], -most), most)
					done[host] = true
					queue = append(queue, host)
				}
			}
		}
	}
	return corrections
}
