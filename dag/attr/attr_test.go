package attr

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func object(member []byte) string { return "{" + string(member) + "}" }

func TestDecode(t *testing.T) {
	for attrs, want := range map[string]int{
		`{"a":{"n":3}}`: 3, `{"a":{"n":3},"b":1}`: 3, `{"b":1,"a":{"n":3}}`: 3, `{"b":{"n":3}}`: 0, "": 0, `{"a":`: 0, `{"a":"x"}`: 0,
	} {
		var to struct{ N int }
		if got := Decode(attrs, "a", &to); got != (want > 0) || to.N != want {
			t.Errorf("%s: %v, %+v", attrs, got, to)
		}
	}
}

func TestJobs(t *testing.T) {
	member, err := Jobs{nil, json.RawMessage(`{"a": 1}`)}.Append(nil)
	if err != nil || string(member) != `"jobs":[null,{"a":1}]` {
		t.Fatalf("%s, error %v", member, err)
	}
	if jobs, ok := ParseJobs(object(member)); !ok || len(jobs) != 2 || string(jobs[1]) != `{"a":1}` {
		t.Errorf("%s, %v", jobs, ok)
	}
	for _, attrs := range []string{`{"jobs":[null],"b":1}`, `{"jobs":1}`, ""} {
		if jobs, ok := ParseJobs(attrs); ok {
			t.Errorf("%s: %s", attrs, jobs)
		}
	}
}

// TestNCCLCall checks the text of calls, that parsing returns the call, and the texts with flags.
func TestNCCLCall(t *testing.T) {
	collective := NCCLCall{Algorithm: "ring", Protocol: "simple", Type: 4, ChunkSteps: 4, SliceSteps: 2, StepSize: 512,
		Channels: [][]int64{{0, 10, 5, 5}, {3, 1, 2, 3}}}
	for _, test := range []struct {
		call NCCLCall
		want string
	}{
		{collective, `{"nccl":{"algo":"ring","proto":"simple","type":4,"chunk_steps":4,"slice_steps":2,"step_size":512,` +
			`"channels":[[0,10,5,5],[3,1,2,3]]}}`},
		{NCCLCall{Algorithm: "tree", Protocol: "ll"}, `{"nccl":{"algo":"tree","proto":"ll","type":0,"chunk_steps":0,` +
			`"slice_steps":0,"step_size":0,"channels":[]}}`},
		{NCCLCall{Protocol: "ll128", Chunk: 7}, `{"nccl":{"proto":"ll128","chunk":7}}`},
		{NCCLCall{}, `{"nccl":{}}`},
	} {
		text := object(test.call.Append(nil))
		if text != test.want {
			t.Errorf("got %s, expected %s", text, test.want)
		}
		if text == `{"nccl":{}}` {
			text = ""
		}
		for _, flags := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			want := test.call
			want.InPlace, want.Grouped = flags[0] && text != "", flags[1]
			flagged := WithNCCLFlags(text, flags[0], flags[1])
			if (text != "" || flags[1]) && flagged != object(want.Append(nil)) {
				t.Errorf("got %s, expected %s", flagged, object(want.Append(nil)))
			}
			got, err := ParseNCCLCall(flagged)
			if err != nil || got == nil != (flagged == "") {
				t.Fatalf("%s: %+v, error %v", flagged, got, err)
			}
			if got != nil && (got.InPlace != want.InPlace || got.Grouped != want.Grouped || got.Chunk != want.Chunk ||
				!slices.EqualFunc(got.Channels, want.Channels, slices.Equal)) {
				t.Errorf("%s: %+v", flagged, got)
			}
		}
	}
	if _, err := ParseNCCLCall(`{"nccl":1}`); err == nil || !HasNCCLCall(`{"nccl":1}`) {
		t.Error("a number is a call")
	}
}

func TestNCCLTopologies(t *testing.T) {
	all := NCCLTopologies{"0xb": {Rings: [][]int32{{0, 2, 1}}, Trees: [][]int32{{-1, 0, 0}}}, "0xa": {Channels: 2}}
	text := object(all.Append(nil))
	if want := `{"nccl":{"comms":{"0xa":{"channels":2},"0xb":{"rings":[[0,2,1]],"trees":[[-1,0,0]]}}}}`; text != want {
		t.Fatalf("got %s, expected %s", text, want)
	}
	got, err := ParseNCCLTopologies(text)
	if err != nil || !reflect.DeepEqual(got, []NCCLTopologies{all}) {
		t.Errorf("%v, error %v", got, err)
	}
	count := func(c NCCLTopology) NCCLTopology {
		return NCCLTopology{Channels: max(len(c.Rings), c.Channels)}
	}
	edited, err := EditNCCLTopologies(`{"jobs":[null,`+text+`]}`, count)
	if want := `{"jobs":[null,{"nccl":{"comms":{"0xa":{"channels":2},"0xb":{"channels":1}}}}]}`; err != nil || edited != want {
		t.Errorf("%s, error %v", edited, err)
	}
	if got, err = ParseNCCLTopologies(edited); err != nil || len(got) != 2 || got[0] != nil || got[1]["0xb"].Channels != 1 {
		t.Errorf("%v, error %v", got, err)
	}
	if _, err := EditNCCLTopologies("x", count); err == nil {
		t.Error("malformed attributes are edited")
	}
	if _, err := ParseNCCLTopologies(`"nccl"`); err == nil {
		t.Error("malformed attributes are parsed")
	}
}

func TestStorage(t *testing.T) {
	text := object(IOAccess(7).Append(nil))
	if access, ok := ParseIOAccess(text); text != `{"io":7}` || access != 7 || !ok {
		t.Errorf("%s: %d, %v", text, access, ok)
	}
	for _, record := range []IORecord{{false, 4096, 3}, {true, 0, -1}} {
		text := object(append(IOAccess(7).Append(nil), ',')) // as lowering does
		text = object(record.Append([]byte(text[1 : len(text)-1])))
		access, ok := ParseIOAccess(text)
		if got, also := ParseIORecord(text); got != record || !also || access != 7 || !ok {
			t.Errorf("%s: %d, %+v", text, access, got)
		}
	}
	for _, attrs := range []string{
		"", `{"io":7}`, `{"read":1}`, `{"unit":1}`, `{"read":1,"write":1,"unit":1}`, `{"read":-1,"unit":1}`,
		`{"read":1,"unit":4294967296}`, `{"read":"1","unit":1}`,
	} {
		if record, ok := ParseIORecord(attrs); ok {
			t.Errorf("%s: %+v", attrs, record)
		}
	}
	for _, attrs := range []string{"", `{"io":-1}`, `{"io":4294967296}`, `{"io":`, `{"ion":1}`} {
		if access, ok := ParseIOAccess(attrs); ok {
			t.Errorf("%s: %d", attrs, access)
		}
	}
	attrs, err := Storage{"system": "x"}.AddTo(`{"z":1,"a":2}`)
	if err != nil || attrs != `{"a":2,"storage":{"system":"x"},"z":1}` || !HasStorage(attrs) || HasStorage(`{"a":"storage"}`) {
		t.Errorf("%s, error %v", attrs, err)
	}
	if _, err := (Storage{}).AddTo("x"); err == nil {
		t.Error("malformed attributes are extended")
	}
}

func TestRecordTie(t *testing.T) {
	text := object(RecordTie(12).Append(nil))
	if tie, ok := ParseRecordTie(text); text != `{"tie":12}` || tie != 12 || !ok || !HasRecordTie(text) {
		t.Errorf("%s: %d, %v", text, tie, ok)
	}
	if tie, ok := ParseRecordTie(`{"tie":3,"spc":{}}`); tie != 3 || !ok {
		t.Errorf("%d, %v", tie, ok)
	}
	for _, attrs := range []string{"", `{"spc":{},"tie":3}`, `{"tie":-1}`, `{"tie":3`, `{"tie":x}`} {
		if tie, ok := ParseRecordTie(attrs); ok {
			t.Errorf("%s: %d", attrs, tie)
		}
	}
}

func TestChakra(t *testing.T) {
	text := object(NodeID(1<<64 - 1).Append(nil))
	if id, ok := ParseNodeID(text); text != `{"id":18446744073709551615}` || id != 1<<64-1 || !ok {
		t.Errorf("%s: %d, %v", text, id, ok)
	}
	for _, attrs := range []string{"", `{"id":-1}`, `{"id":null}`, `{"idx":1}`} {
		if id, ok := ParseNodeID(attrs); ok {
			t.Errorf("%s: %d", attrs, id)
		}
	}
	for attrs, want := range map[string]struct {
		from      bool
		undefined []string
	}{
		"":              {},
		`{"chakra":{}}`: {from: true},
		`{"chakra":{"undefined_groups":["7","8"]}}`:                                              {true, []string{"7", "8"}},
		`{"jobs":[{"chakra":{"undefined_groups":["7"]}},{"chakra":{"undefined_groups":["9"]}}]}`: {true, []string{"7", "9"}},
		`{"jobs":[{"chakra":{"undefined_groups":["7"]}},null]}`:                                  {false, []string{"7"}},
	} {
		if from, undefined := FromChakra(attrs), ParseUndefinedGroups(attrs); from != want.from || !slices.Equal(undefined, want.undefined) {
			t.Errorf("%s: %v, %q", attrs, from, undefined)
		}
	}
}

func TestHTSim(t *testing.T) {
	const line = "failure switch_type AGG switch_id 3 link_id 1"
	text := (&HTSim{Unit: 6, Failures: LinkFailures{line}}).Encode()
	if want := `{"htsim":{"unit":6,"failures":["` + line + `"]}}`; text != want {
		t.Fatalf("got %s, expected %s", text, want)
	}
	h, ok := ParseHTSim(text)
	if !ok || h.Unit != 6 || !slices.Equal(h.Failures, LinkFailures{line}) {
		t.Errorf("%+v, %v", h, ok)
	}
	if f, err := ParseLinkFailure(line); err != nil || f != (LinkFailure{Aggregation: 3, Uplink: 1}) {
		t.Errorf("%+v, error %v", f, err)
	}
	if _, err := ParseLinkFailure("failure switch_type TOR switch_id 3 link_id 1"); err == nil {
		t.Error("a failure of a top-of-rack switch is accepted")
	}
	if _, ok := ParseHTSim(`{"hpcc":{}}`); ok {
		t.Error("attributes of another format are accepted")
	}
}
