package graph500

// Messages of processes by destination, drawn or of a searched graph.

// deliveries tells the messages of a process in a level, of which it sends an amount.
type deliveries interface {
	// each calls visit for all processes that receive messages, in parts whose sum is the number of messages.
	each(level, source int, a amount, visit func(process int, messages int64))

	// received calls visit for the messages that a process receives, in the order of their sends.
	received(level, source, process int, a amount, visit func(messages, queries int64))

	// order returns the destinations of all messages in the order of their sends, in memory that it may take from
	// buffer.
	order(level, source int, a amount, buffer []int32) []int32
}

// drawn draws the destinations of each message.
type drawn struct {
	targets
	coalescing int64
}

func (d *drawn) each(level, source int, a amount, visit func(process int, messages int64)) {
	for i, run := range a.runs(d.coalescing) {
		d.targets.each(sent{source, level, i}, run.messages, visit)
	}
}

func (d *drawn) received(level, source, process int, a amount, visit func(messages, queries int64)) {
	for i, run := range a.runs(d.coalescing) {
		visit(d.to(sent{source, level, i}, process, run.messages), run.queries)
	}
}

func (d *drawn) order(level, source int, a amount, buffer []int32) []int32 {
	list := buffer[:0]
	for i, run := range a.runs(d.coalescing) {
		list = d.targets.order(sent{source, level, i}, run.messages, list)
	}
	return list
}

// explored is the queries of a searched graph.
type explored struct {
	processes  int
	coalescing int64
	seed       int64
	queries    [][]uint32 // by level: of each process to each, by sender
}

// row returns the queries of a process by receiver.
func (e *explored) row(level, source int) []uint32 {
	return e.queries[level][source*e.processes:][:e.processes]
}

// amount returns what a process sends. A receiver gets full messages, then one with the rest.
func (e *explored) amount(level, source int) (a amount) {
	for _, q := range e.row(level, source) {
		a.queries += int64(q)
	}
	e.each(level, source, a, func(_ int, messages int64) { a.messages += messages })
	return a
}

func (e *explored) each(level, source int, _ amount, visit func(process int, messages int64)) {
	for process, q := range e.row(level, source) {
		if q > 0 {
			visit(process, (int64(q)+e.coalescing-1)/e.coalescing)
		}
	}
}

func (e *explored) received(level, source, process int, _ amount, visit func(messages, queries int64)) {
	queries := int64(e.row(level, source)[process])
	visit(queries/e.coalescing, e.coalescing)
	if rest := queries % e.coalescing; rest > 0 {
		visit(1, rest)
	}
}

// order draws the order of full messages. Those with rests leave at the end of the level, by process.
func (e *explored) order(level, source int, _ amount, buffer []int32) []int32 {
	list := buffer[:0]
	for process, q := range e.row(level, source) {
		for range int64(q) / e.coalescing {
			list = append(list, int32(process))
		}
	}
	draws(e.seed, level, source, "order").Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	for process, q := range e.row(level, source) {
		if int64(q)%e.coalescing > 0 {
			list = append(list, int32(process))
		}
	}
	return list
}
