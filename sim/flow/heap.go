package flow

// eventHeap is a heap of flows by the time of their event, then by number.
type eventHeap []uint32

func (h eventHeap) less(flows []stream, a, b uint32) bool {
	x, y := flows[a].event, flows[b].event
	return x < y || x == y && a < b
}

// push adds a flow.
func (h *eventHeap) push(flows []stream, f uint32) {
	flows[f].place = int32(len(*h))
	*h = append(*h, f)
	h.up(flows, len(*h)-1)
}

// place adds a flow, or moves it to its place after its time has changed.
func (h *eventHeap) place(flows []stream, f uint32) {
	i := int(flows[f].place)
	if i < 0 {
		h.push(flows, f)
		return
	}
	h.down(flows, i)
	h.up(flows, int(flows[f].place))
}

// remove removes the flow at index i.
func (h *eventHeap) remove(flows []stream, i int) {
	all := *h
	flows[all[i]].place = -1
	last := len(all) - 1
	moved := all[last]
	*h = all[:last]
	if i == last {
		return
	}
	(*h)[i] = moved
	flows[moved].place = int32(i)
	h.place(flows, moved)
}

func (h eventHeap) up(flows []stream, i int) {
	f := h[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !h.less(flows, f, h[parent]) {
			break
		}
		h[i] = h[parent]
		flows[h[i]].place = int32(i)
		i = parent
	}
	h[i] = f
	flows[f].place = int32(i)
}

func (h eventHeap) down(flows []stream, i int) {
	f := h[i]
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		for c, end := child+1, min(child+4, len(h)); c < end; c++ {
			if h.less(flows, h[c], h[child]) {
				child = c
			}
		}
		if !h.less(flows, h[child], f) {
			break
		}
		h[i] = h[child]
		flows[h[i]].place = int32(i)
		i = child
	}
	h[i] = f
	flows[f].place = int32(i)
}

// pendingHeap is a heap of links by their pending level, then by number.
type pendingHeap []uint32

func (h pendingHeap) less(links []link, a, b uint32) bool {
	x, y := links[a].pending, links[b].pending
	return x < y || x == y && a < b
}

func (h pendingHeap) up(links []link, i int) {
	l := h[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !h.less(links, l, h[parent]) {
			break
		}
		h[i] = h[parent]
		links[h[i]].place = int32(i + 1)
		i = parent
	}
	h[i] = l
	links[l].place = int32(i + 1)
}

func (h pendingHeap) down(links []link, i int) {
	l := h[i]
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		for c, end := child+1, min(child+4, len(h)); c < end; c++ {
			if h.less(links, h[c], h[child]) {
				child = c
			}
		}
		if !h.less(links, h[child], l) {
			break
		}
		h[i] = h[child]
		links[h[i]].place = int32(i + 1)
		i = child
	}
	h[i] = l
	links[l].place = int32(i + 1)
}
