package pattern

import "github.com/tracedag/tracedag/dag/lower/collective"

// stencil2D places the ranks row by row on a torus as close to a square as their number allows. In each iteration a
// rank exchanges a message with each of its neighbours concurrently; a dimension of one rank has no neighbours.
func stencil2D(p *Params, rank int, s *collective.Schedule) error {
	rows := 1
	for r := 2; r*r <= p.Ranks; r++ {
		if p.Ranks%r == 0 {
			rows = r
		}
	}
	columns := p.Ranks / rows
	row, column := rank/columns, rank%columns
	var neighbours []int
	if rows > 1 {
		neighbours = append(neighbours, (row-1+rows)%rows*columns+column, (row+1)%rows*columns+column)
	}
	if columns > 1 {
		neighbours = append(neighbours, row*columns+(column-1+columns)%columns, row*columns+(column+1)%columns)
	}
	for _, n := range neighbours {
		s.Send(n, p.Bytes)
	}
	for _, n := range neighbours {
		s.Recv(n, p.Bytes)
	}
	return nil
}
