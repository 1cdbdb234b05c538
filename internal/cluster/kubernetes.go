package cluster

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// mount is the folder of a pod at which the volume is mounted.
const mount = "/data"

// Limits of the Kubernetes API: the completions of an Indexed Job without a largest number of failed indexes, and the
// characters of the name of a pod's host.
const (
	maxCompletions = 100_000
	maxLabel       = 63
)

// Kubernetes is a manifest of two Jobs: an Indexed Job with a pod per shard, and one that merges their results. Both
// mount a volume at /data and run there, so that relative names in their commands are files of the volume.
type Kubernetes struct {
	Name   string   // of the Jobs; other characters than letters, digits and "-" become "-"
	Count  int      // number of shards, 1 to 100,000
	Task   []string // command of a shard, without the flags --shard and --shards
	Merge  []string // command that waits for the results of all shards and merges them: the Jobs start together
	AtMost int      // number of pods of shards at the same time; 0: no limit
	Image  string   // container image with the programs
	Volume string   // name of a persistent volume claim that several nodes may mount (ReadWriteMany)
}

var (
	notLabel  = regexp.MustCompile(`[^a-z0-9]+`)
	claimName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
)

// Write writes the manifest in YAML, for Kubernetes 1.33 and later (1.29 with the feature JobBackoffLimitPerIndex).
func (k *Kubernetes) Write(w io.Writer) error {
	if err := k.check(); err != nil {
		return err
	}
	name := k.label(len("-") + len(strconv.Itoa(k.Count-1)))
	parallel := k.Count
	if k.AtMost > 0 {
		parallel = min(parallel, k.AtMost)
	}
	task := append(append([]string{}, k.Task...), "--shard", "auto", "--shards", strconv.Itoa(k.Count))
	_, err := fmt.Fprintf(w, kubernetesJobs, k.Count, mount, scalar(name), k.Count, parallel, k.pod(task),
		scalar(k.label(len("-merge"))+"-merge"), k.pod(k.Merge))
	return err
}

// pod returns the template of the pods that run a command.
func (k *Kubernetes) pod(words []string) string {
	return fmt.Sprintf(kubernetesPod, scalar(k.Image), list(words), mount, mount, scalar(k.Volume))
}

func (k *Kubernetes) check() error {
	switch {
	case k.Count < 1 || k.Count > maxCompletions:
		return fmt.Errorf("expected 1 to %d shards, found %d", maxCompletions, k.Count)
	case k.AtMost < 0:
		return fmt.Errorf("expected 1 pod at a time or more, found %d", k.AtMost)
	case k.Image == "" || strings.ContainsAny(k.Image, " \t\r\n") || !utf8.ValidString(k.Image):
		return fmt.Errorf("image: expected a container image such as registry.example.com/tracedag:0.1, found %q",
			k.Image)
	case len(k.Volume) > 253 || !claimName.MatchString(k.Volume):
		return fmt.Errorf("volume: expected the name of a persistent volume claim, of lower-case letters, digits, "+
			"\"-\" and \".\", found %q", k.Volume)
	}
	for _, words := range [][]string{k.Task, k.Merge} {
		if err := checkCommand(words); err != nil {
			return err
		}
		for _, word := range words {
			if !utf8.ValidString(word) {
				return fmt.Errorf("expected UTF-8, found %q", word)
			}
		}
	}
	return nil
}

// label returns the name with the characters of a DNS label, short enough for a suffix of the given length.
func (k *Kubernetes) label(suffix int) string {
	name := strings.Trim(notLabel.ReplaceAllString(strings.ToLower(k.Name), "-"), "-")
	return cmp.Or(strings.TrimRight(name[:min(len(name), maxLabel-suffix)], "-"), "study")
}

// scalar returns a text as a scalar of YAML in double quotes.
func scalar(text string) string { return strconv.QuoteToASCII(text) }

// list returns a command as a list of YAML. Kubernetes replaces $(NAME) by a variable, and $$ by $.
func list(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = scalar(strings.ReplaceAll(word, "$", "$$"))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// kubernetesJobs has the number of shards and the folder, the first Job's name, shards, pods at a time and pod, and the
// name and pod of the merge. A shard that exits with 1 has failed runs, which another try does not change; 2 is a wrong
// command line, the same for all. Evicted and preempted pods do not count as tries.
const kubernetesJobs = `# Runs %d shards in Kubernetes, and merges their results. Names of files are
# relative to the volume, which is mounted at %s.
apiVersion: batch/v1
kind: Job
metadata:
  name: %s
spec:
  completionMode: Indexed
  completions: %d
  parallelism: %d
  backoffLimitPerIndex: 3
  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
      - action: FailIndex
        onExitCodes:
          containerName: simulate
          operator: In
          values: [1]
      - action: FailJob
        onExitCodes:
          containerName: simulate
          operator: In
          values: [2]
%s---
apiVersion: batch/v1
kind: Job
metadata:
  name: %s
spec:
  backoffLimit: 3
  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
      - action: FailJob
        onExitCodes:
          containerName: simulate
          operator: In
          values: [1, 2]
%s`

// kubernetesPod has the image, the command, the folder twice and the claim.
const kubernetesPod = `  template:
    spec:
      restartPolicy: Never
      containers:
        - name: simulate
          image: %s
          command: %s
          workingDir: %s
          volumeMounts:
            - name: data
              mountPath: %s
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: %s
`
