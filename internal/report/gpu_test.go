package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// gpuOf returns the report of statistics of two ranks.
func gpuOf(t *testing.T) *Report {
	t.Helper()
	return reportOf(t, GPU, `{"input":"job","rank_count":2,"gpu":{"ranks":[`+
		`{"rank":0,"time_ps":100,"compute_ps":40,"overlapped_ps":10,"exposed_comm_ps":20,"other_ps":5,"idle_ps":25},`+
		`{"rank":3,"time_ps":90,"compute_ps":50,"overlapped_ps":0,"exposed_comm_ps":20,"other_ps":0,"idle_ps":20}],`+
		`"idle":[{"name":"rank 0 stream 0:7","host_wait_ps":-3,"kernel_wait_ps":9,"other_ps":0}],`+
		`"collectives":[{"name":"allreduce, 2 ranks","size_bytes":4000,"count":3,"sum_ps":60,"max_ps":25,"bus_bits_s":8e9}],`+
		`"kernels":[{"name":"void gemm<float>","kind":"COMPUTATION","ops":4,"sum_ps":100,"max_ps":30}],"stragglers":[]}}`)
}

// TestGPU writes the page and the pictures of statistics of a GPU trace.
func TestGPU(t *testing.T) {
	r := gpuOf(t)
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`id="gpu-time"`, `id="gpu-idle"`, `id="gpu-collectives"`, "rank 3", "gemm&lt;float&gt;",
		"allreduce, 2 ranks", "4\u00a0kB"} {
		if !strings.Contains(page.String(), part) {
			t.Errorf("no %s in the page", part)
		}
	}
	if strings.Contains(page.String(), `id="gpu-stragglers"`) {
		t.Error("a section without rows")
	}
	for _, kind := range []string{"", "ranks", "idle", "collectives", "kernels"} {
		var picture bytes.Buffer
		data := new(PlotData)
		f := PlotFile{Kind: kind, Name: "x.svg"}
		plots := Plots{Width: 400, Height: 200, Font: plotFont{"sans", 10}}
		if err := r.Plot(&picture, f, &plots, data); err != nil || !strings.Contains(picture.String(), "</svg>") {
			t.Errorf("%q: %v", kind, err)
		}
		if kind == "ranks" && fmt.Sprint(len(data.rows)) != "10" {
			t.Errorf("%d rows", len(data.rows))
		}
	}
	if err := r.Plot(new(bytes.Buffer), PlotFile{Kind: "stragglers", Name: "x.svg"}, &Plots{Width: 400, Height: 200,
		Font: plotFont{"sans", 10}}, nil); err == nil || !strings.Contains(err.Error(), "needs collectives") {
		t.Errorf("error %v", err)
	}
}

// allGPU returns the report of statistics that have rows in each list, with many ranks and with names to escape.
func allGPU(t *testing.T) *Report {
	t.Helper()
	var ranks, paths, launches, queues strings.Builder
	for i := range 300 {
		comma := ","
		if i == 0 {
			comma = ""
		}
		fmt.Fprintf(&ranks, `%s{"rank":%d,"time_ps":100,"compute_ps":%d,"overlapped_ps":10,"exposed_comm_ps":20,`+
			`"other_ps":5,"idle_ps":25}`, comma, i, 40+i)
		fmt.Fprintf(&paths, `%s{"rank":%d,"length_ps":100,"cpu_ps":1,"compute_ps":50,"communication_ps":9,`+
			`"between_kernels_ps":20,"launches_ps":20}`, comma, i)
		fmt.Fprintf(&launches, `%s{"rank":%d,"launches":4,"mean_ps":%d}`, comma, i, 7*i)
		fmt.Fprintf(&queues, `%s{"name":"rank %d stream 0:7","count":3,"mean":%d.5,"p50":1,"max":9,"full_ps":0}`, comma, i, i)
	}
	const name = `void gemm<a & \"b\">(\u202eabc)</text>`
	return reportOf(t, GPU, `{"input":"job","rank_count":300,"gpu":{"ranks":[`+ranks.String()+`],`+
		`"types":[{"name":"computation","time_ps":70},{"name":"`+name+`","time_ps":0}],`+
		`"paths":[`+paths.String()+`],"path_names":[{"name":"`+name+`","bound":"compute","edges":3,"time_ps":70}],`+
		`"stragglers":[{"rank":7,"collectives":3,"waiting_ps":9,"worst":"allreduce","worst_waiting_ps":5}],`+
		`"idle":[{"name":"rank 0 stream 0:7","host_wait_ps":-3,"kernel_wait_ps":9,"other_ps":0}],`+
		`"collectives":[{"name":"`+name+`","size_bytes":4000,"count":3,"sum_ps":60,"max_ps":25}],`+
		`"kernels":[{"name":"`+name+`","kind":"COMPUTATION","ops":4,"sum_ps":100,"max_ps":30},{"name":"","kind":"",`+
		`"ops":0,"sum_ps":0,"max_ps":0}],"launches":[`+launches.String()+`],"queues":[`+queues.String()+`]}}`)
}
