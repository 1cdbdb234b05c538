package param

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"fattre": "fattree", "fat-tre": "fattree", "dtcpc": "dctcp", "topolgy": "topology", "x": "", "": "", "nothing": "",
		"ndp": "", "ndpp": "ndp", strings.Repeat("ndp", 40): "",
	} {
		if got := Nearest(name, []string{"fattree", "dctcp", "topology", "ndp"}); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"kitten", "sitting"}: 3, {"ab", "ba"}: 1, {"ca", "abc"}: 3,
	} {
		if got := editDistance(pair[0], pair[1]); got != want {
			t.Errorf("%q: got %d, want %d", pair, got, want)
		}
	}
}

func TestSynonymsOfChoices(t *testing.T) {
	for text, want := range map[string]string{
		"flow": "flow", "ecmp": "flow", "ECMP": "flow", "per-flow": "flow", "perflow": "flow", "packet_spray": "spray",
		"Spray": "spray", "": "", "ecmpp": "",
	} {
		var policy string
		set := Set{Choice(&policy, "balance", "policy", "flow", "spray").Synonym("flow", "ecmp", "per-flow").
			Synonym("spray", "packet-spray")}
		err := set.Apply(Texts{"balance": {text}})
		if policy != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, policy, err)
		}
	}
	var policy string
	set := Set{Choice(&policy, "balance", "policy", "flow", "spray")}
	err := set.Apply(Texts{"balance": {"spary"}})
	if err == nil || !strings.HasSuffix(err.Error(), `found "spary"; did you mean "spray"?`) {
		t.Errorf("got %v", err)
	}
}
