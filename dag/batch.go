package dag

// Batch is a run of ranks that a reader can deliver together, and how much there is of them, so that what is made from
// them can be laid out beforehand.
type Batch struct {
	First, Last     int   // ranks First to Last-1
	Ops             int64 // how many ops they have
	Deps, StartDeps int64 // how many dependencies of each kind they have at most
}
