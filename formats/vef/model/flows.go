// This file has the model FLOWS.

package model

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/flows"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

type flowsModel struct {
	params flows.Params
	dist   openloop.Distribution // for classes without a distribution
}

// Flows returns the model FLOWS.
func Flows(p flows.Params) *Model {
	return &Model{
		header: Header{Tasks: int64(p.Tasks), Messages: p.Messages, Clock: p.Clock},
		kind:   kindFlows,
		model:  &flowsModel{p, openloop.UniformTask},
	}
}

func parseFlows(p *parser) (model, error) {
	if err := p.next("a record of CLASSES and TIME"); err != nil {
		return nil, err
	}
	m := &flowsModel{params: flows.Params{Messages: p.header.Messages, Clock: p.header.Clock}}
	classes := int64(0)
	err := p.keywords(&m.dist,
		keyword{"CLASSES", count{&classes, math.MaxInt64}, false},
		keyword{"TIME", count{&m.params.Ticks, math.MaxInt64}, false})
	if err != nil {
		return nil, err
	}
	if m.params.Tasks, err = p.tasks(); err != nil {
		return nil, err
	}
	first := p.place
	if m.params.Classes, err = p.classes(classes, m.dist); err != nil {
		return nil, err
	}
	p.place = first // for errors about all classes
	return m, m.params.Check()
}

// classes reads all other records: the records of the classes 0..n-1.
func (p *parser) classes(n int64, dist openloop.Distribution) ([]flows.Class, error) {
	first := p.place
	byID := map[int64]flows.Class{}
	for len(p.rest) > 0 {
		if err := p.next(""); err != nil {
			return nil, err
		}
		field, _ := p.word("")
		id, err := strconv.ParseUint(field, 10, 63)
		if err != nil || int64(id) >= n {
			return nil, p.fail(fmt.Sprintf("a class in 0..%d", n-1), quote(field))
		}
		if _, twice := byID[int64(id)]; twice {
			return nil, p.fail("each class once", fmt.Sprintf("class %d twice", id))
		}
		if byID[int64(id)], err = p.class(dist); err != nil {
			return nil, err
		}
	}
	if int64(len(byID)) < n {
		return nil, first.fail(fmt.Sprintf("the records of %d classes", n), strconv.Itoa(len(byID)))
	}
	classes := make([]flows.Class, n)
	for id := range classes {
		classes[id] = byID[int64(id)]
	}
	return classes, nil
}

// class reads the rest of the record of a class.
func (p *parser) class(dist openloop.Distribution) (c flows.Class, err error) {
	c.Destination = p.destinations(dist)
	err = p.keywords(&c.Destination.Distribution,
		keyword{"MIN", count{&c.MinKB, flows.MaxKB}, false},
		keyword{"MAX", count{&c.MaxKB, flows.MaxKB}, false},
		keyword{"PERC", number{&c.Percent, percent, "from 0 to 100"}, false})
	if err == nil && c.MaxKB < c.MinKB {
		err = p.fail(fmt.Sprintf("MAX of at least the %d of MIN", c.MinKB), strconv.FormatInt(c.MaxKB, 10))
	}
	return c, err
}

func (m *flowsModel) attrs(c common) any {
	type class struct {
		ID      int     `json:"id"`
		MinKB   int64   `json:"min_kb"`
		MaxKB   int64   `json:"max_kb"`
		Percent float64 `json:"perc"`
		Dist    string  `json:"dist"`
	}
	type attrs struct {
		common
		Classes   int     `json:"classes"`
		Ticks     int64   `json:"time_cycles"`
		Dist      string  `json:"dist"`
		List      []class `json:"class_list"`
		MeanBytes float64 `json:"expected_mean_flow_bytes"`
		MeanGap   float64 `json:"expected_gap_cycles,omitempty"`
	}
	p := &m.params
	a := attrs{common: c, Classes: len(p.Classes), Ticks: p.Ticks, Dist: m.dist.String(), MeanBytes: p.MeanBytes()}
	if p.Messages > 0 {
		a.MeanGap = p.MeanGap()
	}
	for id, c := range p.Classes {
		a.List = append(a.List, class{id, c.MinKB, c.MaxKB, c.Percent, c.Destination.String()})
	}
	return a
}

func (m *flowsModel) records() [][]string {
	p := &m.params
	records := [][]string{
		{"CLASSES", strconv.Itoa(len(p.Classes)), "TIME", strconv.FormatInt(p.Ticks, 10), m.dist.String()},
	}
	for id, c := range p.Classes {
		record := []string{
			strconv.Itoa(id), "MIN", strconv.FormatInt(c.MinKB, 10), "MAX", strconv.FormatInt(c.MaxKB, 10),
			"PERC", formatFloat(c.Percent),
		}
		if d := c.Destination.Distribution; d != m.dist {
			record = append(record, d.String())
		}
		records = append(records, record)
	}
	return records
}

func (m *flowsModel) source(ctx context.Context, seed int64) (dag.Source, error) {
	p := m.params
	p.Context = ctx
	return flows.NewSource(p, seed)
}
