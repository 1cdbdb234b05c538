package blockio

// Names numbers the named units of a trace from 0 in the order of first use. The zero value is ready for use.
type Names struct {
	numbers map[string]int32
	names   []string
	last    int32 // number returned last
}

// Number returns the number of a name.
func (n *Names) Number(name []byte) int32 {
	if len(n.names) > 0 && n.names[n.last] == string(name) {
		return n.last
	}
	number, ok := n.numbers[string(name)]
	if !ok {
		if n.numbers == nil {
			n.numbers = make(map[string]int32)
		}
		number = int32(len(n.names))
		n.names = append(n.names, string(name))
		n.numbers[string(name)] = number
	}
	n.last = number
	return number
}

// List returns the names by number.
func (n *Names) List() []string {
	return n.names
}
