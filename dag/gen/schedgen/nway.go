// Dissemination to several ranks per round.

package schedgen

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

func nwayDissemination(p *Params, _ int64) (plan, error) {
	rounds := nwayRounds(p.NWay, p.Ranks)
	return func(e *Emitter, rank int) { emitNWay(p, e, rank, rounds) }, nil
}

// emitNWay emits a rank's ops: in each round it sends to nway ranks, receives from as many, and reduces the data of the
// previous round, in sequence.
func emitNWay(p *Params, e *Emitter, rank, rounds int) {
	sends, recvs := make([]int, p.NWay), make([]int, p.NWay)
	reduction := dag.Time(p.Bytes) * dag.Nanosecond
	factor := 1
	for round := range rounds {
		for w := range sends {
			sends[w] = e.Send((rank+(w+1)*factor)%p.Ranks, p.Bytes, 0)
		}
		if round > 0 {
			last := recvs[0]
			for _, recv := range recvs[1:] {
				calc := e.Calc(reduction, 0)
				e.Requires(calc, recv)
				e.Requires(calc, last)
				last = calc
			}
			calc := e.Calc(reduction, 0)
			e.Requires(calc, recvs[0])
			e.Requires(sends[p.NWay-1], last)
			for _, send := range sends {
				e.Requires(send, calc)
			}
		}
		for w := range recvs {
			distance := (w + 1) * factor % p.Ranks
			recvs[w] = e.Recv((rank-distance+p.Ranks)%p.Ranks, p.Bytes, 0)
		}
		factor *= p.NWay + 1
	}
}

// nwayRounds returns the logarithm of ranks to base nway + 1, rounded up, as the reference computes it: the quotient of
// two logarithms of the GNU C library in double precision, which is slightly too large for some powers.
func nwayRounds(nway, ranks int) int {
	rounds := 0
	for reached := 1; reached < ranks; reached *= nway + 1 {
		rounds++
	}
	if slices.Contains(inexact[:], [2]int{nway, ranks}) {
		rounds++
	}
	return rounds
}

// inexact are all such nway and ranks up to the limit of ranks.
var inexact = [...][2]int{
	{4, 125}, {4, 15625}, {5, 216}, {5, 46656}, {6, 16807}, {7, 2097152}, {17, 5832}, {18, 2476099}, {19, 3200000},
	{24, 15625}, {35, 46656}, {38, 59319}, {46, 103823}, {65, 287496}, {74, 421875}, {79, 512000}, {85, 636056},
	{130, 2248091}, {139, 2744000}, {142, 2924207}, {147, 3241792}, {156, 3869893}, {159, 4096000}, {161, 4251528},
	{171, 5088448}, {223, 11239424}, {230, 12326391}, {232, 12649337}, {240, 13997521}, {245, 14886936},
	{250, 15813251},
}
