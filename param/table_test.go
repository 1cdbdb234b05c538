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

func TestSuggest(t *testing.T) {
	names := []string{"machine", "channels", "ranks", "nccl"}
	for unknown, want := range map[string]string{
		"machin": "machine", "chanels": "channels", "ncll": "nccl", "rnks": "ranks", "x": "", "": "", "colour": "",
	} {
		if want != "" {
			want = `; did you mean "` + want + `"?`
		}
		if got := Suggest(unknown, names); got != want {
			t.Errorf("%s: %q, want %q", unknown, got, want)
		}
	}
}

// TestKeys checks keys that are set in the text of another flag.
func TestKeys(t *testing.T) {
	var count int
	var size int64 = 4096
	set := Set{
		Count(&count, "channels", "number of channels", 64),
		Size(&size, "slice", "bytes of a slice").Range(1, 1<<20).Expect("1B to 1MiB"),
		Func("[:KEY=VALUE,...]", "nccl", "NCCL calls", func(string) error { return Errorf("other", "wrong") }),
		Func("", "nodes", "nodes", func(string) error { return nil }),
	}.AsKeys("Keys")
	for i, want := range []string{"channels=N", "slice=SIZE", "nccl[:KEY=VALUE,...]", "nodes"} {
		if got := set[i].Signature(); got != want || set[i].Heading != "Keys" {
			t.Errorf("%s below %s, want %s", got, set[i].Heading, want)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"channels", "010", ""},
		{"channels", "0x10", `channels: expected a whole number from 1 to 64, found "0x10"`},
		{"channels", "65", `channels: expected a whole number from 1 to 64, found "65"`},
		{"slice", "2MiB", `slice: expected 1B to 1MiB, found "2MiB"`},
		{"chanels", "1", `expected one of channels, slice, nccl, nodes, found "chanels"; did you mean "channels"?`},
		{"nccl", "", "other: wrong"},
	} {
		if err := set.SetKey(c.name, c.text); err == nil != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s=%s: %v, want %s", c.name, c.text, err, c.want)
		}
	}
	if count != 10 || size != 4096 {
		t.Errorf("%d channels, slices of %d bytes", count, size)
	}
}

// textualFlag is a value without text.
type textualFlag struct{}

func (*textualFlag) UnmarshalText([]byte) error   { return nil }
func (*textualFlag) MarshalText() ([]byte, error) { return nil, nil }
