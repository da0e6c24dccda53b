package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/test/bench/report"
)

func filled(t *testing.T) *report.Report {
	t.Helper()
	r := &report.Report{
		Bars: map[string]report.Bar{
			"cold.added_ms":     report.AtMost(20),
			"warm.added_us":     report.AtMost(200),
			"warm.ratio_raw_16": report.AtLeast(0.4),
		},
		About: map[string]any{"run.pairs": 3},
	}
	for _, figure := range []struct {
		key    string
		values []float64
	}{
		{"cold.added_ms", []float64{-31.5, -20, -44}},
		{"warm.added_us", []float64{250, 230, 1240}},
		{"warm.ratio_raw_16", []float64{0.4}},
		{"warm.call_us", []float64{400, 410}},
	} {
		if err := r.Add(figure.key, figure.values); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestTable(t *testing.T) {
	const want = `MEASURE            MEDIAN  95 % INTERVAL   N  BAR     
cold.added_ms      -31.5   -44.0 to -20.0  3  ≤ 20.0  ok
warm.added_us      250     230 to 1240     3  ≤ 200   short
warm.ratio_raw_16  0.40    0.40 to 0.40    1  ≥ 0.40  ok
warm.call_us       405     400 to 410      2          
`
	var got bytes.Buffer
	if err := filled(t).Table(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("Table (-want +got):\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	want := map[string]float64{
		"run.pairs":     3,
		"cold.added_ms": -31.5, "cold.added_ms.low": -44, "cold.added_ms.high": -20,
		"warm.added_us": 250, "warm.added_us.low": 230, "warm.added_us.high": 1240,
		"warm.ratio_raw_16": 0.4, "warm.ratio_raw_16.low": 0.4, "warm.ratio_raw_16.high": 0.4,
		"warm.call_us": 405, "warm.call_us.low": 400, "warm.call_us.high": 410,
	}
	var written bytes.Buffer
	if err := filled(t).JSON(&written); err != nil {
		t.Fatal(err)
	}
	var got map[string]float64
	if err := json.Unmarshal(written.Bytes(), &got); err != nil {
		t.Fatalf("the report is not flat: %v\n%s", err, &written)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestAddRefuses(t *testing.T) {
	for _, values := range [][]float64{nil, {math.NaN()}, {1, math.Inf(1)}} {
		var r report.Report
		if err := r.Add("cold.call_ms", values); err == nil {
			t.Errorf("Add(%v) = nil, want an error", values)
		}
		if len(r.Rows()) > 0 {
			t.Errorf("Rows after Add(%v) = %v, want none", values, r.Rows())
		}
	}
}
