package llm

import (
	"fmt"
	"strings"
)

// Model is a decoder-only transformer. Its linear layers have no biases and its norms no shifts (RMSNorm) unless Biases
// is set.
type Model struct {
	Layers  int   // 1..2^12
	Hidden  int64 // h: elements of a token between layers; a multiple of Heads
	FFN     int64 // f: elements inside the MLP; 0: 4 h
	Heads   int64 // of the attention
	KVHeads int64 // heads of keys and values, which several heads share (grouped-query attention); 0: as Heads
	Vocab   int64 // size of the vocabulary; 0: neither embedding nor output layer
	Seq     int64 // s: tokens of a sequence
	GELU    bool  // the MLP is two matrices with GELU between them; otherwise three with SwiGLU
	Biases  bool  // linear layers have biases and norms are LayerNorms
	Learned bool  // positions are a learned table of Seq rows; otherwise they take no parameters
	Tied    bool  // the output layer uses the table of the embedding
	Experts int64 // E: of the MLP of a layer; 0: dense
	TopK    int64 // experts per token
	// MoEEvery is the distance k of layers with experts: layers k, 2 k and so on, counted from 1, have them, the others
	// a dense MLP. 0 or 1: every layer.
	MoEEvery int
}

// presets are models with the numbers of their publications, see docs/reference/generators/llm.md.
var presets = []struct {
	name  string
	model Model
}{
	{"llama-7b", Model{Layers: 32, Hidden: 4096, FFN: 11008, Heads: 32, Vocab: 32000, Seq: 4096}},
	{"llama-13b", Model{Layers: 40, Hidden: 5120, FFN: 13824, Heads: 40, Vocab: 32000, Seq: 4096}},
	{"llama-70b", Model{Layers: 80, Hidden: 8192, FFN: 28672, Heads: 64, KVHeads: 8, Vocab: 32000, Seq: 4096}},
	{"llama3-8b", Model{Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Vocab: 128256, Seq: 8192}},
	{"llama3-70b", Model{Layers: 80, Hidden: 8192, FFN: 28672, Heads: 64, KVHeads: 8, Vocab: 128256, Seq: 8192}},
	{"llama3-405b", Model{Layers: 126, Hidden: 16384, FFN: 53248, Heads: 128, KVHeads: 8, Vocab: 128256, Seq: 8192}},
	{"gpt3-175b", Model{
		Layers: 96, Hidden: 12288, Heads: 96, Vocab: 50257, Seq: 2048,
		GELU: true, Biases: true, Learned: true, Tied: true,
	}},
	{"mixtral-8x7b", Model{
		Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Vocab: 32000, Seq: 4096, Experts: 8, TopK: 2,
	}},
	{"moe-8x13b", Model{
		Layers: 40, Hidden: 5120, FFN: 13824, Heads: 40, Vocab: 32000, Seq: 1024, Experts: 8, TopK: 2,
	}},
	{"moe-8x70b", Model{
		Layers: 80, Hidden: 8192, FFN: 28672, Heads: 64, KVHeads: 8, Vocab: 32000, Seq: 1024, Experts: 8, TopK: 2,
	}},
	{"transformer-1t", Model{
		Layers: 128, Hidden: 25600, Heads: 160, Vocab: 51200, Seq: 2048,
		GELU: true, Biases: true, Learned: true, Tied: true,
	}},
	{"msft-1t", Model{
		Layers: 138, Hidden: 24576, Heads: 192, Vocab: 51200, Seq: 2048,
		GELU: true, Biases: true, Learned: true, Tied: true,
	}},
	{"moe-1t", Model{
		Layers: 30, Hidden: 8192, FFN: 32768, Heads: 64, Vocab: 51200, Seq: 2048,
		GELU: true, Experts: 128, TopK: 1, MoEEvery: 2,
	}},
}

// Presets returns the names of the published models.
func Presets() (names []string) {
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// Preset returns a published model.
func Preset(name string) (Model, error) {
	for _, p := range presets {
		if p.name == name {
			return p.model, nil
		}
	}
	return Model{}, fmt.Errorf("no model %q, expected one of %s", name, strings.Join(Presets(), ", "))
}

// ffn returns f.
func (m *Model) ffn() int64 {
	if m.FFN == 0 {
		return 4 * m.Hidden
	}
	return m.FFN
}

// kvHeads returns the number of heads of keys and values.
func (m *Model) kvHeads() int64 {
	if m.KVHeads == 0 {
		return m.Heads
	}
	return m.KVHeads
}

// gates returns the number of matrices that lead into the MLP.
func (m *Model) gates() int64 {
	if m.GELU {
		return 1
	}
	return 2
}

// sparse reports whether a layer, counted from 0, has experts.
func (m *Model) sparse(layer int) bool {
	return m.Experts > 0 && (layer+1)%max(m.MoEEvery, 1) == 0
}

// bias returns n if linear layers have biases.
func (m *Model) bias(n int64) int64 {
	if m.Biases {
		return n
	}
	return 0
}

// Parameters returns the number of parameters of the model.
func (m *Model) Parameters() int64 {
	whole := slice{Model: m, tp: 1, ep: 1}
	total := int64(0)
	for i := range m.Layers {
		layer := whole.layerWeights(i)
		total += layer.dense + layer.experts
	}
	if m.Vocab > 0 {
		total += whole.embeddingWeights() + whole.outputWeights(true)
	}
	return total
}

// slice is a rank's part of the model's matrices: one of tp parts of each, and one of ep parts of the experts.
type slice struct {
	*Model
	tp, ep int64
}

// weights counts parameters of a layer, or of a rank, by the group that they are data parallel in.
type weights struct {
	dense   int64
	experts int64
}

// qkv returns the columns of the matrix of queries, keys and values.
func (s *slice) qkv() int64 {
	return (s.Hidden + 2*s.Hidden/s.Heads*s.kvHeads()) / s.tp
}

// attention returns the columns of the output of the attention.
func (s *slice) attention() int64 {
	return s.Hidden / s.tp
}

// inner returns the elements inside the MLP.
func (s *slice) inner() int64 {
	return s.ffn() / s.tp
}

// vocabulary returns the rows of the table per rank; the last rank may have fewer.
func (s *slice) vocabulary() int64 {
	return (s.Vocab + s.tp - 1) / s.tp
}

// mlp returns the parameters of an MLP, or of an expert.
func (s *slice) mlp() int64 {
	return (s.gates()+1)*s.Hidden*s.inner() + s.bias(s.gates()*s.inner()+s.Hidden)
}

func (s *slice) norm() int64 {
	return s.Hidden + s.bias(s.Hidden)
}

func (s *slice) layerWeights(layer int) weights {
	w := weights{dense: s.Hidden*s.qkv() + s.attention()*s.Hidden + s.bias(s.qkv()+s.Hidden) + 2*s.norm()}
	if !s.sparse(layer) {
		w.dense += s.mlp()
		return w
	}
	w.dense += s.Hidden * s.Experts
	w.experts = s.Experts / s.ep * s.mlp()
	return w
}

func (s *slice) embeddingWeights() int64 {
	n := s.vocabulary() * s.Hidden
	if s.Learned {
		n += s.Seq * s.Hidden
	}
	return n
}

// outputWeights returns the parameters of the output layer. It has its own table unless it is tied to the embedding and
// on the same rank.
func (s *slice) outputWeights(withEmbedding bool) int64 {
	if s.Tied && withEmbedding {
		return s.norm()
	}
	return s.norm() + s.vocabulary()*s.Hidden
}
