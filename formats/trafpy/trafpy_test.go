package trafpy

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/flowio"
	"github.com/tracedag/tracedag/formats/internal/flowio/flowtest"
)

const object = `{"flow_id": ["flow_2", "flow_1", "flow_0"], "sn": ["server_0", "server_3", "server_0"], ` +
	`"dn": ["server_3", "server_1", "server_1"], "flow_size": [25.0, 100.0, 1.0], ` +
	`"event_time": [0.0, 12.5, 1234.5678901234567], "establish": [1, 1, 1], "index": [0, 1, 2]}`

const table3 = ",flow_id,sn,dn,flow_size,event_time,establish,index\n" +
	"0,flow_2,server_0,server_3,25.0,0.0,1,0\n" +
	"1,flow_1,server_3,server_1,100.0,12.5,1,1\n" +
	"2,flow_0,server_0,server_1,1.0,1234.5678901234567,1,2\n"

// encoded returns a text as a JSON string, as TrafPy encodes its files twice.
func encoded(t *testing.T, text string) string {
	t.Helper()
	twice, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(twice)
}

func TestRead(t *testing.T) {
	const want = `0: send to 3, 25 bytes, tag 0, at 0s flow_2
0: send to 1, 1 bytes, tag 2, at 1.23456789ms flow_0 {"trafpy":{"time":"1234.5678901234567"}}
1: recv from 3, 100 bytes, tag 1
1: recv from 0, 1 bytes, tag 2
3: recv from 0, 25 bytes, tag 0
3: send to 1, 100 bytes, tag 1, at 12.5us
`
	for text, f := range map[string]*format.Format{object: &JSON, encoded(t, object): &JSON, table3: &CSV} {
		trace, warnings, err := flowtest.Read(f, text, format.ReadOptions{})
		if err != nil || warnings != "" {
			t.Fatalf("%s: error %v, warnings %q", f.Name, err, warnings)
		}
		if got := flowtest.List(trace); got != want {
			t.Errorf("%s: got\n%s, want\n%s", f.Name, got, want)
		}
		if want := `{"trafpy":{"unit":6,"decimals":1,"point":true,"prefix":"server_"}}`; trace.Attrs != want {
			t.Errorf("attributes %s, want %s", trace.Attrs, want)
		}
		// Each form can be written as the other.
		if got := flowtest.Write(t, &JSON, trace); got != object {
			t.Errorf("from %s: got\n%s, want\n%s", f.Name, got, object)
		}
		if got := flowtest.Write(t, &CSV, trace); got != table3 {
			t.Errorf("from %s: got\n%s, want\n%s", f.Name, got, table3)
		}
	}
}

func row(cells string) string { return ",flow_id,sn,dn,flow_size,event_time,establish,index\n" + cells }

// A table whose flows are in the order of their times comes back byte for byte, through the store or not.
func TestRoundTrip(t *testing.T) {
	flowtest.RoundTrip(t, &JSON, object, format.ReadOptions{})
	flowtest.RoundTripTo(t, &JSON, encoded(t, object), object, format.ReadOptions{})
	for _, text := range []string{
		table3,
		row("0,flow_0,0,1,10,0,1,0\n1,flow_1,1,0,20,5,1,1\n2,flow_2,1,0,20,5.5,1,2\n"),
		row("0,a,tor,host 7,10,0.0,1,0\n1,\"b\"\"c\",\"x,y\",tor,20.5,5.25,1,1\n2,é,tor,a10,20.0,6.0,1,2\n"),
		row("0,flow_1,0,1,1e3,1e-05,1,0\n1,flow_0,01,1,1e3,1e-05,1,1\n"),
		row("0,flow_0,7,60000,1,0.0,1,0\n"),
		row("0,flow_0,n7,n600000,1,0.0,1,0\n"), // too many ranks for one flow: two are made
		row("0,flow_0,0,0,1,9223372036854.775807,1,0\n"),
	} {
		flowtest.RoundTrip(t, &CSV, text, format.ReadOptions{})
	}
	var o format.ReadOptions
	o.Own = &flowio.Options{Cycle: dag.Second}
	text := row("0,flow_0,0,1,10,0.0,1,0\n1,flow_1,1,0,20,9223372.036854775807,1,1\n")
	flowtest.RoundTrip(t, &CSV, text, o)
	o.Own = &flowio.Options{Cycle: 5}
	if _, _, err := flowtest.Read(&CSV, text, o); err == nil {
		t.Error("a unit of 5 ps is accepted")
	}
	// Blanks do not matter, other columns are left out, and so is an order that is not that of the times.
	flowtest.RoundTripTo(t, &JSON, "{ \"index\" : [ 0 ],\n\"flow_size\":[7],\"sn\":[\"0\"],\"job\":[{\"a\":[1,\"]\"]}],"+
		"\"dn\":[\"1\"],\"event_time\":[2],\"flow_id\":[\"\\u0066low_0\"]}\n",
		`{"flow_id": ["flow_0"], "sn": ["0"], "dn": ["1"], "flow_size": [7], "event_time": [2], "establish": [1], "index": [0]}`,
		format.ReadOptions{})
	trace, warnings, err := flowtest.Read(&CSV, row("0,b,0,1,10,5.0,1,1\n1,a,1,0,20.5,1.0,1,0\n"), format.ReadOptions{})
	if err != nil || !strings.Contains(warnings, "the column index is not kept") || !strings.Contains(warnings, "rounded to whole bytes") {
		t.Errorf("error %v, warnings %q", err, warnings)
	}
	if got, want := flowtest.Write(t, &CSV, trace), row("0,a,1,0,20.5,1.0,1,0\n1,b,0,1,10,5.0,1,1\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMalformed(t *testing.T) {
	for cells, want := range map[string]string{
		"0,a,0,1,-1,0,1,0\n":       `x:2: expected a size in bytes (0..9223372036854775807), found "-1"`,
		"0,a,0,1,NaN,0,1,0\n":      `x:2: expected a size in bytes (0..9223372036854775807), found "NaN"`,
		"0,a,0,1,1.,0,1,0\n":       `x:2: expected a size in bytes (0..9223372036854775807), found "1."`,
		"0,a,0,1,1e400,0,1,0\n":    `x:2: expected a size in bytes (0..9223372036854775807), found "1e400"`,
		"0,a,0,1,1,-0.5,1,0\n":     `x:2: expected a time in units of 1us, found "-0.5"`,
		"0,a,0,1,1,inf,1,0\n":      `x:2: expected a time in units of 1us, found "inf"`,
		"0,a,0,1,1,,1,0\n":         `x:2: expected a time in units of 1us, found ""`,
		"0,a,0,1,1,1.2.3,1,0\n":    `x:2: expected a time in units of 1us, at most 106 days, found "1.2.3"`,
		"0,a,0,1,1,1e13,1,0\n":     `x:2: expected a time in units of 1us, at most 106 days, found "1e13"`,
		"0,a,0,1,1,0,0,0\n":        `x:2: expected 1 (an established flow), found "0"`,
		"0,a,0,1,1,0,1,x\n":        `x:2: expected a flow index, found "x"`,
		"0,a,0,1,1,0,1\n":          "x:2: expected a row of comma-separated values, found wrong number of fields",
		"0,a,0,1,1,0,1,0\n1,\"a\n": "x:3: expected a row of comma-separated values, found extraneous or missing \" in quoted-field",
	} {
		if _, _, err := flowtest.Read(&CSV, row(cells), format.ReadOptions{}); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", cells, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                       "x:1: expected column names, found the end of the file",
		"flow_id,sn\na,0\n":      "x: expected a column dn, found none",
		"flow_id,flow_id\na,0\n": "x:1: expected every column once, found flow_id again",
	} {
		if _, _, err := flowtest.Read(&CSV, text, format.ReadOptions{}); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                               `x: offset 0: expected '{', found the end`,
		"[]":                             `x: offset 0: expected '{', found "[]"`,
		"{}":                             "x: expected a column flow_id, found none",
		`{"flow_id" ["a"]}`:              `x: offset 11: expected ':', found "[\"a\"]}"`,
		`{"flow_id": ["a"`:               `x: offset 16: expected "," or ']', found the end`,
		`{"flow_id": ["a" "b"]}`:         `x: offset 17: expected "," or ']', found "\"b\"]}"`,
		`{"flow_id": ["a]}`:              `x: offset 17: expected the end of a string, found the end`,
		`{"flow_id": ["\x"]}`:            `x: offset 13: expected a string, found invalid character 'x' in string escape code`,
		`{"flow_size": [null]}`:          `x: offset 15: expected a number or a string, found "null]}"`,
		`{"flow_size": [1], }`:           `x: offset 19: expected a string, found "}"`,
		`{"job": [1}`:                    `x: offset 8: expected a value, found "[1}"`,
		`{"flow_id": [], "flow_id": []}`: "x: offset 16: expected every column once, found flow_id again",
		`{"flow_id": []} x`:              `x: offset 16: expected the end, found "x"`,
		`{"flow_id": ["a"], "sn": ["0"], "dn": ["1", "2"], "flow_size": [1], "event_time": [1]}`: "x: expected columns of the same length, found 1 values of flow_id and 2 of another",
		`"{\"flow_id\": [`:      `x: offset 16: expected a JSON string, found unexpected end of JSON input`,
		`"{\"flow_id\": []}" 1`: `x: offset 21: expected a JSON string, found invalid character '1' after top-level value`,
	} {
		if _, _, err := flowtest.Read(&JSON, text, format.ReadOptions{}); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestWriteOthers(t *testing.T) {
	b := dag.NewBuilder(3)
	b.Rank(1).Add(dag.Op{Kind: dag.Send, Peer: 0, Bytes: 9, Release: 2500 * dag.Nanosecond, Name: `a "b"`})
	b.Rank(0).Recv(1, 9, 0)
	trace := b.Trace()
	if got, want := flowtest.Write(t, &JSON, trace), `{"flow_id": ["a \"b\""], "sn": ["1"], "dn": ["0"], "flow_size": [9], `+
		`"event_time": [2.5], "establish": [1], "index": [0]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := flowtest.Write(t, &CSV, trace), row("0,\"a \"\"b\"\"\",1,0,9,2.5,1,0\n"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprint(losses(trace)); got != "[1 op: ranks without messages, whose number changes when the file is read again]" {
		t.Errorf("losses %s", got)
	}
	for _, f := range []*format.Format{&JSON, &CSV} {
		if err := f.Write(io.Discard, dag.NewBuilder(1).Trace(), format.WriteOptions{}); err == nil {
			t.Errorf("%s: a trace without messages is written", f.Name)
		}
	}
}

// A kept number that no longer matches its flow is not written.
func TestStaleNumber(t *testing.T) {
	trace, _, err := flowtest.Read(&CSV, row("0,a,0,1,1,0.5,1,0\n1,b,0,1,2.00,1.50,1,1\n"), format.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trace.Ranks[0].Release[1]++
	if got, want := flowtest.Write(t, &CSV, trace), row("0,a,0,1,1,0.5,1,0\n1,b,0,1,2.00,1.500001,1,1\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDetect(t *testing.T) {
	for head, want := range map[string][2]bool{
		object: {true, false}, encoded(t, object): {true, false}, table3: {false, true}, " {\n \"sn\" :[": {true, false},
		`{"flow_id": {`: {}, `{"id": [`: {}, `"flow_id"`: {}, "": {}, "flow_id,sn,dn,flow_size\n": {},
		"event_time,flow_size,dn,sn,flow_id\r\n": {false, true},
	} {
		if got := [2]bool{detectJSON([]byte(head)), detectCSV([]byte(head))}; got != want {
			t.Errorf("%.20q: %v, want %v", head, got, want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	twice, err := json.Marshal(object)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(object))
	f.Add(twice)
	f.Add([]byte(`{"flow_id": ["\u0066"], "sn": ["x"], "dn": ["x"], "flow_size": [1e3], "event_time": [1e-7], "z": {"a": []}}`))
	f.Fuzz(func(t *testing.T, text []byte) { flowtest.Fuzz(t, &JSON, text) })
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte(table3))
	f.Add([]byte(row("0,\"a,b\",tor,01,2.50,1e-05,1.0,7\n")))
	f.Fuzz(func(t *testing.T, text []byte) { flowtest.Fuzz(t, &CSV, text) })
}

func BenchmarkReadJSON(b *testing.B)  { flowtest.BenchmarkRead(b, &JSON, 200_000) }
func BenchmarkReadCSV(b *testing.B)   { flowtest.BenchmarkRead(b, &CSV, 200_000) }
func BenchmarkWriteJSON(b *testing.B) { flowtest.BenchmarkWrite(b, &JSON, 200_000) }
func BenchmarkWriteCSV(b *testing.B)  { flowtest.BenchmarkWrite(b, &CSV, 200_000) }
