package nccl

// does is the effect of an op on the data of its rank. Tests prove with it that algorithms are correct.
type does uint8

const (
	holds           does = iota // a receive for a work op that waits for it
	keeps                       // a receive into the memory of the rank
	sendsOn                     // a send from the memory
	copiesInto                  // work: copies the data of the receives it waits for to the memory
	reducesInto                 // work: reduces them with the memory
	publishes                   // makes memory readable through the switch
	reducesInSwitch             // reduces what all GPUs of the node published to the memory
	spreads                     // writes memory to the buffers of all GPUs of the node
	gathers                     // copies the buffer to the memory
)

// cell is a range of elements on which no algorithm divides further.
type cell struct {
	channel, part int64 // part: position of the rank to which the elements belong in allgather and reduce-scatter
	first, n      int64 // elements
}

// prove records the effect of an op.
func (f *feed) prove(op int32, d does, c cell) {
	if f.proof != nil && !f.Counting() && c.n > 0 {
		f.proof(f.rank, op, d, c)
	}
}

// provePiece records what an op does with piece i of the current chunk.
func (f *feed) provePiece(op int32, d does, i int) {
	if f.proof == nil {
		return
	}
	first := f.at
	for _, bytes := range f.cut.data[:i] {
		first += bytes / f.typeSize
	}
	f.prove(op, d, cell{f.channel, f.part, first, f.cut.data[i] / f.typeSize})
}

// receives returns what a receive does whose data work w needs.
func receives(w work) does {
	if w == noWork {
		return keeps
	}
	return holds
}

// does returns what work on received data does.
func (w work) does() does {
	if w == copies {
		return copiesInto
	}
	return reducesInto
}
