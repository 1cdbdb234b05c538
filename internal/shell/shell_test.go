package shell

import (
	"os/exec"
	"slices"
	"testing"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "a-b.c": "a-b.c", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "~": "'~'", "*": "'*'",
		"é":     "'é'",
		"a\nb'": `$'a\012b\''`, "\xff": `$'\377'`, "\\\t": `$'\\\011'`, "#": "'#'", "a=b:c": "a=b:c",
	} {
		if got := Quote(word); got != want {
			t.Errorf("%q: found %s, expected %s", word, got, want)
		}
	}
	if got := Join("a", "b c"); got != "a 'b c'" {
		t.Errorf("found %s", got)
	}
}

// TestShell checks that bash reads quoted words back.
func TestShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, word := range []string{"", "a b", "it's", "$HOME `ls` \\ \"", "a\nb\tc", "\x01\x7f\xff", "-n", "!x",
		"{a,b}"} {
		out, err := exec.Command(bash, "-c", "printf %s "+Quote(word)).Output()
		if string(out) != word && word != "-n" || err != nil {
			t.Errorf("%q became %q: %v", word, out, err)
		}
	}
}

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                     nil,
		"  a  b\t":             {"a", "b"},
		`a 'b c' "d 'e"`:       {"a", "b c", "d 'e"},
		`a\ b 'c'"d"e ''`:      {"a b", "cde", ""},
		`"\$x \" \\ \n" '\n'`:  {`$x " \ \n`, `\n`},
		Join("a b", "c'd", ""): {"a b", "c'd", ""},
	} {
		if got, err := Split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, error %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"'", `a "b`, `a\`} {
		if got, err := Split(line); err == nil {
			t.Errorf("%s: %q, want an error", line, got)
		}
	}
}
