package matrix

// Preset is the shape of one of TrafPy's benchmark sets, version v001. Sizes are in bytes, times in microseconds.
type Preset struct {
	Name          string
	Sizes         string  // see ParseDistribution
	Interarrivals string  // see ParseDistribution
	Matrix        string  // see ParseRecipe
	InterRack     float64 // part of all bytes that leaves its rack, if there are racks; 0: as drawn
}

const (
	universitySizes = "lognormal:mu=7,sigma=2.5,min=1,max=2e7,round=25"
	cloudTimes      = "multimodal:mode=10/0/1/10000,mode=20/0/3/7000,mode=100/0/4/5000,mode=1/100/50/20000," +
		"background=0.01,min=1,max=1e4,round=25"
	skewedNodes = "nodes:fraction=0.2,share=0.55"
)

var presets = []Preset{
	{"university", universitySizes, "weibull:alpha=0.9,lambda=6000,min=1,round=25", skewedNodes, 0.7},
	{"private_enterprise", universitySizes,
		"multimodal:mode=40/-1/60/10000,mode=1/4/1000/10000,background=0.05,min=1,max=1e5,round=25", skewedNodes, 0.5},
	{"commercial_cloud", universitySizes, cloudTimes, skewedNodes, 0.2},
	{"social_media_cloud", "weibull:alpha=0.5,lambda=21000,min=1,max=2e6,round=25",
		"lognormal:mu=6,sigma=2.3,min=1,round=25", skewedNodes, 0.129},
	{"rack_sensitivity_0", universitySizes, cloudTimes, "uniform", 0},
	{"rack_sensitivity_02", universitySizes, cloudTimes, "uniform", 0.8}, // names state the part that stays in the rack
	{"rack_sensitivity_04", universitySizes, cloudTimes, "uniform", 0.6},
	{"rack_sensitivity_06", universitySizes, cloudTimes, "uniform", 0.4},
	{"rack_sensitivity_08", universitySizes, cloudTimes, "uniform", 0.2},
	{"skewed_nodes_sensitivity_0", universitySizes, cloudTimes, "uniform", 0},
	{"skewed_nodes_sensitivity_005", universitySizes, cloudTimes, "nodes:fraction=0.05,share=0.55", 0},
	{"skewed_nodes_sensitivity_01", universitySizes, cloudTimes, "nodes:fraction=0.1,share=0.55", 0},
	{"skewed_nodes_sensitivity_02", universitySizes, cloudTimes, "nodes:fraction=0.2,share=0.55", 0},
	{"skewed_nodes_sensitivity_04", universitySizes, cloudTimes, "nodes:fraction=0.4,share=0.55", 0},
	{"uniform", "uniform:min=100,max=10000,round=25", "uniform:min=1,max=10000,round=25", "uniform", 0},
}

// Presets returns the names of the presets.
func Presets() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.Name)
	}
	return names
}

// Use sets sizes, times between arrivals, matrix and inter-rack part to those of a preset. It reports whether the
// preset exists.
func (p *Params) Use(name string) bool {
	for _, preset := range presets {
		if preset.Name == name {
			p.use(preset)
			return true
		}
	}
	return false
}

func (p *Params) use(preset Preset) {
	p.Sizes = Values{Distribution: mustParse(ParseDistribution(preset.Sizes))}
	p.Interarrivals = Values{Distribution: mustParse(ParseDistribution(preset.Interarrivals))}
	p.Recipe = mustParse(ParseRecipe(preset.Matrix))
	p.InterRack = preset.InterRack
}

func mustParse[T any](parsed *T, err error) *T {
	if err != nil {
		panic(err) // presets are constants of the program
	}
	return parsed
}
