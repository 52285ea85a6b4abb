package render

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMemory makes of an overlay what it is once, hands out copies, and forgets what was not
// used for longest.
func TestMemory(t *testing.T) {
	m := newMemory()
	builds := 0
	of := func(overlay string) *unstructured.Unstructured {
		made, err := m.of(overlay, func() ([]*unstructured.Unstructured, error) {
			builds++
			return []*unstructured.Unstructured{{Object: map[string]any{"kind": overlay}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return made[0]
	}
	of("a").SetName("changed")
	if again := of("a"); again.GetName() != "" || again.GetKind() != "a" || builds != 1 {
		t.Errorf("after it was changed, it is %v, made %d times", again, builds)
	}
	for i := range remembered - 1 {
		of(fmt.Sprint(i))
	}
	of("a")
	of("one more") // than fit, and "0" is the oldest
	if before := builds; of("a") == nil || builds != before {
		t.Error("what was used a moment ago is forgotten")
	}
	if before := builds; of("0") == nil || builds != before+1 || m.made.Len() != remembered {
		t.Errorf("%d are remembered", m.made.Len())
	}
	if _, err := m.of("fails", func() ([]*unstructured.Unstructured, error) { return nil, errors.New("no") }); err == nil {
		t.Error("what fails is no error")
	}
	if _, known := m.made.Get("fails"); known {
		t.Error("what fails is remembered")
	}
}

// TestRenderedOnce renders registries again and again, as reconciles do, and expects that
// kustomize, which takes far longer than all else of a reconcile, runs once for each.
func TestRenderedOnce(t *testing.T) {
	for _, fixture := range fixtures(t) {
		in := inputOf(t, newest(t), fixture)
		builds = newMemory()
		for range 20 {
			rendered(t, in)
		}
		if runs := builds.made.Len(); runs != 1 {
			t.Errorf("%s: kustomize ran %d times", fixture, runs)
		}
	}
}

// BenchmarkAtRest renders each of some registries of which nothing changes, one after the other.
func BenchmarkAtRest(b *testing.B) {
	for _, registries := range []int{1, 50} {
		b.Run(fmt.Sprintf("%d registries", registries), func(b *testing.B) {
			var all []Input
			for i := range registries {
				in := inputOf(b, newest(b), "aggregated-ha")
				in.Registry.Namespace = fmt.Sprintf("team-%d", i)
				all = append(all, in)
			}
			render := func(in Input) {
				if _, err := Render(in); err != nil {
					b.Fatal(err)
				}
			}
			builds = newMemory()
			for _, in := range all {
				render(in)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				render(all[i%registries])
			}
		})
	}
}
