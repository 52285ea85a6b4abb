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
