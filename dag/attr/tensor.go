package attr

// Tensor is data that ops read and write in the memory of their accelerator.
type Tensor struct {
	Name  string // unique within the rank
	Bytes int64  // 0 or more
}
