// This file lists several traces, one per line.

package tracecat

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
)

// listed is a trace in the list, and its JSON form. Error is the only field besides Input of a trace that cannot be
// read.
type listed struct {
	Input  string `json:"input"`
	Format string `json:"format,omitempty"`
	Title  string `json:"title,omitempty"`
	*listedCounts
	Error string `json:"error,omitempty"`
}

type listedCounts struct {
	Ranks           int       `json:"ranks"`
	Ops             int64     `json:"ops"`
	Bytes           *big.Int  `json:"bytes"` // of sends, collectives, memory and storage accesses
	SentBytes       dag.Total `json:"sent_bytes"`
	CollectiveBytes dag.Total `json:"collective_bytes"`
	Collectives     int64     `json:"collectives"` // ops that enter a collective
	CalcTime        *big.Int  `json:"calc_ps"`
}

var listedColumns = []string{
	"input", "format", "title", "ranks", "ops", "bytes", "sent_bytes", "collective_bytes", "collectives", "calc_ps",
	"error",
}

// list prints a line per trace. A trace that cannot be read has an error in its line.
func (v *view) list(p *cli.Program, names []string, flags cli.ReadFlags) error {
	out, err := p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	write, finish := v.listWriter(out)
	failed := 0
	for _, name := range p.DistinctTraces(names, flags.From) {
		row := listed{Input: name}
		if err := row.read(p, flags); err != nil {
			if cli.IsUsage(err) {
				return err
			}
			failed++
			row = listed{Input: name, Error: withoutName(err, name)}
		}
		if err := write(&row); err != nil {
			return err
		}
	}
	if err := errors.Join(finish(), out.Commit()); err != nil {
		return err
	}
	if failed > 0 {
		p.Info("%d of the traces cannot be read", failed)
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// withoutName returns the text of an error without the name of the input, unless a line number follows the name.
func withoutName(err error, name string) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) && path.Path == name {
		return path.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), name+": ")
}

// read sets the fields to those of the trace.
func (l *listed) read(p *cli.Program, flags cli.ReadFlags) error {
	s, err := open(p, l.Input, flags)
	if err != nil {
		return err
	}
	defer s.Close()
	h, err := s.Header()
	if err != nil {
		return err
	}
	c, err := dag.Count(s)
	if err != nil {
		return err
	}
	bytes := new(big.Int)
	for _, t := range [...]dag.Total{c.SentBytes, c.CollectiveBytes, c.MemBytes, c.IOBytes} {
		bytes.Add(bytes, t.Big())
	}
	l.Format, l.Title = s.in.Format.Name, h.Title
	l.listedCounts = &listedCounts{
		Ranks: h.Ranks, Ops: c.Ops, Bytes: bytes, SentBytes: c.SentBytes, CollectiveBytes: c.CollectiveBytes,
		Collectives: c.Kinds[dag.Coll], CalcTime: c.CalcTime,
	}
	return nil
}

// listWriter returns functions that write a line and the end of the list in the form that the flags select.
func (v *view) listWriter(out *cli.Output) (write func(*listed) error, finish func() error) {
	switch {
	case v.json:
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return func(l *listed) error { return encoder.Encode(l) }, func() error { return nil }
	case v.csv:
		w := csv.NewWriter(out)
		begun := false
		return func(l *listed) error {
				if !begun {
					w.Write(listedColumns)
				}
				begun = true
				return w.Write(l.cells())
			}, func() error {
				w.Flush()
				return w.Error()
			}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "name\tformat\ttitle\tranks\tops\tbytes\tcollectives\tcompute time\n")
	return func(l *listed) error {
		if l.Error != "" {
			_, err := fmt.Fprintf(table, "%s\terror: %s\n", plain(l.Input), plain(strings.TrimSpace(l.Error)))
			return err
		}
		title := "-"
		if l.Title != "" {
			title = textOf(l.Title)
		}
		_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\t%d\t%s\n", plain(l.Input), l.Format, title, l.Ranks,
			l.Ops,
			sizeOf(l.Bytes), l.Collectives, formatTime(l.CalcTime))
		return err
	}, table.Flush
}

// cells returns the values of listedColumns.
func (l *listed) cells() []string {
	if l.listedCounts == nil {
		cells := make([]string, len(listedColumns))
		cells[0], cells[len(cells)-1] = plain(l.Input), plain(l.Error)
		return cells
	}
	return []string{
		plain(l.Input), l.Format, plain(l.Title), strconv.Itoa(l.Ranks), strconv.FormatInt(l.Ops, 10), l.Bytes.String(),
		l.SentBytes.String(), l.CollectiveBytes.String(), strconv.FormatInt(l.Collectives, 10), l.CalcTime.String(), "",
	}
}
