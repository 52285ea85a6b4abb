package operand_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/operator/address"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
)

// TestFreeze has the first reason count, and every change be an error from then on.
func TestFreeze(t *testing.T) {
	objects := operandtest.New(t, operandtest.InstalledAggregated)
	if objects.ReadOnly() || objects.ReadOnlyUntil() != "" || objects.Writer().Err() != nil {
		t.Error("it begins read-only")
	}
	objects.Freeze("spec.paused is false")
	objects.FreezeBy("EtcdReady", "this is resolved: EtcdReady: the data is gone")
	if objects.WriterDespite("EtcdReady").Err() == nil || !objects.ReadOnly() || objects.ReadOnlyUntil() != "spec.paused is false" {
		t.Errorf("until %q", objects.ReadOnlyUntil())
	}
	service := operandtest.Rendered(corev1.SchemeGroupVersion.WithKind(address.ServiceKind), "fleet-server")
	objects.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageCertificates: {service}}
	for what, err := range map[string]error{
		"objects are applied":             objects.Apply(t.Context()),
		"the inventory is written":        objects.WriteInventory(t.Context(), nil),
		"what is not rendered is pruned":  objects.Prune(t.Context()),
		"the servers' Service is applied": address.ApplyService(t.Context(), objects),
	} {
		if !errors.Is(err, apply.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestWriterDespite has a part's own finding, and nothing else, be what something may be changed
// despite.
func TestWriterDespite(t *testing.T) {
	objects := operandtest.New(t, operandtest.InstalledAggregated)
	if objects.WriterDespite("EtcdReady") != objects.Writer() || objects.Writer().Err() != nil {
		t.Error("there is nothing despite which anything is changed")
	}
	objects.FreezeBy("EtcdReady", "this is resolved: EtcdReady: the data is gone")
	if objects.WriterDespite("EtcdReady").Err() != nil || objects.Writer().Err() == nil {
		t.Error("either its own finding holds it up, or nothing holds up the others any more")
	}
	if objects.ReadOnlyUntil("EtcdReady") != "" || objects.ReadOnlyUntil("CertificatesReady") == "" {
		t.Error("what is said of it is not what its writer does")
	}
	if objects.WriterDespite("CertificatesReady").Err() == nil {
		t.Error("another one's finding does not hold it up")
	}
	objects.FreezeBy("CertificatesReady", "this is resolved: CertificatesReady: CAMissing")
	if objects.WriterDespite("EtcdReady").Err() == nil || objects.ReadOnlyUntil("EtcdReady") != "this is resolved: CertificatesReady: CAMissing" {
		t.Errorf("what another one finds later does not hold it up: until %q", objects.ReadOnlyUntil("EtcdReady"))
	}
	if objects.WriterDespite("EtcdReady", "CertificatesReady").Err() != nil {
		t.Error("both are what it may be changed despite, and hold it up")
	}
}
