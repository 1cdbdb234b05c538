package attr

// SimAI is the member "simai" of the attributes of a trace from a workload text of SimAI: the parallel layout and the
// rows, in the order of the text. The backend simai computes SimAI's sum from it.
type SimAI struct {
	GPUs    int64      `json:"gpus"`              // ranks of the trace
	TP      int64      `json:"tp"`                // tensor parallel size
	EP      int64      `json:"ep"`                // expert parallel size
	PP      int64      `json:"pp"`                // pipeline stages
	VPP     int64      `json:"vpp,omitempty"`     // in AICB's texts the number of layers
	GA      int64      `json:"ga,omitempty"`      // micro batches of a step
	PPComm  int64      `json:"pp_comm,omitempty"` // bytes between stages for each micro batch
	Rows    []SimAIRow `json:"rows"`
	Unknown []string   `json:"missing,omitempty"` // names that the first line lacks, with the value 1 or 0 instead
}

// SimAIRow is a row: forward, gradient of the input, gradient of the weights.
type SimAIRow struct {
	Name    string     `json:"name"`
	Forward SimAIPhase `json:"fwd"`
	Input   SimAIPhase `json:"ig"`
	Weight  SimAIPhase `json:"wg"`
}

// SimAIPhase is a computation and the collective after it.
type SimAIPhase struct {
	Time  int64  `json:"ns,omitempty"`    // computation, in ns
	Coll  string `json:"coll,omitempty"`  // allreduce, allgather, reducescatter or alltoall; "": none
	Group string `json:"group,omitempty"` // TP, DP, EP or DP_EP; "" without a collective
	Bytes int64  `json:"bytes,omitempty"` // as in the text
}

const simaiKey = "simai"

// Encode returns the attributes of a trace with the member.
func (s *SimAI) Encode() string { return Encode(simaiKey, s) }

// ParseSimAI returns the member, and whether the attributes of a trace have it.
func ParseSimAI(attrs string) (s SimAI, ok bool) {
	ok = Decode(attrs, simaiKey, &s)
	return s, ok
}
