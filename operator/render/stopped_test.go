package render

import "testing"

// TestStopped has no APIService among the objects of a registry whose servers are not to run:
// the host cluster would wait for it at each deletion of a namespace.
func TestStopped(t *testing.T) {
	for _, stopped := range []Stopped{{}, {Servers: true}, {Servers: true, Members: true}} {
		in := input(t, "{metadata: {name: fleet, namespace: team}, spec: {mode: Aggregated, version: v0.2.0}}")
		in.Stopped = stopped
		result := rendered(t, in)
		if registers := len(result.Stages[StageEndpoint]) > 0; registers == stopped.Servers {
			t.Errorf("%+v: it registers: %t", stopped, registers)
		}
		for _, object := range result.Stages[StageServer] {
			if object.GetKind() != "Deployment" {
				continue
			}
			if replicas := object.Object["spec"].(map[string]any)["replicas"]; (replicas == int64(0)) != stopped.Servers {
				t.Errorf("%+v: %v servers", stopped, replicas)
			}
		}
	}
}
