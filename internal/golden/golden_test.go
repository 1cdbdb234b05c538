package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder records failures.
type recorder struct {
	testing.TB
	failures string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.failures += fmt.Sprintf(format, args...) }

func (r *recorder) Fatal(args ...any) {
	r.failures += fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// failures returns the failures of a check.
func failures(check func(t testing.TB)) string {
	var r recorder
	done := make(chan bool)
	go func() {
		defer close(done)
		check(&r)
	}()
	<-done
	return r.failures
}

// withUpdate runs something with the flag -update.
func withUpdate(run func()) {
	defer func(before bool) { *update = before }(*update)
	*update = true
	run()
}

func TestCheck(t *testing.T) {
	defer func(before bool) { *update = before }(*update)
	*update = false
	path := filepath.Join(t.TempDir(), "testdata", "x.txt")
	check := func(got string) string { return failures(func(t testing.TB) { Check(t, path, got) }) }
	if got := check("a\n"); !strings.Contains(got, "no such file") {
		t.Errorf("without a file: %q", got)
	}
	withUpdate(func() {
		if got := check("a\nb\n"); got != "" {
			t.Errorf("with -update: %q", got)
		}
	})
	for text, want := range map[string]string{
		"a\nb\n": "", "a\nc\n": `x.txt:2: got "c", want "b"`, "a\n": `x.txt:2: got "", want "b"`,
		"a\nb\nc": `x.txt:3: got "c", want ""`, "a\nb": `x.txt:2: got "b", want "b"`,
	} {
		if got := check(text); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSection(t *testing.T) {
	defer func(before bool) { *update = before }(*update)
	*update = false
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("# x\n<b>\nold\n<e>\nrest\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	section := func(end, got string) string {
		return failures(func(t testing.TB) { Section(t, path, "<b>\n", end, got) })
	}
	if got := section("<e>", "old\n"); got != "" {
		t.Errorf("the same part: %q", got)
	}
	if got, want := section("<e>", "new\n"), `page.md:3: got "new", want "old"`; !strings.Contains(got, want) {
		t.Errorf("another part: %q, want %q", got, want)
	}
	if got := section("<none>", "old\n"); !strings.Contains(got, "expected") {
		t.Errorf("without an end: %q", got)
	}
	withUpdate(func() {
		if got := section("<e>", "new\n"); got != "" {
			t.Errorf("with -update: %q", got)
		}
	})
	if text, err := os.ReadFile(path); err != nil || string(text) != "# x\n<b>\nnew\n<e>\nrest\n" {
		t.Errorf("the page is %q, %v", text, err)
	}
}
