package clusterprofile

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/controller/export/format"
)

func TestSurplus(t *testing.T) {
	want := source.of(member("east"), target, verified)
	for _, test := range []struct {
		reason, fields string
		surplus        bool
	}{
		{"as desired", `{"f:metadata":{"f:labels":{"f:tier":{}}},"f:spec":{"f:displayName":{}}}`, false},
		{"a label", `{"f:metadata":{"f:labels":{"f:tier":{},"f:old":{}}}}`, true},
		{"a property", `{"f:status":{"f:properties":{"k:{\"name\":\"old\"}":{".":{},"f:name":{},"f:value":{}}}}}`, true},
		{"a property that stays", `{"f:status":{"f:properties":{"k:{\"name\":\"region\"}":{".":{},"f:name":{},"f:value":{}}}}}`, false},
		{"a provider", `{"f:status":{"f:accessProviders":{"k:{\"name\":\"old\"}":{".":{},"f:name":{}}}}}`, true},
		{"a condition", `{"f:status":{"f:conditions":{"k:{\"type\":\"PropertiesPublished\"}":{".":{},"f:type":{}}}}}`, true},
		{"conditions that stay", `{"f:status":{"f:conditions":{"k:{\"type\":\"Joined\"}":{".":{},"f:type":{}}},"f:version":{"f:kubernetes":{}}}}`, false},
		{"what can't be read", `{`, false},
	} {
		fields := []metav1.ManagedFieldsEntry{{Manager: format.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(test.fields)}}
		if got := surplus(format.Owned(fields, ""), want); got != test.surplus {
			t.Errorf("%s: %t", test.reason, got)
		}
	}
}

func TestOwned(t *testing.T) {
	early, late := metav1.Unix(1, 0), metav1.Unix(2, 0)
	fields := []metav1.ManagedFieldsEntry{
		{Manager: format.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &early},
		{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", Time: &metav1.Time{Time: time.Unix(9, 0)}},
		{Manager: format.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Time: &late},
	}
	if format.Owned(fields, "") == nil || format.Owned(fields, "status") != nil || format.Owned(nil, "") != nil {
		t.Error("what was applied")
	}
	if at := format.Written(fields); !at.Equal(late.Time) {
		t.Errorf("written at %s", at)
	}
}
