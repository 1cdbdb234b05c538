package packet

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/tracedag/tracedag/sim/topology"
)

// peerDriver reports the events of flows as lines of a peer; see package exec. A message is a flow.
type peerDriver struct {
	n   *network
	out *bufio.Writer
}

func (d *peerDriver) report(what string, f uint32) {
	fmt.Fprintln(d.out, what, d.n.flows[f].message, d.n.now)
	d.n.stop = true
}

func (d *peerDriver) lastByteSent(f uint32) { d.report("sent", f) }
func (d *peerDriver) delivered(f uint32)    { d.report("done", f) }
func (d *peerDriver) acknowledged(uint32)   {}
func (d *peerDriver) event(event, uint32)   {}

// PeerOptions returns options with a network, a transport and one host per rank.
func PeerOptions(network, transport string, ranks int) (Options, error) {
	t, err := topology.Load(network)
	if err != nil {
		return Options{}, err
	}
	o := Options{Network: t}
	if o.Params, err = NewParams(transport, CompatNone); err != nil {
		return o, err
	}
	for r := range ranks {
		o.Placement.Hosts = append(o.Placement.Hosts, uint32(r))
	}
	return o, nil
}

// ServePeer is the backend as a peer of the backend exec.
func ServePeer(in io.Reader, to io.Writer, network, transport string) error {
	o, err := PeerOptions(network, transport, 0)
	if err != nil {
		return err
	}
	n, err := newNetwork(&o)
	if err != nil {
		return err
	}
	d := &peerDriver{n, bufio.NewWriter(to)}
	n.driver = d
	lines, flows := bufio.NewScanner(in), uint32(0)
	for lines.Scan() {
		var word string
		fmt.Sscan(lines.Text(), &word)
		switch word {
		case "hello":
			fmt.Fprintln(d.out, "ready packet 1 sent stats")
		case "send":
			var id, from, to uint32
			var at, bytes uint64
			if _, err := fmt.Sscan(lines.Text(), &word, &id, &at, &from, &to, &bytes); err != nil {
				return err
			}
			n.run(at)
			n.now = max(n.now, at)
			flows++
			n.startFlow(n.openFlow(from, to, id, flows, bytes))
			continue
		case "run":
			d.run(lines.Text())
		case "stats":
			for i := range n.records {
				f := &n.records[i]
				fmt.Fprintf(d.out, "stat %d %v\n", i, f.text())
			}
			fmt.Fprintln(d.out, "end")
		case "bye":
			return nil
		}
		d.out.Flush()
	}
	return lines.Err()
}

// run answers "run T" or "run -".
func (d *peerDriver) run(line string) {
	until := uint64(math.MaxUint64)
	fmt.Sscanf(line, "run %d", &until)
	limit := until
	if limit < math.MaxUint64 {
		limit++
	}
	switch d.n.run(limit); {
	case d.n.stop:
		fmt.Fprintln(d.out, "now", d.n.now)
	case until == math.MaxUint64:
		fmt.Fprintln(d.out, "now -")
	default:
		fmt.Fprintln(d.out, "now", until)
	}
}

// text returns the times of a flow.
func (f *Flow) text() string {
	return fmt.Sprintf("%d-%d %dB %d..%d", f.Source, f.Target, f.Bytes, f.Start, f.Delivered)
}

// FlowTexts returns the times of all flows of a report.
func FlowTexts(r *Report) (texts []string) {
	for i := range r.Flows {
		texts = append(texts, r.Flows[i].text())
	}
	return texts
}
