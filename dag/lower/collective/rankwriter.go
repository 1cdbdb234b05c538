package collective

import "github.com/tracedag/tracedag/dag"

// rankWriter writes a rank of known size. It allocates the columns that nearly every op uses in full; the other columns
// grow on demand.
type rankWriter struct {
	rank   dag.Rank
	source *dag.Rank
	n      int        // ops so far
	edges  int        // dependencies so far
	rest   dag.Copier // of the fields of source that few ops use
}

// begin starts a rank of the given size in the memory of an earlier one. timed ranks have durations that the source
// lacks.
func (t *rankWriter) begin(source *dag.Rank, size extent, memory *dag.Rank, timed bool) {
	*t = rankWriter{source: source, rest: t.rest, rank: dag.Rank{
		Kind:  zeros(memory.Kind, size.ops),
		Bytes: zeros(memory.Bytes, size.ops),
		Peer:  zeros(memory.Peer, size.ops),
		Tag:   zeros(memory.Tag, size.ops),
		Deps:  dag.Edges{End: zeros(memory.Deps.End, size.ops), Off: zeros(memory.Deps.Off, size.deps)},
	}}
	if timed || len(source.Duration) > 0 {
		t.rank.Duration = zeros(memory.Duration, size.ops)
	}
	t.rank.Subkind = memory.Subkind[:0] // grows up to the last marker
	t.rest.Reset(&t.rank, source, dag.FieldKind, dag.FieldBytes, dag.FieldPeer, dag.FieldTag, dag.FieldComm,
		dag.FieldDuration, dag.FieldStream, dag.FieldNIC, dag.FieldJob, dag.FieldStep)
}

// zeros returns n zeros, in the memory of s if it is large enough.
func zeros[S ~[]E, E any](s S, n uint32) S {
	if int(n) > cap(s) {
		return make(S, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// add appends an op with the stream, NIC, job and step of op i of the source.
func (t *rankWriter) add(kind dag.Kind, i int) {
	r, s, n := &t.rank, t.source, t.n
	r.Kind[n] = kind
	r.Deps.End[n] = uint32(t.edges)
	if stream := s.Stream.At(i); stream != 0 {
		r.Stream.Set(n, stream)
	}
	if nic := s.NIC.At(i); nic != 0 {
		r.NIC.Set(n, nic)
	}
	if job := s.Job.At(i); job != 0 {
		r.Job.Set(n, job)
	}
	if step := s.Step.At(i); step != 0 {
		r.Step.Set(n, step)
	}
	t.n++
}

// last returns the index of the last op.
func (t *rankWriter) last() int32 {
	return int32(t.n - 1)
}

// marker appends a calc of zero duration with the attributes that add sets.
func (t *rankWriter) marker(i int) {
	t.add(dag.Calc, i)
	t.rank.Subkind.Set(t.n-1, dag.Marker)
}

// message sets the message fields of the last op.
func (t *rankWriter) message(peer int32, bytes, tag int64, comm int32) {
	r, n := &t.rank, t.n-1
	r.Peer[n], r.Bytes[n], r.Tag[n] = peer, bytes, tag
	if comm != 0 {
		r.Comm.Set(n, comm)
	}
}

// open sets the release time and the name of the last op.
func (t *rankWriter) open(release dag.Time, name string) {
	t.rank.Release.Set(t.n-1, release)
	t.rank.Name.Append(t.n-1, name)
}

// require makes the last op wait for the end of op on, which may be a later one.
func (t *rankWriter) require(on int32) {
	t.rank.Deps.Off[t.edges] = t.last() - on
	t.edges++
	t.rank.Deps.End[t.n-1] = uint32(t.edges)
}

// requireStart makes the last op wait for the start of op on, which may be a later one.
func (t *rankWriter) requireStart(on int32) {
	t.rank.StartDeps.Append(t.n-1, t.last()-on)
}

// copyOp appends op i of the source without its dependencies.
func (t *rankWriter) copyOp(i int) {
	s := t.source
	t.add(s.Kind[i], i)
	n := t.n - 1
	t.message(s.Peer.At(i), s.Bytes.At(i), s.Tag.At(i), s.Comm.At(i))
	if d := s.Duration.At(i); d != 0 {
		t.rank.Duration[n] = d
	}
	t.rest.Copy(n, i)
}
