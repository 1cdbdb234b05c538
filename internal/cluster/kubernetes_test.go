package cluster

import (
	"io"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tracedag/tracedag/internal/golden"
)

func sweep() *Kubernetes {
	return &Kubernetes{
		Name: "Web search: 2 tiers", Count: 40, AtMost: 8, Image: "registry.example.com/tracedag:0.1", Volume: "studies",
		Task:  []string{"simulate", "--study", "my study.yml", "-o", "results/it's $(HOME)", "-q"},
		Merge: []string{"simulate", "--study", "my study.yml", "-o", "results/it's $(HOME)", "--merge"},
	}
}

// manifest is the part of a Job that tests look at.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		CompletionMode       string `yaml:"completionMode"`
		Completions          int
		Parallelism          int
		BackoffLimit         int `yaml:"backoffLimit"`
		BackoffLimitPerIndex int `yaml:"backoffLimitPerIndex"`
		PodFailurePolicy     struct {
			Rules []struct {
				Action      string
				OnExitCodes struct {
					ContainerName string `yaml:"containerName"`
					Operator      string
					Values        []int
				} `yaml:"onExitCodes"`
				OnPodConditions []struct{ Type, Status string } `yaml:"onPodConditions"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec struct {
				RestartPolicy string `yaml:"restartPolicy"`
				Containers    []struct {
					Name, Image  string
					Command      []string
					WorkingDir   string `yaml:"workingDir"`
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name                  string
					PersistentVolumeClaim struct {
						ClaimName string `yaml:"claimName"`
					} `yaml:"persistentVolumeClaim"`
				}
			}
		}
	}
}

// manifests parses the Jobs. A field that the type lacks is an error.
func manifests(t *testing.T, k *Kubernetes) []manifest {
	t.Helper()
	var b strings.Builder
	if err := k.Write(&b); err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(b.String()), yaml.Strict())
	var all []manifest
	for {
		var m manifest
		err := decoder.Decode(&m)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		all = append(all, m)
	}
}

func TestKubernetesGolden(t *testing.T) {
	var b strings.Builder
	if err := sweep().Write(&b); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/jobs.yaml", b.String())
	all := manifests(t, sweep())
	if len(all) != 2 {
		t.Fatalf("%d Jobs", len(all))
	}
	for i, m := range all {
		c := m.Spec.Template.Spec.Containers[0]
		if m.APIVersion != "batch/v1" || m.Kind != "Job" || m.Spec.Template.Spec.RestartPolicy != "Never" ||
			c.Name != "simulate" || c.WorkingDir != "/data" || c.VolumeMounts[0].MountPath != "/data" {
			t.Errorf("job %d: %+v", i, m)
		}
		for _, rule := range m.Spec.PodFailurePolicy.Rules {
			if name := rule.OnExitCodes.ContainerName; name != c.Name && rule.Action != "Ignore" {
				t.Errorf("job %d: rule %s is about the container %q", i, rule.Action, name)
			}
		}
	}
	first := all[0].Spec
	if first.CompletionMode != "Indexed" || first.Completions != 40 || first.Parallelism != 8 ||
		first.BackoffLimitPerIndex != 3 || all[1].Spec.CompletionMode != "" {
		t.Errorf("%+v", all)
	}
}

// TestKubernetesWords checks that hostile words are still the same after YAML and the expansion of variables.
func TestKubernetesWords(t *testing.T) {
	k := sweep()
	k.Task, k.Merge = []string{"show"}, []string{"show"}
	for _, word := range append(hostile, "$(HOME)", "$$(HOME)", "$", "$$", "a$", "null", "1e3", "yes", "- a: b", "---", "\u2028\u0085") {
		if word != "\xff'\\" && !strings.Contains(word, "\ufffd") {
			k.Task = append(k.Task, word)
		}
	}
	words := manifests(t, k)[0].Spec.Template.Spec.Containers[0].Command
	want := append(append([]string{}, k.Task...), "--shard", "auto", "--shards", "40")
	if len(words) != len(want) {
		t.Fatalf("%d words, expected %d", len(words), len(want))
	}
	for i := range words {
		if got := expand(words[i]); got != want[i] {
			t.Errorf("%q, expected %q", got, want[i])
		}
	}
}

// expand replaces $(NAME) and $$ as Kubernetes does in commands.
func expand(word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] != '$' || i+1 == len(word) {
			b.WriteByte(word[i])
			continue
		}
		i++
		switch word[i] {
		case '$':
			b.WriteByte('$')
		case '(':
			b.WriteString("VALUE(")
		default:
			b.WriteString("$" + word[i:i+1])
		}
	}
	return b.String()
}

func TestKubernetesNames(t *testing.T) {
	for name, want := range map[string]string{
		"Web search: 2 tiers": "web-search-2-tiers", "": "study", "---": "study", "أب": "study", "a": "a", "-a-": "a",
		strings.Repeat("x", 100): strings.Repeat("x", 60), strings.Repeat("x", 59) + " y": strings.Repeat("x", 59),
		"\n---\nkind: Pod": "kind-pod",
	} {
		k := sweep()
		k.Name, k.AtMost = name, 0
		all := manifests(t, k)
		if got := all[0].Metadata.Name; got != want {
			t.Errorf("%q: %q, expected %q", name, got, want)
		}
		if got := all[1].Metadata.Name; len(got) > 63 || !strings.HasSuffix(got, "-merge") {
			t.Errorf("%q: merge %q", name, got)
		}
		if got := all[0].Spec.Parallelism; got != 40 {
			t.Errorf("%d pods at a time", got)
		}
	}
}

func TestKubernetesErrors(t *testing.T) {
	for want, change := range map[string]func(*Kubernetes){
		"expected 1 to 100000 shards, found 0":      func(k *Kubernetes) { k.Count = 0 },
		"expected 1 to 100000 shards, found 100001": func(k *Kubernetes) { k.Count = 100_001 },
		"expected 1 pod at a time or more":          func(k *Kubernetes) { k.AtMost = -1 },
		`, found "a b"`:                             func(k *Kubernetes) { k.Image = "a b" },
		`such as registry.example.com/tracedag:0.1`: func(k *Kubernetes) { k.Image = "" },
		`persistent volume claim`:                   func(k *Kubernetes) { k.Volume = "" },
		`and ".", found "A"`:                        func(k *Kubernetes) { k.Volume = "A" },
		`found "a\nb"`:                              func(k *Kubernetes) { k.Volume = "a\nb" },
		"expected a command, found none":            func(k *Kubernetes) { k.Merge = nil },
		`expected UTF-8, found "\xff"`:              func(k *Kubernetes) { k.Task = []string{"a", "\xff"} },
	} {
		k := sweep()
		change(k)
		var b strings.Builder
		if err := k.Write(&b); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
}
