package shell

import (
	"os/exec"
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
