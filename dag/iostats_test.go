package dag

import (
	"reflect"
	"testing"
)

func TestSummarizeIO(t *testing.T) {
	if s := SummarizeIO(NewBuilder(2).Trace()); s != nil {
		t.Errorf("of nothing: %+v", s)
	}
	b := NewBuilder(2)
	request := func(rank int, s Subkind, unit int32, bytes int64, at Time) {
		b.Rank(rank).Add(Op{Kind: IO, Subkind: s, Peer: unit, Bytes: bytes, Release: at})
	}
	b.Rank(0).Calc(5)
	request(0, Read, 3, 4096, 10*Second)
	request(0, Write, 3, 4095, 10*Second)
	request(0, Read, 2, 0, 12*Second)
	request(1, Read, 7, 8191, 50*Second)
	got := SummarizeIO(b.Trace())
	interval := 2*Second + 1
	want := &IOStats{
		Requests: IOCounts{Reads: 3, Writes: 1, ReadBytes: TotalOf(4096, 8191), WriteBytes: TotalOf(4095)}, Units: 3,
		First: 10 * Second, Last: 50 * Second, IOPS: 0.1, Rate: (4096. + 8191 + 4095) / 40,
		Sizes: []IOSizes{{0, 0, 1, 0}, {2048, 4095, 0, 1}, {4096, 8191, 2, 0}},
		Times: make([]IOInterval, 20),
		Hot: []IOUnit{
			{0, 3, IOCounts{1, 1, TotalOf(4096), TotalOf(4095)}}, {0, 2, IOCounts{Reads: 1}}, {1, 7, IOCounts{Reads: 1, ReadBytes: TotalOf(8191)}},
		},
	}
	for k := range want.Times {
		want.Times[k].Start = 10*Second + Time(k)*interval
	}
	want.Times[0].IOCounts = IOCounts{2, 1, TotalOf(4096), TotalOf(4095)}
	want.Times[19].IOCounts = IOCounts{Reads: 1, ReadBytes: TotalOf(8191)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, expected\n%+v", got, want)
	}

	b = NewBuilder(1)
	b.Rank(0).Add(Op{Kind: IO, Subkind: Write, Bytes: 1, Release: MaxTime})
	b.Rank(0).Add(Op{Kind: IO, Subkind: Write, Bytes: 1})
	if s := SummarizeIO(b.Trace()); s.Requests.Writes != 2 || s.Times[len(s.Times)-1].Writes != 1 {
		t.Errorf("of 106 days: %+v", s)
	}
}
