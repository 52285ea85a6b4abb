package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	"github.com/clusterregistry/operator/apiserver/body"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// TestLargest has the largest cluster, and the largest status, that the limits of an object let
// through pass those of a body, in both versions and every encoding.
func TestLargest(t *testing.T) {
	full, reported := largest(t), largest(t)
	reported.Spec, reported.Labels, reported.Annotations, reported.Status = v1beta1.ClusterSpec{}, nil, nil, largestStatus()
	for reason, c := range map[string]*v1beta1.Cluster{"spec": full, "status": reported} {
		hub := &clusterregistry.Cluster{}
		if err := scheme.Convert(c, hub, nil); err != nil {
			t.Fatal(err)
		}
		faults := validation.Cluster(hub, v1beta1.SchemeGroupVersion.Version)
		hub.ResourceVersion = "1"
		faults = append(faults, validation.ClusterStatusUpdate(hub, &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, ResourceVersion: "1"}})...)
		if len(faults) > 0 {
			t.Fatalf("%s: this is no cluster: %.1000v", reason, faults.ToAggregate())
		}
		for _, version := range []schema.GroupVersion{v1beta1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion} {
			object, err := scheme.ConvertToVersion(hub, version)
			if err != nil {
				t.Fatal(err)
			}
			plainly, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			inYAML, err := yaml.JSONToYAML(plainly)
			if err != nil {
				t.Fatal(err)
			}
			for _, sent := range []struct {
				kind string
				data []byte
			}{
				{plain, plainly}, {mergePatch, plainly}, {"application/strategic-merge-patch+json", plainly}, {applyPatch, plainly},
				{applyPatch, inYAML}, {"application/yaml", inYAML}, {runtime.ContentTypeProtobuf, protobufOf(t, object, version)},
			} {
				if fault := body.Check(sent.data, sent.kind); fault != nil || len(sent.data) > body.MaxBytes {
					t.Errorf("%s in %s, %s with %d bytes: %v", reason, version, sent.kind, len(sent.data), fault)
				}
			}
		}
	}
}

// TestBodiesAreRefused answers what is too long, and what is too much, before it is decoded.
func TestBodiesAreRefused(t *testing.T) {
	d := newDesk(t, cluster.GuardedFieldsOff)
	for reason, test := range map[string]struct {
		body string
		code int
		says string
	}{
		"too long": {inCluster("v1beta1", `"spec":{}`) + strings.Repeat(" ", body.MaxBytes), 413, "limit is 1048576"},
		"too much": {inCluster("v1beta1", `"spec":{"access":[`+strings.Repeat("{},", body.MaxEntries)+`{}]}`), 422, "spec.access: Too many: 2049: must have at most 2048 items"},
	} {
		if code, answer, _ := d.send("PUT", "v1beta1/clusters/full", plain, test.body); code != test.code || !strings.Contains(answer, test.says) {
			t.Errorf("%s: %d %.500s", reason, code, answer)
		}
	}
}

// largest is a cluster with as much of everything as it may have, but a status.
func largest(t *testing.T) *v1beta1.Cluster {
	t.Helper()
	ca, _ := authority(t)
	c := &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "largest", Labels: map[string]string{}, Annotations: map[string]string{"a": strings.Repeat("x ", 128<<10-1)}},
		Spec:       v1beta1.ClusterSpec{DisplayName: strings.Repeat("x", validation.MaxDisplayName), Manager: &v1beta1.Manager{Name: "x"}, Heartbeat: &v1beta1.Heartbeat{PeriodSeconds: 60}},
	}
	for i := range 500 {
		c.Labels[fmt.Sprintf("%060d", i)] = strings.Repeat("x", 63)
	}
	for i := range validation.MaxItems {
		c.Finalizers = append(c.Finalizers, fmt.Sprintf("example.com/f%d", i))
	}
	for i := range validation.MaxTaints {
		c.Spec.Taints = append(c.Spec.Taints, v1beta1.Taint{Key: fmt.Sprint("taint-", i), Value: strings.Repeat("x", 63), Effect: v1beta1.TaintNoSchedule})
	}
	for i := range validation.MaxEndpoints {
		endpoint := v1beta1.Endpoint{Name: fmt.Sprint("e", i), URL: fmt.Sprintf("https://e%d.example", i)}
		for j := range validation.MaxClientCIDRs {
			endpoint.ClientCIDRs = append(endpoint.ClientCIDRs, fmt.Sprintf("10.%d.%d.0/24", i, j))
		}
		if i < 2 {
			endpoint.CABundle = []byte(strings.Repeat(ca, validation.MaxCABundle/len(ca)-i))
		}
		c.Spec.Endpoints = append(c.Spec.Endpoints, endpoint)
	}
	for i := range validation.MaxProviders {
		run := &v1beta1.ExecAccess{APIVersion: "client.authentication.k8s.io/v1", Command: "program"}
		for j := range validation.MaxItems {
			run.Args = append(run.Args, strings.Repeat("x ", 28))
			run.Env = append(run.Env, v1beta1.ExecEnvVar{Name: fmt.Sprint("V", j), Value: strings.Repeat("x ", 28)})
		}
		c.Spec.Access = append(c.Spec.Access, v1beta1.Access{Name: fmt.Sprint("a", i), Audience: v1beta1.AudienceUser, Exec: run})
	}
	return c
}

// largestStatus is a status with as much of everything as it may have.
func largestStatus() *v1beta1.ClusterStatus {
	seen := metav1.NewTime(time.Unix(1e9, 0))
	status := &v1beta1.ClusterStatus{Capacity: map[string]resource.Quantity{}, Allocatable: map[string]resource.Quantity{}}
	for i := range validation.MaxItems {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: fmt.Sprint("Type", i), Status: metav1.ConditionTrue, Reason: "Reason", Message: strings.Repeat("x ", 45), LastTransitionTime: seen})
		name := fmt.Sprint("example.com/r", i)
		status.Capacity[name], status.Allocatable[name] = resource.MustParse("1"), resource.MustParse("1")
	}
	for i := range validation.MaxProperties {
		status.Properties = append(status.Properties, v1beta1.Property{Name: fmt.Sprint("property-", i), Value: "x"})
	}
	for i := range validation.MaxReporters {
		status.Reporters = append(status.Reporters, v1beta1.Reporter{Name: fmt.Sprint("reporter-", i), LastSeen: &seen, Conditions: status.Conditions})
	}
	return status
}

// protobufOf encodes an object as client-go does.
func protobufOf(t *testing.T, object runtime.Object, version schema.GroupVersion) []byte {
	t.Helper()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, version), object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
