package platform

import "fmt"

// Scale multiplies the latencies and the rates of links. Latencies of coordinates stay. It returns an error if one is
// beyond the limits of files; then some are multiplied.
func (p *Platform) Scale(latency, rate float64) error {
	for i := range p.Links {
		l := &p.Links[i]
		l.Latency *= latency
		l.Rate *= rate
		if l.Latency > maxTime || l.Rate > maxRate {
			return fmt.Errorf("expected latencies of at most %d s and at most %g bytes per second, found link %s with "+
				"%g s and %g bytes per second", maxTime, float64(maxRate), l.Name, l.Latency, l.Rate)
		}
	}
	return nil
}
