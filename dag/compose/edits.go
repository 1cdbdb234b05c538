package compose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
)

// Ranges is a list of ranges of rank or node numbers.
type Ranges = units.Numbers

// Span is the time from From (inclusive) to To (exclusive).
type Span struct{ From, To dag.Time }

// Edits are edits of a single trace. Apply applies them in the order of the fields.
type Edits struct {
	Window *Span    // keeps the ops that start in it, see [Window]; nil: all
	Only   Ranges   // ranks to keep, see [KeepRanks]; nil: all
	Repeat int      // iterations, see [Repeat]; 0: one
	Scale  *big.Rat // factor for the durations of calcs, see [Scale]; nil: 1
}

// Notes receives messages for the user: Info about losses, and Warn warnings. A nil function discards them.
type Notes struct {
	Info, Warn func(format string, args ...any)
}

func (n *Notes) info(format string, args ...any) {
	if n.Info != nil {
		n.Info(format, args...)
	}
}

func (n *Notes) warn(format string, args ...any) {
	if n.Warn != nil {
		n.Warn(format, args...)
	}
}

// None reports whether there are no edits.
func (e *Edits) None() bool {
	return e.Window == nil && e.Only == nil && e.Repeat <= 1 && e.Scale == nil
}

// Apply returns the edited trace; it does not change t. Errors and notes begin with the name of the trace. Apply ends
// early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func (e *Edits) Apply(ctx context.Context, t *dag.Trace, name string, notes Notes) (*dag.Trace, error) {
	var removed Removed
	var err error
	if e.Window != nil {
		if t, removed, err = Window(ctx, t, e.Window.From, e.Window.To); err != nil {
			return nil, inFile(name, fmt.Errorf("window: %w", err))
		}
		removed.note(&notes, name, "outside the window")
	}
	if e.Only != nil {
		ranks, err := e.kept(len(t.Ranks))
		if err == nil {
			t, removed, err = KeepRanks(ctx, t, ranks)
		}
		if err != nil {
			return nil, inFile(name, fmt.Errorf("only-ranks: %w", err))
		}
		removed.note(&notes, name, "of other ranks")
	}
	if e.Repeat > 1 {
		if t, err = Repeat(ctx, t, e.Repeat); err != nil {
			return nil, inFile(name, fmt.Errorf("repeat: %w", err))
		}
	}
	if e.Scale != nil {
		var without int64
		if t, without, err = Scale(ctx, t, e.Scale.Num().Int64(), e.Scale.Denom().Int64()); err != nil {
			return nil, inFile(name, fmt.Errorf("scale-compute: %w", err))
		}
		if without > 0 {
			notes.warn("%s: scale-compute: %d calcs have operations but no duration and stay as they are; "+
				"--lower roofline, by itself before, gives them one", name, without)
		}
	}
	return t, nil
}

// scaleBy multiplies the factor for calcs by factor; nil means 1.
func (e *Edits) scaleBy(factor *big.Rat) error {
	switch {
	case factor == nil:
		return nil
	case e.Scale == nil:
		e.Scale = factor
		return nil
	}
	e.Scale = new(big.Rat).Mul(e.Scale, factor)
	return checkFactor(e.Scale)
}

// kept returns the ranks to keep, in 0..n-1 and ascending.
func (e *Edits) kept(n int) ([]int32, error) {
	for _, r := range e.Only {
		if r.Last >= int64(n) {
			return nil, fmt.Errorf("no rank %d in a trace of %d ranks", r.Last, n)
		}
	}
	if e.Only.Len() > int64(n) {
		return nil, fmt.Errorf("%d ranks to keep, but the trace has %d", e.Only.Len(), n)
	}
	kept := make([]bool, n)
	for _, r := range e.Only {
		for rank := r.First; rank <= r.Last; rank++ {
			kept[rank] = true
		}
	}
	ranks := []int32{}
	for rank, keep := range kept {
		if keep {
			ranks = append(ranks, int32(rank))
		}
	}
	return ranks, nil
}

// note reports the counts. The text ops describes the ops that were removed directly.
func (r *Removed) note(notes *Notes, name, ops string) {
	var parts []string
	for _, part := range []struct {
		n         int64
		one, many string
	}{
		{int64(r.Ranks), "rank", "ranks"}, {r.Ops, "op " + ops, "ops " + ops},
		{r.Messages, "send or receive whose partner was removed", "sends and receives whose partner was removed"},
		{r.Collectives, "part of a collective with removed parts", "parts of collectives with removed parts"},
	} {
		switch part.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+part.one)
		default:
			parts = append(parts, strconv.FormatInt(part.n, 10)+" "+part.many)
		}
	}
	if len(parts) > 0 {
		notes.info("%s: removed: %s", name, strings.Join(parts, ", "))
	}
	if r.Smaller > 0 {
		notes.info("%s: collectives with fewer ranks than before: %d ops", name, r.Smaller)
	}
}

// fileError is an error about a file or a trace. Its message begins with the name of the file or trace.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string { return e.name + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// inFile returns err as an error about a file, unless it is one already.
func inFile(name string, err error) error {
	var wrong *conf.Error
	var path *fs.PathError
	var file *fileError
	if errors.As(err, &wrong) || errors.As(err, &path) || errors.As(err, &file) {
		return err
	}
	return &fileError{name, err}
}

// parseFactor parses a factor such as 0.5 or 2/3.
func parseFactor(text string) (*big.Rat, error) {
	over, under, fraction := strings.Cut(text, "/")
	n, rest, err := units.CutNumber(over)
	if err == nil && rest == "" && fraction {
		var d *big.Rat
		if d, rest, err = units.CutNumber(under); err == nil && d.Sign() > 0 {
			n.Quo(n, d)
		} else {
			rest = under
		}
	}
	if err != nil || rest != "" {
		return nil, fmt.Errorf("expected a factor such as 0.5, 2 or 1/3, found %q", text)
	}
	return n, checkFactor(n)
}

func checkFactor(n *big.Rat) error {
	if !n.Num().IsInt64() || !n.Denom().IsInt64() {
		return fmt.Errorf("expected a less extreme factor or fewer digits, found %s", n.RatString())
	}
	return nil
}

// parseSpan parses FROM..TO, where one of the times may be missing.
func parseSpan(text string) (*Span, error) {
	from, to, ok := strings.Cut(text, "..")
	w := &Span{0, dag.MaxTime}
	var err error
	if ok && from != "" {
		w.From, err = units.ParseTime(from, 0)
	}
	if ok && err == nil && to != "" {
		w.To, err = units.ParseTime(to, 0)
	}
	if !ok || err != nil || w.To <= w.From {
		return nil, fmt.Errorf("expected FROM..TO such as 1ms..2.5ms, 1ms.. or ..2ms, found %q", text)
	}
	return w, nil
}
