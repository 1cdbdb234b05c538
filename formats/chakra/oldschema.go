package chakra

import "github.com/tracedag/tracedag/formats/format"

func oldSchema(data []byte) *int                               { return nil }
func (s *source) convert(old *int, o format.ReadOptions) error { return nil }
