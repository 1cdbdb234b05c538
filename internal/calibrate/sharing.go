package calibrate

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/sim/fit"
)

// isShared reports whether a test has several messages at once.
func isShared(m fit.Measurement) bool {
	return m.Test == fit.Window && m.Window > 1 || m.Test == fit.Exchange || m.Test == fit.AllExchange || m.Incast() > 0
}

// shared predicts the time of a test with several messages at once.
func shared(ctx context.Context, m fit.Measurement, choice collective.Choice, time replayer) (float64, error) {
	if m.Test == fit.AllExchange || m.Incast() > 0 {
		return crowd(ctx, m, choice, time)
	}
	from, to, err := ends(m.Where)
	if err != nil {
		return 0, err
	}
	s := newScene(max(from, to) + 1)
	// The benchmark brings both ranks together: the second is ready one latency before the first goes on.
	s.send(from, to, 1)
	s.receive(to, from, 1)
	s.send(to, from, 1)
	s.receive(from, to, 1)
	s.mark()
	if m.Test == fit.Exchange {
		s.exchange(from, to, m.Bytes)
		s.exchange(to, from, m.Bytes)
	} else {
		s.window(from, to, m.Bytes, m.Window)
	}
	s.mark()
	at, _, err := s.run(ctx, choice, time)
	if err != nil {
		return 0, err
	}
	return at[from][1] - at[from][0], nil
}

// crowd predicts the time of a test of all ranks.
func crowd(ctx context.Context, m fit.Measurement, choice collective.Choice, time replayer) (float64, error) {
	ranks, senders := m.Ranks, m.Incast()
	if senders > 0 {
		ranks = senders + 1
	}
	s := newScene(ranks)
	s.collective(dag.Barrier, 0)
	s.mark()
	if senders > 0 {
		s.incast(senders, m.Bytes)
	} else {
		distance, err := strconv.Atoi(strings.TrimPrefix(m.Where, "d"))
		if err != nil || distance < 1 {
			distance = 1
		}
		for r := range ranks {
			with := r + distance
			if r/distance&1 == 1 {
				with = r - distance
			}
			if with < ranks {
				s.exchange(r, with, m.Bytes)
			}
		}
	}
	s.mark()
	at, _, err := s.run(ctx, choice, time)
	if err != nil {
		return 0, err
	}
	if senders > 0 {
		return at[0][1] - at[0][0], nil
	}
	return longestOf(at), nil
}

// predictions returns the predicted times of measurements in seconds; NaN for those that it cannot predict.
func predictions(ctx context.Context, rows []fit.Measurement, threads int, time replayer) ([]float64, error) {
	times := make([]float64, len(rows))
	err := par.EachOn(threads, len(rows), func(i int) error {
		var err error
		if times[i], err = shared(ctx, rows[i], collective.Choice{}, time); err != nil {
			times[i] = math.NaN()
		}
		return ctx.Err()
	})
	return times, err
}

// errorsOf returns the relative errors of the predictions of measurements; NaN for those that it cannot predict.
func errorsOf(ctx context.Context, rows []fit.Measurement, threads int, time replayer) ([]float64, error) {
	errs, err := predictions(ctx, rows, threads, time)
	for i, m := range rows {
		errs[i] = errs[i]/m.Seconds - 1
	}
	return errs, err
}
