// Mytools is the tracedag suite with a format and a generator of its own: a text format with one message per line, and a
// token that travels around a ring.
//
//	go run . tracegen token --ranks 4 | go run . simulate
//	printf 'edges\n0 1 4096\n1 2 64\n' | go run . traceconv --edge-tag 7 --to goal
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/tracedag/tracedag"
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

func main() {
	os.Exit(tracedag.Main(os.Args, tracedag.Extensions{
		Formats:    []format.Format{edges},
		Generators: []*generator.Generator{&token},
		Pages:      map[string]string{"formats/edges": edgesPage, "generators/token": tokenPage},
	}))
}

// Reference pages: "--help edges" and "--help token" print them.
var (
	//go:embed edges.md
	edgesPage string
	//go:embed token.md
	tokenPage string
)

// edges is a text format: a line "edges", then source, destination and size in bytes of each message.
var edges = format.Format{
	Name:       "edges",
	Title:      "messages, one per line: source, destination, bytes",
	Extensions: []string{".edges"},
	Detect:     func(head []byte) bool { return bytes.HasPrefix(head, []byte("edges\n")) },
	Read:       readEdges,
	Write:      writeEdges,
	Losses:     edgeLosses,
	Options: &format.OptionTable{
		Name: "edges", Title: "Message lists", New: func() format.Options { return &edgeOptions{} },
	},
}

// edgeOptions are the options of reading.
type edgeOptions struct{ tag int64 }

// Params describes the options.
func (o *edgeOptions) Params() param.Set {
	return param.Set{param.Int(&o.tag, "edge-tag", "tag of all messages")}
}

// maxRank bounds the memory that a line can take.
const maxRank = 1 << 20

func readEdges(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a message list")
	if err != nil {
		return nil, err
	}
	own := format.Own(o.Own, func() *edgeOptions { return &edgeOptions{} })
	type message struct {
		from, to int
		bytes    int64
	}
	var messages []message
	ranks := 0
	lines := bufio.NewScanner(in.Reader)
	for n := int64(1); lines.Scan(); n++ {
		if n == 1 {
			continue // the signature
		}
		var m message
		_, err := fmt.Sscanf(lines.Text(), "%d %d %d", &m.from, &m.to, &m.bytes)
		if err != nil || min(m.from, m.to) < 0 || max(m.from, m.to) >= maxRank || m.bytes < 0 {
			return nil, &format.SyntaxError{
				File: in.Name, Line: n, Expected: "source, destination and bytes", Found: lines.Text(),
			}
		}
		messages = append(messages, m)
		ranks = max(ranks, m.from+1, m.to+1)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	b := dag.NewBuilder(ranks)
	for _, m := range messages {
		b.Rank(m.from).Send(int32(m.to), m.bytes, own.tag)
		b.Rank(m.to).Recv(int32(m.from), m.bytes, own.tag)
	}
	return b.Trace(), nil
}

// edgeLosses counts what a list of messages cannot hold.
func edgeLosses(t *dag.Trace) []format.Loss {
	var others, deps, tags int64
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for op, kind := range r.Kind {
			if kind != dag.Send && kind != dag.Recv {
				others++
			}
			if r.Tag.At(op) != 0 {
				tags++
			}
		}
		deps += r.Deps.Present() + r.StartDeps.Present()
	}
	var losses format.Losses
	losses.Add("they are no messages", others)
	losses.Add("dependencies", deps)
	losses.Add("tags", tags)
	losses.AddFields(t)
	losses.AddRareFields(t)
	return losses
}

func writeEdges(w io.Writer, t *dag.Trace, _ format.WriteOptions) error {
	out := bufio.NewWriter(w)
	out.WriteString("edges\n")
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for op, kind := range r.Kind {
			if kind == dag.Send {
				fmt.Fprintln(out, rank, r.Peer.At(op), r.Bytes.At(op))
			}
		}
	}
	return out.Flush()
}

// token is a generator: a token travels around a ring.
var token = generator.Generator{
	Name:  "token",
	Title: "token that travels around a ring",
	Group: generator.Patterns,
	New:   func() generator.Config { return &tokenConfig{ranks: 4, rounds: 1, bytes: 64} },
}

type tokenConfig struct {
	ranks, rounds int
	bytes         int64
}

// Params describes the parameters.
func (c *tokenConfig) Params() param.Set {
	return param.Set{
		param.Int(&c.ranks, "ranks", "number of ranks").Range(2, 1<<20),
		param.Int(&c.rounds, "rounds", "rounds of the token").Range(1, 1<<20),
		param.Size(&c.bytes, "bytes", "size of the token"),
	}
}

// Source returns the trace.
func (c *tokenConfig) Source(*generator.Env) (dag.Source, error) {
	b := dag.NewBuilder(c.ranks)
	last := make([]int, c.ranks) // op of each rank that the next one follows
	for step := range c.ranks * c.rounds {
		from, to := step%c.ranks, (step+1)%c.ranks
		var after []int
		if step > 0 {
			after = []int{last[from]}
		}
		b.Rank(from).Send(int32(to), c.bytes, int64(step), after...)
		last[to] = b.Rank(to).Recv(int32(from), c.bytes, int64(step))
	}
	return dag.FromTrace(b.Trace()), nil
}
