package sim

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Value is a named value of a result: a bool, a number, a text, a type that marshals itself as one of these, nil for a
// value such as "never" that no number has, or nested [Values].
type Value struct {
	Name  string
	Value any
	Unit  string // such as "flits"; "": none, or the name ends with it
}

// Values are named values in order. They marshal to a JSON object with the same order.
type Values []Value

// ValuesOf returns the fields of a struct in order, with the names and options of encoding/json. Nested structs and
// maps with string keys become nested values; those of a map are sorted by name. The tag "unit" is the unit. The
// largest int64, which means "never" or "no limit", becomes nil.
func ValuesOf(v any) Values {
	return fieldsOf(reflect.ValueOf(v))
}

func fieldsOf(v reflect.Value) Values {
	all := Values{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.IsExported() && name != "-" && (options != "omitempty" || !v.Field(i).IsZero()) {
			all = append(all, Value{cmp.Or(name, field.Name), valueOf(v.Field(i)), field.Tag.Get("unit")})
		}
	}
	return all
}

func valueOf(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return value
	}
	switch v.Kind() {
	case reflect.Int64:
		if v.Int() == math.MaxInt64 { // never, or without limit
			return nil
		}
	case reflect.Struct:
		return fieldsOf(v)
	case reflect.Map:
		all := Values{}
		for _, key := range v.MapKeys() {
			all = append(all, Value{Name: key.String(), Value: valueOf(v.MapIndex(key))})
		}
		slices.SortFunc(all, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
		return all
	}
	return v.Interface()
}

// MarshalJSON returns a JSON object.
func (v Values) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range v {
		if i > 0 {
			b.WriteByte(',')
		}
		for k, part := range [...]any{v[i].Name, v[i].Value} {
			text, err := MarshalJSON(part)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v[i].Name, err)
			}
			b.Write(text)
			if k == 0 {
				b.WriteByte(':')
			}
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Get returns the named value, or nil. The name of a nested value is that of its parent, a dot and its own.
func (v Values) Get(name string) any {
	for i := range v {
		if v[i].Name == name {
			return v[i].Value
		}
		if nested, ok := v[i].Value.(Values); ok {
			if rest, found := strings.CutPrefix(name, v[i].Name+"."); found {
				return nested.Get(rest)
			}
		}
	}
	return nil
}

// Units adds the units of the values to units. A key is the prefix and the names of the value and its parents, each
// parent followed by a dot.
func (v Values) Units(prefix string, units map[string]string) {
	for i := range v {
		if nested, ok := v[i].Value.(Values); ok {
			nested.Units(prefix+v[i].Name+".", units)
		} else if v[i].Unit != "" {
			units[prefix+v[i].Name] = v[i].Unit
		}
	}
}
