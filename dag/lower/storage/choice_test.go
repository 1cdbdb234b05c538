package storage

import (
	"strings"
	"testing"
)

func TestParseChoice(t *testing.T) {
	for text, want := range map[string]string{
		"directdrive":                                    "",
		" directdrive : ":                                "",
		"directdrive:slice=4MiB":                         "slice=4MiB",
		"directdrive:slice=1.5kB,n_ccs=3":                "slice=1.5kB n_ccs=3",
		"directdrive:n-ccs = 3 , read_replica=random:-5": "n_ccs=3 read-replica=random:-5",
		"directdrive:order=window:7,lookup=none":         "order=window:7 lookup=none",
		"directdrive:order=window:1":                     "order=window:1",
		"directdrive:mount=off":                          "mount=off",
		"directdrive:compat":                             "compat=on replicas=8 space=shared",
		"directdrive:compat=on,n_bss=8":                  "compat=on n_bss=8 replicas=1 space=shared",
		"directdrive:quorum=2,replicas=2":                "quorum=2 replicas=2",
		"directdrive:read-rate=12Gbps,write-rate=1B/s":   "read-rate=1.5GB/s write-rate=1B/s",
		"directdrive:lookup-time=1.5us,mount-time=0":     "lookup-time=1.5us mount-time=0s",
		"directdrive:header=0,read-request=0B":           "read-request=0B",
		"directdrive:place=spread,space=shared":          "place=spread space=shared",
	} {
		c := mustParse(t, text)
		got := settings(c)
		for p, value := range settings(mustParse(t, "directdrive")) {
			if got[p] == value {
				delete(got, p)
			}
		}
		for setting := range strings.FieldsSeq(want) {
			p, value, _ := strings.Cut(setting, "=")
			if got[p] != value {
				t.Errorf("%s: %s=%s, expected %s", text, p, got[p], value)
			}
			delete(got, p)
		}
		if len(got) > 0 {
			t.Errorf("%s: also %v", text, got)
		}
	}
}

func settings(c Choice) map[string]string {
	all := map[string]string{}
	for _, p := range c.Params() {
		all[p.Name] = p.Value.String()
	}
	return all
}

func TestParseChoiceErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    `expected one of directdrive, found ""`,
		"ceph:x=1":                            `expected one of directdrive, found "ceph"`,
		"directdrive:x=1":                     "expected one of compat, block, slice",
		"directdrive:replica=1":               `header, found "replica"; did you mean "replicas"?`,
		"directdrive:slice":                   "expected slice=VALUE, such as slice=1MiB",
		"directdrive:slice=1MiB,slice=2MiB":   "slice is listed twice",
		"directdrive:slice=0":                 `from 1B to 4EiB, such as 4096, 4kB or 4KiB, found "0"`,
		"directdrive:slice=5EiB":              "from 1B to 4EiB",
		"directdrive:slice=1/2":               "slice: expected",
		"directdrive:slice=1.5":               "slice: expected",
		"directdrive:slice=1K":                "slice: expected",
		"directdrive:slice=-1":                "slice: expected",
		"directdrive:n_bss=0":                 `n_bss: expected a whole number from 1 to 262144, found "0"`,
		"directdrive:replicas=65":             "65 replicas on 64 block storage services",
		"directdrive:quorum=4":                "quorum 4 of 3 replicas",
		"directdrive:quorum=0":                "from 1 to 262144, or all",
		"directdrive:lookup=mds":              `lookup: expected ccs or none, found "mds"`,
		"directdrive:mount=yes":               "mount: expected on or off",
		"directdrive:order=window":            "order: expected serial, window:N",
		"directdrive:order=window:0":          "order: expected serial, window:N",
		"directdrive:read-replica=random":     "expected rr, first or random:SEED",
		"directdrive:read-rate=0GB/s":         "read-rate: expected a rate of 1B/s or more",
		"directdrive:read-rate=6GB":           "read-rate: expected",
		"directdrive:lookup-time=1.5ns":       "whole number of nanoseconds",
		"directdrive:lookup-time=1h":          "whole number of nanoseconds",
		"directdrive:lookup-time=9223373s":    "whole number of nanoseconds",
		"directdrive:compat,replicas=8":       "compat sets replicas",
		"directdrive:n_ccs=3,compat,n_bss=64": "n_bss=64, expected a multiple of n_ccs=3",
	} {
		_, err := ParseChoice(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected ...%s...", text, err, want)
		}
	}
}

// FuzzParseChoice checks that the printed parameters of a choice parse to the same choice.
func FuzzParseChoice(f *testing.F) {
	for _, text := range choices {
		f.Add(text)
	}
	f.Add("directdrive:read-rate=12Gbps,slice=1.5kB,lookup-time=0,order=window:12")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChoice(text)
		if err != nil {
			return
		}
		again := "directdrive:"
		for _, p := range c.Params() {
			decided := c.arch.compat() && strings.Contains(" replicas quorum lookup mount space read-replica ", " "+p.Name+" ")
			if !decided {
				again += p.Name + "=" + p.Value.String() + ","
			}
		}
		d, err := ParseChoice(again)
		if err != nil {
			t.Fatal(err)
		}
		want := settings(c)
		for name, value := range settings(d) {
			if want[name] != value {
				t.Errorf("%s is %s, expected %s", name, value, want[name])
			}
		}
	})
}
