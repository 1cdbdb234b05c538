package exec

import (
	"bytes"
	"io"
	"testing"
)

// FuzzConversation reads an output of a peer with three messages. Reports that pass the checks keep the rules.
func FuzzConversation(f *testing.F) {
	for _, text := range []string{
		"ready x 1 sent stats\nsent 0 3\nnow 3\ndone 0 5\nnow 5\nnow -\nstat a 1\nend\n",
		"ready x 1 window\ndone 0 5\ndone 1 7\nnow 8\ndone 2 20\nnow 20\nnow -\n",
		"ready x 1\ndone 2 18446744073709551615\n", "ready x 1\nnow 9223372036854775807\n", "error x\n", "now -", "\n \n",
	} {
		f.Add([]byte(text), uint64(0))
		f.Add([]byte(text), uint64(10))
	}
	f.Fuzz(func(t *testing.T, output []byte, window uint64) {
		c := newConversation(io.Discard, bytes.NewReader(output), func() {})
		if c.begin(2, window>>1, nil) != nil {
			return
		}
		for op := range uint32(3) {
			if _, err := c.send(op, uint64(op), 0, 1, 8, -1, 0); err != nil {
				return
			}
		}
		for _, until := range []uint64{4, 1000, never, never} {
			before, open := c.now, c.open
			reports, idle, err := c.run(max(until, c.now), nil)
			if err != nil {
				return
			}
			done, last := 0, before
			for _, r := range reports {
				if r.at < last || r.at > max(until, before) || r.op > 2 {
					t.Fatalf("reports %v after %d, until %d", reports, before, until)
				}
				if last = r.at; r.done {
					done++
				}
			}
			if c.open != open-done || c.now < last || idle && until != never {
				t.Fatalf("%d messages in flight, before %d, reports %v, idle %v, now %d", c.open, open, reports, idle, c.now)
			}
		}
		c.finish()
	})
}
