package sim_test

import (
	"encoding/json"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// kind marshals to a text.
type kind uint8

func (k kind) MarshalText() ([]byte, error) { return []byte{'k', byte('0' + k)}, nil }

type inner struct {
	Rules kind     `json:"rules,omitempty"`
	Time  dag.Time `json:"o_ps"`
}

type outer struct {
	Name    string             `json:"name,omitempty"`
	Plain   float64            // named as the field
	Hidden  int                `json:"-"`
	Kind    kind               `json:"kind"`
	On      bool               `json:"on"`
	Numbers map[string]float64 `json:"numbers"`
	Inner   inner              `json:"inner"`
	private int
}

func TestValuesOf(t *testing.T) {
	for _, v := range []outer{
		{},
		{Name: "a<b", Plain: 1e30, Hidden: 1, Kind: 2, On: true, Numbers: map[string]float64{"b": 2, "a": 0.5},
			Inner: inner{Rules: 1, Time: 3}, private: 4},
	} {
		if v.Numbers == nil {
			v.Numbers = map[string]float64{}
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(sim.ValuesOf(v))
		if err != nil || string(got) != string(want) {
			t.Errorf("got %s, want %s, error %v", got, want, err)
		}
	}
	v := sim.ValuesOf(outer{Name: "a<b", Plain: 1.5, Kind: 2, Numbers: map[string]float64{"b": 2, "a": 0.5}})
	if got := v.Get("numbers.b"); got != 2.0 {
		t.Errorf("numbers.b is %v", got)
	}
	if got := v.Get("numbers.c"); got != nil {
		t.Errorf("numbers.c is %v", got)
	}
}

func TestNoValues(t *testing.T) {
	if got, err := json.Marshal(struct{ Params sim.Values }{}); err != nil || string(got) != `{"Params":{}}` {
		t.Errorf("got %s, %v", got, err)
	}
}
