package calibrate

import (
	"cmp"
	"context"

	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/packet"
)

// estimatePacket estimates the parameters of packet on a network.
func estimatePacket(ctx context.Context, tables []*fit.Table, o Options) (*fit.File, replayer, error) {
	if err := checkPlaces(tables, "packet"); err != nil {
		return nil, nil, err
	}
	routes, err := packet.NewRoutes(ctx, o.Topology)
	if err != nil {
		return nil, nil, err
	}
	if err := checkRanks(tables, routes.Hosts(), o.Topology); err != nil {
		return nil, nil, err
	}
	transport := cmp.Or(o.Transport, packet.DefaultTransport)
	defaults, err := packet.NewParams(transport, packet.CompatNone)
	if err != nil {
		return nil, nil, err
	}
	f, err := fit.Packet(tables, fit.PacketOptions{Options: fit.Options{Seed: o.Seed}, Topology: o.Topology,
		Transport: transport, Header: defaults.HeaderSize,
		Alone: func(where string, bytes, mss, header int64) (latency, transfer float64, err error) {
			from, to, err := ends(where)
			if err != nil {
				return 0, 0, err
			}
			return routes.Alone(from, to, bytes, mss, header)
		},
		Simulate: func(f *fit.File, where string, sizes []int64) ([]float64, error) {
			time, err := replayPacket(f)
			if err != nil {
				return nil, err
			}
			return pingPongs(ctx, where, sizes, time)
		}})
	if err != nil {
		return nil, nil, err
	}
	time, err := replayPacket(f)
	return f, time, err
}

// replayPacket returns the times of ranks on the packet backend with the parameters of a file.
func replayPacket(f *fit.File) (replayer, error) {
	settings, err := packet.Settings(f)
	settings = append(settings, [2]string{"topology", f.Topology}, [2]string{"transport", f.Model})
	return replayOn(packet.Backend.Name, settings), err
}

// pingPongs returns the times of ping-pongs between the ranks that a table names, half of round trips. Each begins when
// nothing of the one before is under way.
func pingPongs(ctx context.Context, where string, sizes []int64, time replayer) ([]float64, error) {
	from, to, err := ends(where)
	if err != nil {
		return nil, err
	}
	s := newScene(max(from, to) + 1)
	for _, bytes := range sizes {
		s.pause()
		s.mark()
		s.send(from, to, bytes)
		s.receive(to, from, bytes)
		s.send(to, from, bytes)
		s.receive(from, to, bytes)
		s.mark()
	}
	at, _, err := s.run(ctx, collective.Choice{}, time)
	if err != nil {
		return nil, err
	}
	seconds := make([]float64, len(sizes))
	for i := range sizes {
		seconds[i] = (at[from][2*i+1] - at[from][2*i]) / 2
	}
	return seconds, nil
}
