package compose

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// delay adds start to the times of a rank.
func delay(r *dag.Rank, start dag.Time) (err error) {
	if start == 0 {
		return nil
	}
	if r.Release, err = delayedReleases(r, start); err != nil {
		return err
	}
	if r.MeasuredStart, err = delayMeasured(r.MeasuredStart, start); err != nil {
		return err
	}
	r.MeasuredEnd, err = delayMeasured(r.MeasuredEnd, start)
	return err
}

// delayedReleases returns the release times of a rank that begins at start.
func delayedReleases(r *dag.Rank, start dag.Time) (dag.Column[dag.Time], error) {
	release := slices.Clone(r.Release)
	if start == 0 {
		return release, nil
	}
	for i := range r.Kind {
		at := r.Release.At(i)
		if at == 0 && r.Deps.Count(i)+r.StartDeps.Count(i) > 0 {
			continue // the ops that it waits for are delayed
		}
		if at < 0 || at > dag.MaxTime-start {
			return nil, fmt.Errorf("op %d: release %v plus start %v, expected 0s..%v", i, at, start, dag.MaxTime)
		}
		release.Set(i, at+start)
	}
	return release, nil
}

func delayMeasured(times []dag.Time, start dag.Time) ([]dag.Time, error) {
	times = slices.Clone(times)
	for i, t := range times {
		if t == dag.Unmeasured {
			continue
		}
		if t > dag.MaxTime-start {
			return nil, fmt.Errorf("op %d: measured time %v plus start %v, expected at most %v", i, t, start,
				dag.MaxTime)
		}
		times[i] = t + start
	}
	return times, nil
}
