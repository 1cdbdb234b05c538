package formats

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// Every format keeps the rules that the programs rely on.
func TestAllIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range All {
		if f.Name == "" || strings.ToLower(f.Name) != f.Name || f.Title == "" || seen[f.Name] {
			t.Errorf("format %q has a bad name or title %q, or is there twice", f.Name, f.Title)
		}
		seen[f.Name] = true
		written := f.Write != nil || f.WriteFiles != nil
		if f.Read == nil && !written {
			t.Errorf("%s can neither be read nor written", f.Name)
		}
		if f.Write != nil && f.WriteFiles != nil {
			t.Errorf("%s is written both as one file and as many", f.Name)
		}
		if written && len(f.Extensions) == 0 {
			t.Errorf("%s is written, but has no file name ending", f.Name)
		}
		for _, ending := range f.Extensions {
			if !strings.HasPrefix(ending, ".") || strings.ToLower(ending) != ending {
				t.Errorf("%s has the ending %q", f.Name, ending)
			}
		}
		if f.Detect != nil {
			for _, head := range []string{"", "\x00", "{", "<", strings.Repeat("\xff", format.DetectBytes)} {
				if f.Detect([]byte(head)) {
					t.Errorf("%s claims a file that begins with %.10q", f.Name, head)
				}
			}
		}
	}
	if f := All.Named(Default); f == nil || f.Read == nil || f.Write == nil {
		t.Errorf("the default format %q cannot be read and written", Default)
	}
}

// What a format writes is detected as that format and no other.
func TestWrittenIsDetected(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 10, 0)
	b.Rank(1).Recv(0, 10, 0)
	messages := b.Trace()
	b = dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Bytes: 512})
	accesses := b.Trace()
	for _, f := range All.Writable() {
		trace := messages
		if f.Name == "spc" || f.Name == "fio" {
			trace = accesses
		}
		var content strings.Builder // of the first file
		var err error
		o := format.WriteOptions{Warn: func(string, ...any) {}}
		if f.Write != nil {
			err = f.Write(&content, trace, o)
		} else {
			first := true
			err = f.WriteFiles(func(string) (io.Writer, error) {
				if first {
					first = false
					return &content, nil
				}
				return io.Discard, nil
			}, trace, o)
		}
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		head := content.String()
		head = head[:min(len(head), format.DetectBytes)]
		if got := All.Detect([]byte(head)).Names(); f.Read != nil && !slices.Equal(got, []string{f.Name}) {
			t.Errorf("what %s writes is detected as %q", f.Name, got)
		}
	}
}

// Storage traces, all of them lines of numbers, are told from each other.
func TestStorageTracesAreTold(t *testing.T) {
	for head, want := range map[string][]string{
		"0,303567,3584,w,0.000000\n":                                    {"spc"},
		"0,303567,3584,W,1500\n":                                        {"blktracer"},
		"128166372003061629,hm,0,Read,383496192,32768,413\n":            {"msr"},
		"  8,0    1        1     0.000000000  3013  Q   R 0 + 8 [dd]\n": {"blkparse"},
		"fio version 2 iolog\nf add\n":                                  {"fio"},
		"0.5 0 303567 7 0\n":                                            {"disksim"},
		"500 0 303567 7 0\n":                                            {"disksim", "mqsim"},
	} {
		if got := All.Detect([]byte(head)).Names(); !slices.Equal(got, want) {
			t.Errorf("%q is detected as %q, want %q", head, got, want)
		}
	}
}
