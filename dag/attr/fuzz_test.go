package attr

import (
	"testing"
)

// FuzzAttributes parses attributes as all types. What is accepted can be encoded, and is then the same.
func FuzzAttributes(f *testing.F) {
	for _, text := range []string{
		"", `{"htsim":{"unit":-3,"triggers":["a"],"failures":["failure switch_type AGG switch_id 1 link_id 2"]}}`,
		`{"jobs":[null,{"nccl":{"comms":{"c":{"rings":[[0,1]],"trees":[[-1,0]],"channels":2}}}}]}`,
		`{"nccl":{"algo":"ring","proto":"ll","type":4,"channels":[[0,50,10,5]],"in_place":true,"grouped":true}}`,
		`{"chakra":{"id":7},"io":{},"record":{}}`, `{"htsim":1}`, "[", "failure switch_type AGG switch_id 1 link_id 2",
		`{"class":"control","edge":[3,0,2]}`, `{"counts":{"send":[1,2],"recv":[0,3]}}`,
		`{"simai":{"gpus":8,"tp":2,"ep":1,"pp":1,"rows":[{"name":"a","fwd":{"ns":5},"ig":{},"wg":{"coll":"allgather"}}]}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if h, ok := ParseHTSim(text); ok {
			if again, ok := ParseHTSim(h.Encode()); !ok || len(again.Triggers) != len(h.Triggers) || again.Unit != h.Unit {
				t.Errorf("%+v, then %+v", h, again)
			}
		}
		if c, ok := ParseCounts(text); ok {
			encoded := WithCounts("", &c)
			if again, ok := ParseCounts(encoded); !ok || WithCounts("", &again) != encoded {
				t.Errorf("%s, then %+v", encoded, again)
			}
		}
		if jobs, ok := ParseJobs(text); ok {
			encoded, err := jobs.Append([]byte{'{'})
			if again, ok := ParseJobs(string(encoded) + "}"); err != nil || !ok || len(again) != len(jobs) {
				t.Errorf("%q, then %q, error %v", jobs, again, err)
			}
		}
		if call, err := ParseNCCLCall(text); err == nil && call != nil {
			text := string(call.Append([]byte{'{'})) + "}"
			again, err := ParseNCCLCall(text)
			if err != nil || again == nil || string(again.Append([]byte{'{'}))+"}" != text {
				t.Errorf("%s, then %+v, error %v", text, again, err)
			}
		}
		if all, err := ParseNCCLTopologies(text); err == nil {
			for _, one := range all {
				again, err := ParseNCCLTopologies(string(one.Append([]byte{'{'})) + "}")
				if err != nil || len(again) != 1 || len(again[0]) != len(one) {
					t.Errorf("%+v, then %+v, error %v", one, again, err)
				}
			}
		}
		if s, ok := ParseSimAI(text); ok {
			if again, ok := ParseSimAI(s.Encode()); !ok || len(again.Rows) != len(s.Rows) {
				t.Errorf("%+v, then %+v", s, again)
			}
		}
		ParseNodeID(text)
		ParseUndefinedGroups(text)
		ParseIOAccess(text)
		if record, ok := ParseIORecord(text); ok {
			if again, ok := ParseIORecord(string(record.Append([]byte{'{'})) + "}"); !ok || again != record {
				t.Errorf("%s: %+v, then %+v", text, record, again)
			}
		}
		FlowClass(text)
		if edge, ok := ParseJobEdge(text); ok {
			for _, control := range []bool{false, true} {
				text := string(edge.Append([]byte{'{'}, control)) + "}"
				if again, ok := ParseJobEdge(text); !ok || again != edge || IsControl(text) != control {
					t.Errorf("%s: %+v, then %+v", text, edge, again)
				}
			}
		}
		ParseRecordTie(text)
		if _, err := ParseLinkFailure(text); err != nil && err.Error() == "" {
			t.Error("an empty error")
		}
	})
}
