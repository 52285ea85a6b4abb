package diagnose

import (
	"context"
	"errors"
	"slices"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterregistry/operator/internal/pages/pagestest"
)

// reading returns a Diagnoser that reads the given objects, or fails with an error.
func reading(t *testing.T, fails error, objects ...client.Object) Diagnoser {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, certmanagerv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	field := func(read func(*corev1.Event) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{read(o.(*corev1.Event))} }
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", field(func(e *corev1.Event) string { return string(e.InvolvedObject.UID) })).
		WithIndex(&corev1.Event{}, "type", field(func(e *corev1.Event) string { return e.Type })).Build()
	if fails == nil {
		return Diagnoser{Live: pagestest.Reader(t, c), Client: c}
	}
	broken := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return fails
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return fails },
	})
	return Diagnoser{Live: broken, Client: broken}
}

// event returns an event about the object with a UID.
func event(t *testing.T, name, about, kind, message, rest string) client.Object {
	t.Helper()
	return read[corev1.Event](t, `{metadata: {namespace: team, name: `+name+`}, involvedObject: {uid: `+about+`}, type: `+kind+`, message: `+message+rest+`}`)
}

func TestPods(t *testing.T) {
	const pending = `{metadata: {namespace: team, name: p, uid: pod}, spec: {volumes: [{name: token}, {name: data, persistentVolumeClaim: {claimName: data-p}}]}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: no volume}]}}`
	claim := func(phase string) client.Object {
		return read[corev1.PersistentVolumeClaim](t, `{metadata: {namespace: team, name: data-p, uid: claim}, status: {phase: `+phase+`}}`)
	}
	for reason, test := range map[string]struct {
		pods    []string
		objects []client.Object
		err     error
		want    []string
	}{
		"there are none": {nil, nil, nil, nil},
		"a ready one is not mentioned": {[]string{`{metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, `{metadata: {name: b}, spec: {nodeName: node-1}, status: {phase: Running}}`},
			nil, nil, []string{"pod b on node node-1 is running, but not ready"}},
		"each says its own": {[]string{`{metadata: {name: a}, status: {phase: Pending}}`, `{metadata: {name: b}, spec: {nodeName: node-1}, status: {phase: Pending}}`},
			nil, nil, []string{"pod a is waiting to be scheduled", "pod b on node node-1 is starting"}},
		"no claim, no event":  {[]string{pending}, nil, nil, []string{"pod p can't be scheduled: no volume"}},
		"its claim is bound":  {[]string{pending}, []client.Object{claim("Bound")}, nil, []string{"pod p can't be scheduled: no volume"}},
		"its claim is not":    {[]string{pending}, []client.Object{claim("Pending")}, nil, []string{"pod p can't be scheduled: no volume: PersistentVolumeClaim data-p is not bound"}},
		"nothing can be read": {[]string{pending}, []client.Object{claim("Pending")}, errors.New("later"), []string{"pod p can't be scheduled: no volume"}},
		"events say why": {[]string{pending}, []client.Object{claim("Pending"), event(t, "a", "claim", "Warning", "no such StorageClass", ""), event(t, "b", "pod", "Warning", "mount failed", "")}, nil,
			[]string{"pod p can't be scheduled: no volume: PersistentVolumeClaim data-p is not bound (no such StorageClass): mount failed"}},
		"an event that repeats what is known": {[]string{pending}, []client.Object{event(t, "a", "pod", "Warning", "no volume", "")}, nil, []string{"pod p can't be scheduled: no volume"}},
		"a normal event is no warning":        {[]string{pending}, []client.Object{event(t, "a", "pod", "Normal", "pulled", "")}, nil, []string{"pod p can't be scheduled: no volume"}},
		"an event about another pod":          {[]string{pending}, []client.Object{event(t, "a", "other", "Warning", "mount failed", "")}, nil, []string{"pod p can't be scheduled: no volume"}},
		"events explain no running pod": {[]string{`{metadata: {namespace: team, name: p, uid: pod}, spec: {nodeName: node-1}, status: {phase: Running}}`}, []client.Object{event(t, "a", "pod", "Warning", "probe failed", "")}, nil,
			[]string{"pod p on node node-1 is running, but not ready"}},
		"nor one that is terminating": {[]string{`{metadata: {namespace: team, name: p, uid: pod, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {nodeName: node-1}, status: {phase: Pending}}`}, []client.Object{event(t, "a", "pod", "Warning", "mount failed", "")}, nil,
			[]string{"pod p on node node-1 is terminating"}},
	} {
		var pods []corev1.Pod
		for _, text := range test.pods {
			pods = append(pods, *read[corev1.Pod](t, text))
		}
		if got := reading(t, test.err, test.objects...).Pods(t.Context(), pods); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

func TestReplicas(t *testing.T) {
	const meta = `{metadata: {namespace: team, name: w, uid: workload}`
	warning := event(t, "a", "workload", "Warning", "exceeded quota", "")
	for _, test := range []struct {
		reason   string
		workload client.Object
		events   []client.Object
		err      error
		want     string
	}{
		{"its controller has not looked", read[appsv1.Deployment](t, meta+`}`), nil, nil, "their pods do not exist yet"},
		{"a quota refuses them", read[appsv1.Deployment](t, meta+`, status: {conditions: [{type: Progressing, status: "True", message: fine}, {type: ReplicaFailure, status: "True", message: pods are forbidden}]}}`), []client.Object{warning}, nil, "pods are forbidden"},
		{"it no longer does", read[appsv1.Deployment](t, meta+`, status: {conditions: [{type: ReplicaFailure, status: "False", message: pods are forbidden}]}}`), nil, nil, "their pods do not exist yet"},
		{"a StatefulSet has events alone", read[appsv1.StatefulSet](t, meta+`}`), []client.Object{warning}, nil, "exceeded quota"},
		{"events can't be read", read[appsv1.StatefulSet](t, meta+`}`), []client.Object{warning}, errors.New("later"), "their pods do not exist yet"},
	} {
		if got := reading(t, test.err, test.events...).Replicas(t.Context(), test.workload); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestLastWarning is about which of several events is the latest: reporters set
// different fields.
func TestLastWarning(t *testing.T) {
	for reason, test := range map[string]struct {
		events []client.Object
		want   string
	}{
		"old reporters": {[]client.Object{event(t, "a", "o", "Warning", "late", `, lastTimestamp: "2026-01-01T00:00:02Z"`), event(t, "b", "o", "Warning", "early", `, lastTimestamp: "2026-01-01T00:00:01Z"`)}, "late"},
		"new reporters": {[]client.Object{event(t, "a", "o", "Warning", "late", `, eventTime: "2026-01-01T00:00:02.000000Z"`), event(t, "b", "o", "Warning", "early", `, eventTime: "2026-01-01T00:00:01.000000Z"`)}, "late"},
		"one that is repeated": {[]client.Object{event(t, "a", "o", "Warning", "repeated", `, eventTime: "2026-01-01T00:00:01.000000Z", series: {count: 9, lastObservedTime: "2026-01-01T00:00:09.000000Z"}`),
			event(t, "b", "o", "Warning", "once", `, lastTimestamp: "2026-01-01T00:00:05Z"`)}, "repeated"},
		"a later one that is normal": {[]client.Object{event(t, "a", "o", "Warning", "late", `, lastTimestamp: "2026-01-01T00:00:02Z"`), event(t, "b", "o", "Normal", "fine", `, lastTimestamp: "2026-01-01T00:00:03Z"`)}, "late"},
	} {
		if got := reading(t, nil, test.events...).lastWarning(t.Context(), "team", "o"); got != test.want {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}
