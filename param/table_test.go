package param

import "testing"

func TestMarkdown(t *testing.T) {
	var size int64 = 4096
	var count int
	var mode, name string
	var on bool
	set := Set{
		Size(&size, "queue", "capacity | per port").Shorthand("q"),
		Choice(&mode, "mode", "policy", "first", "second").Default("first"),
		Bool(&on, "whole", "pad packets"),
		String(&name, "old", "former flag").Hidden(),
		Int(&count, "window", "packets in flight").Only(),
		Enum(new(textualFlag), "cut", "cut the window", "on", "off").Placeholder("on|off").Only(),
	}.Under("Switches", "queue", "mode")
	const want = "Switches:\n\n| flag | default | |\n| --- | --- | --- |\n" +
		"| `-q, --queue SIZE` | 4KiB | capacity \\| per port |\n| `--mode NAME` | first | policy: first, second |\n" +
		"\nOther:\n\n| flag | default | |\n| --- | --- | --- |\n| `--whole` |  | pad packets |\n" +
		"\nParameters of --sweep:\n\n| key | default | |\n| --- | --- | --- |\n| `window=N` |  | packets in flight |\n" +
		"| `cut=on\\|off` |  | cut the window |\n"
	if got := set.Markdown("Other"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a missing name does not panic")
		}
	}()
	set.Under("X", "none")
}

// textualFlag is a value without text.
type textualFlag struct{}

func (*textualFlag) UnmarshalText([]byte) error   { return nil }
func (*textualFlag) MarshalText() ([]byte, error) { return nil, nil }
