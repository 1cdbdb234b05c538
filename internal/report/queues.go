package report

import "slices"

// queues writes the sampled lengths of queues.
func (p *page) queues() {
	queues := p.root.get("queues")
	ports := queues.get("ports").all()
	if len(ports) == 0 {
		return
	}
	says := new(sentence).add("The fullest queue is that of ").show(ports[0].get("port"), plain).add(", with up to ").
		show(ports[0].get("max_bytes"), size).add("; ").show(queues.get("queued_ports"), plain).
		add(" ports of switches queue data in one of ").show(queues.get("samples"), plain).add(" samples, ").
		show(queues.get("period_ps"), time).add(" apart")
	if queues.get("ports_not_followed").known {
		says.add("; the last ").show(queues.get("ports_not_followed"), plain).add(" of them are not compared")
	}
	says.add(".")
	p.section("queues", "Queues", says)
	defer p.endSection()
	values := objectsOf(ports, "Queues of the fullest ports", "port", "max_bytes", "p99_bytes", "mean_bytes",
		"ecn_min_bytes", "ecn_max_bytes")
	x, y := scaleAxis{name: "time", unit: time}, scaleAxis{name: "data in the queue", unit: size}
	interval := queues.get("interval_ps").number()
	var all []series
	var curves []value
	var names []string
	for _, port := range ports[:min(len(ports), lineStyles)] {
		s := series{name: clean(port.get("port").text()), steps: true}
		lengths := port.get("bytes").all()
		for i, v := range lengths {
			s.xy = append(s.xy, [2]float64{interval * float64(i), v.number()})
		}
		s.xy = append(s.xy, [2]float64{interval * float64(len(lengths)), 0})
		all = append(all, s)
		curves, names = append(curves, port.get("cdf")), append(names, s.name)
		for _, threshold := range []string{"ecn_min_bytes", "ecn_max_bytes"} {
			if v := port.get(threshold); v.isNumber() && !slices.Contains(y.lines, v.number()) {
				y.lines = append(y.lines, v.number())
			}
		}
	}
	y.lineName = "ECN at "
	drawn := new(sentence).add("Longest data queues of the fullest ports in intervals of ").
		show(queues.get("interval_ps"), time).add("; the largest is ").show(ports[0].get("max_bytes"), size).add(".")
	p.figure("Data in the queues of the fullest ports over time", drawn, chart(x, y, all), values)
	spread := new(sentence).add("In 99 % of the samples, the queue of ").show(ports[0].get("port"), plain).
		add(" has at most ").show(ports[0].get("p99_bytes"), size).add(", in the mean ").
		show(ports[0].get("mean_bytes"), size).add(".")
	p.figure("Share of samples up to a length of the queue", spread, distributions("data in the queue", size, curves,
		names), values)
}
