package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/issuance"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

var releases = []version.Release{
	{Version: "v0.2.0"}, {Version: "v0.3.0"},
}

const (
	healthOnly = "controllers: {health: {}}"
	both       = "controllers: {health: {}, registerHost: {name: a}}"
)

// newStage returns the stage of team/fleet, whose servers run and are to run the given
// releases, in a host cluster with the given objects. Its controller is rendered.
func newStage(t *testing.T, spec, running, release string, objects ...client.Object) *Stage {
	t.Helper()
	o := operandtest.New(t, "{spec: {mode: Aggregated, version: "+release+", "+spec+"}, status: {version: '"+running+"'}}", objects...)
	stored := o.Registry.DeepCopy()
	stored.Spec.Version = operatorv1alpha1.Version(release)
	if err := o.Client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	found, err := version.Find(releases, release)
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{Objects: o, CertManager: &issuance.CertManager{Watch: func() error { return nil }}, Authorities: &trust.Authorities{}, Release: found}
	s.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageController: {
		binding("ClusterRoleBinding", "clusterregistry:team:fleet:controller-health", roleHealth), binding("RoleBinding", "fleet-controller", roleLease), rolloutOf(t, 1),
	}}
	return s
}

func binding(kind, name, role string) *unstructured.Unstructured {
	out := operandtest.Rendered(rbacv1.SchemeGroupVersion.WithKind(kind), name)
	if kind == "ClusterRoleBinding" {
		out.SetNamespace("")
	}
	out.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role}
	return out
}

func rolloutOf(t *testing.T, replicas int64) *unstructured.Unstructured {
	t.Helper()
	out := operandtest.Rendered(appsv1.SchemeGroupVersion.WithKind("Deployment"), "fleet-controller")
	out.SetLabels(map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelNamespace: "team"})
	out.Object["spec"] = map[string]any{"replicas": replicas}
	return out
}

// running is the Deployment as it was rolled out, with its pod.
func running(change func(*appsv1.Deployment, *corev1.Pod)) []client.Object {
	one := int32(1)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-controller", Labels: map[string]string{
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelNamespace: "team"}},
		Spec: appsv1.DeploymentSpec{Replicas: &one}, Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-controller-x", Labels: map[string]string{operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: operand.ComponentController}},
		Spec:   corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "controller", Image: "controller:v0.2.0"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	change(deployment, pod)
	return []client.Object{deployment, pod}
}

func asItWas(*appsv1.Deployment, *corev1.Pod) {}

// leased is the Lease that the pod holds, with a report.
func leased(report string) *coordinationv1.Lease {
	holder, renewed, seconds := "fleet-controller-x_1", metav1.NowMicro(), int32(15)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-controller", Annotations: map[string]string{contract.ControllerStatusAnnotation: report},
		OwnerReferences: []metav1.OwnerReference{{Name: "fleet", UID: "1", Kind: "ClusterRegistry", APIVersion: "operator.clusterregistry.io/v1alpha1"}},
		Labels:          map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelNamespace: "team"}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed, LeaseDurationSeconds: &seconds}}
}

// abandoned is that Lease when no one has renewed it for long.
func abandoned() *coordinationv1.Lease {
	lease := leased(runs)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)}
	return lease
}

const runs = `{"holder": "fleet-controller-x_1", "functions": {"health": {"state": "Running"}, "registerHost": {"state": "Running"}}}`

// allowing has the host cluster answer what the controller may do, and calls create with
// what else is created or applied.
func allowing(s *Stage, may func(authorizationv1.ResourceAttributes) bool, refuse func(client.Object) error) {
	s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if review, is := object.(*authorizationv1.SubjectAccessReview); is {
				if err := refuse(review); err != nil {
					return err
				}
				review.Status.Allowed = may(*review.Spec.ResourceAttributes)
				return nil
			}
			return c.Create(ctx, object, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if o, is := object.(interface{ GetKind() string }); is {
				u := &unstructured.Unstructured{}
				u.SetKind(o.GetKind())
				if err := refuse(u); err != nil {
					return err
				}
			}
			return c.Apply(ctx, object, options...)
		},
	})
	s.Applier = apply.New(s.Client, s.Live)
}

func everything(authorizationv1.ResourceAttributes) bool { return true }
func nothing(client.Object) error                        { return nil }

// TestRun is about what the condition says, by what there is.
func TestRun(t *testing.T) {
	for _, test := range []struct {
		reason, spec, servers, release string
		objects                        []client.Object
		want, says                     string
	}{
		{"all is well", both, "v0.3.0", "v0.3.0", append(running(asItWas), leased(runs)), "", ""},
		{"objects are held", both, "v0.3.0", "v0.3.0", append(running(asItWas), leased(strings.Replace(runs, `"Running"`, `"Running", "message": "1 held: a."`, 1))), "ObjectsHeld", ": 1 held: a"},
		{"objects are held, and a selector is not valid", both[:len(both)-1] + ", exports: [{format: ClusterProfile, namespace: a, selector: {matchExpressions: [{key: k, operator: In}]}}]}", "v0.3.0", "v0.3.0", append(running(asItWas), leased(strings.Replace(runs, `"Running"`, `"Running", "message": "1 held: a."`, 1))), "Refused", "selector is not valid"},
		{"the servers come first", healthOnly, "", "v0.2.0", nil, "Waiting", "Waiting for all servers to run v0.2.0; the controller follows"},
		{"an upgrade leaves the controller as it is", healthOnly, "v0.2.0", "v0.3.0", append(running(asItWas), leased(runs)), "Progressing", "Waiting for all servers to run v0.3.0"},
		{"what is wrong in an upgrade comes first", healthOnly, "v0.2.0", "v0.3.0", append(running(asItWas), leased(strings.Replace(runs, "Running", "Failing", 1))), "Failing", "health is failing"},
		{"a rollback takes the controller along at once", healthOnly, "v0.3.0", "v0.2.0", append(running(asItWas), leased(runs)), "", ""},
		{"no pod is made", healthOnly, "v0.2.0", "v0.2.0", append(running(func(d *appsv1.Deployment, _ *corev1.Pod) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota exceeded"}}
		})[:1], leased(runs)), "ReplicasNotReady", "0 of 1 replicas ready: quota exceeded"},
		{"its image is not there", healthOnly, "v0.2.0", "v0.2.0", append(running(func(d *appsv1.Deployment, p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "controller", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}}
		}), leased(runs)), "ReplicasNotReady", "0 of 1 replicas ready: pod fleet-controller-x: container controller is waiting (ImagePullBackOff): not found"},
		{"no pod is made, and no one leads any more", healthOnly, "v0.2.0", "v0.2.0", append(running(func(d *appsv1.Deployment, _ *corev1.Pod) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota exceeded"}}
		})[:1], abandoned()), "LeaderLost", "no replica has renewed the Lease fleet-controller since 2020-01-02T03:04:05Z, so that what entries say of their clusters may be out of date: 0 of 1 replicas ready: quota exceeded"},
		{"it was killed for want of memory", healthOnly, "v0.2.0", "v0.2.0", append(running(func(d *appsv1.Deployment, p *corev1.Pod) {
			killed := &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.Now()}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "controller", State: corev1.ContainerState{Terminated: killed}}}}
		}), leased(runs)), "OOMKilled", "raise spec.controllers.resources.limits.memory"},
		{"it was killed for want of memory, and no one leads any more", healthOnly, "v0.2.0", "v0.2.0", append(running(func(d *appsv1.Deployment, p *corev1.Pod) {
			killed := &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.Now()}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "controller", State: corev1.ContainerState{Terminated: killed}}}}
		}), abandoned()), "LeaderLost", "may be out of date: 0 of 1 replicas ready: pod fleet-controller-x: container controller was killed at"},
		{"it is rolled out", healthOnly, "v0.2.0", "v0.2.0", append(running(func(d *appsv1.Deployment, _ *corev1.Pod) { d.Status.UpdatedReplicas = 0 }), leased(runs)), "ReplicasNotReady", "controller: 0 of 1 updated"},
		{"a selector is not valid", healthOnly[:len(healthOnly)-1] + ", exports: [{format: ClusterProfile, namespace: a, selector: {matchExpressions: [{key: k, operator: In}]}}]}", "v0.3.0", "v0.3.0", append(running(asItWas), leased(runs)), "Refused", "exports does not run: spec.controllers.exports[0].selector is not valid"},
		{"one selector of selections is not valid", healthOnly[:len(healthOnly)-1] + ", clusterSelections: [{namespace: a}, {namespace: b, selector: {matchLabels: {tier: gold star}}}]}", "v0.3.0", "v0.3.0", append(running(asItWas), leased(strings.Replace(runs, "registerHost", "clusterSelections", 1))), "Refused", "clusterSelections does not run everywhere: spec.controllers.clusterSelections[1].selector is not valid"},
		{"an export that would show what is hidden", healthOnly[:len(healthOnly)-1] + ", exports: [{format: ClusterProfile, namespace: a}]}, server: {authorization: {visibility: ClusterSets}}", "v0.3.0", "v0.3.0", append(running(asItWas), leased(runs)), "Refused", "exports does not run everywhere: visibility is ClusterSets"},
		{"nothing but that", "controllers: {exports: [{format: ClusterProfile, namespace: a, selector: {matchExpressions: [{key: k, operator: In}]}}]}", "v0.3.0", "v0.3.0", nil, "Refused", "selector is not valid"},
	} {
		s := newStage(t, test.spec, test.servers, test.release, test.objects...)
		allowing(s, everything, nothing)
		found := s.Run(t.Context())
		if found.Reason != test.want || !strings.Contains(found.Message, test.says) || found.Complete() != (test.want == "" || test.want == "ObjectsHeld") || !found.Usable() {
			t.Errorf("%s: %+v", test.reason, found)
		}
		applied := slices.Contains(s.Registry.Status.Inventory, operatorv1alpha1.ObjectReference{Group: "apps", Kind: "Deployment", Namespace: "team", Name: "fleet-controller"})
		if held := test.reason == "nothing but that" || test.servers == "" || test.servers < test.release; applied == held {
			t.Errorf("%s: the Deployment was applied: %v", test.reason, applied)
		}
	}
}

// TestUnreached has namespaces that are closed to the controller: the condition says what opens
// them, unless something graver is wrong.
func TestUnreached(t *testing.T) {
	for _, test := range []struct{ report, want string }{
		{runs, "NamespaceNotAllowed"},
		{strings.Replace(runs, `{"state": "Running"}`, `{"state": "Refused", "message": "no label"}`, 1), "NamespaceNotAllowed"},
		{strings.Replace(runs, `{"state": "Running"}`, `{"state": "Failing", "message": "no"}`, 1), "Failing"},
	} {
		s := newStage(t, both, "v0.3.0", "v0.3.0", append(running(asItWas), leased(test.report))...)
		allowing(s, everything, nothing)
		s.Unreached = "open it: kubectl label namespace a"
		if found := s.Run(t.Context()); found.Reason != test.want || test.want == "NamespaceNotAllowed" && found.Message != s.Unreached {
			t.Errorf("%s: %+v", test.report, found)
		}
	}
}

// TestLeaderLost has no replica lead any more, whatever else is wrong: readers of the condition
// take what entries say for unknown by that reason, and the message has the rest.
func TestLeaderLost(t *testing.T) {
	silent := abandoned()
	for _, lease := range []*coordinationv1.Lease{silent, leased("")} {
		s := newStage(t, both, "v0.3.0", "v0.3.0", append(running(asItWas), lease)...)
		allowing(s, func(authorizationv1.ResourceAttributes) bool { return false }, nothing)
		lost := lease == silent
		found, want := s.Run(t.Context()), map[bool]string{true: "LeaderLost", false: "RightsMissing"}[lost]
		if found.Reason != want || strings.Contains(found.Message, "since 2020-01-02T03:04:05Z") != lost || !strings.Contains(found.Message, "ServiceAccount fleet-controller lacks rights in the host cluster") {
			t.Errorf("%s: %+v", want, found)
		}
	}
}

// TestNotAllowed makes nothing, and says why.
func TestNotAllowed(t *testing.T) {
	s := newStage(t, healthOnly, "v0.2.0", "v0.2.0")
	s.NotAllowed, s.Rendered.Stages = "in namespace kube-system, Kubernetes itself elects leaders by Leases", nil
	if found := s.Run(t.Context()); found.Reason != "NamespaceNotAllowed" || found.Err != nil || !found.Usable() || !strings.Contains(found.Message, s.NotAllowed) || len(s.Registry.Status.Inventory) > 0 {
		t.Errorf("%+v, %v", found, s.Registry.Status.Inventory)
	}
}

// TestReadOnly observes, and makes nothing.
func TestReadOnly(t *testing.T) {
	s := newStage(t, healthOnly, "v0.2.0", "v0.2.0")
	s.Freeze("spec.paused is false")
	if found := s.Run(t.Context()); found.Reason != "Waiting" || found.Err != nil || len(s.Registry.Status.Inventory) > 0 || found.After < verdict.Backstop ||
		found.Message != "Deployment fleet-controller does not exist, and nothing is made until spec.paused is false" {
		t.Errorf("%+v, %v", found, s.Registry.Status.Inventory)
	}
	s = newStage(t, healthOnly, "v0.2.0", "v0.2.0", append(running(asItWas), leased(runs))...)
	s.Freeze("spec.paused is false")
	if found := s.Run(t.Context()); !found.Complete() {
		t.Errorf("%+v", found)
	}
}

// TestLease makes the Lease, has it ours again, and leaves that of another program alone.
func TestLease(t *testing.T) {
	s := newStage(t, healthOnly, "v0.2.0", "v0.2.0")
	s.Run(t.Context())
	lease := &coordinationv1.Lease{}
	if err := s.Live.Get(t.Context(), s.Key("-controller"), lease); err != nil || apply.Owner(lease) != "team/fleet" || len(lease.OwnerReferences) != 1 {
		t.Fatalf("%v, %+v", err, lease)
	}
	made := Made(s.Objects)
	if len(made) != 1 || !slices.Contains(s.Registry.Status.Inventory, made[0]) {
		t.Errorf("made: %v, inventory: %v", made, s.Registry.Status.Inventory)
	}
	// The controller holds it, and someone takes its labels: it is made ours again, and
	// the holder stays.
	holder := "fleet-controller-x_1"
	lease.Labels, lease.Spec.HolderIdentity = nil, &holder
	if err := s.Client.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	s.Run(t.Context())
	if err := s.Live.Get(t.Context(), s.Key("-controller"), lease); err != nil || apply.Owner(lease) != "team/fleet" || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != holder {
		t.Errorf("%v, %+v", err, lease)
	}
	before := lease.ResourceVersion
	s.Run(t.Context())
	if err := s.Live.Get(t.Context(), s.Key("-controller"), lease); err != nil || lease.ResourceVersion != before {
		t.Errorf("a Lease that is as it should be was written: %v, %s after %s", err, lease.ResourceVersion, before)
	}

	another := leased("")
	another.Labels, another.OwnerReferences = nil, nil
	s = newStage(t, healthOnly, "v0.2.0", "v0.2.0", another)
	if found := s.Run(t.Context()); found.Reason != operatorv1alpha1.ReasonNotOwned || !strings.Contains(found.Message, "Lease team/fleet-controller is in the way") {
		t.Errorf("another program's Lease: %+v", found)
	}
}

// TestRights is about a controller that lacks rights, and one that only seems to.
func TestRights(t *testing.T) {
	forbidden := func(object client.Object) error {
		if kind := object.GetObjectKind().GroupVersionKind().Kind; strings.HasSuffix(kind, "RoleBinding") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "bindings"}, "", errors.New("no"))
		}
		return nil
	}
	starting := strings.Replace(runs, "Running", "Starting", 1)
	for _, test := range []struct {
		reason, report string
		lacks          string // what the host cluster does not allow
		refuse         func(client.Object) error
		want           string
		says           []string
	}{
		{"it may do all", starting, "", nothing, "Starting", nil},
		{"a role is gone, but it runs", runs, "nodes", nothing, "", nil},
		{"a role that is bound is gone", starting, "clusters", nothing, "RightsMissing", []string{
			"ServiceAccount fleet-controller lacks rights in the host cluster: list clusters.clusterregistry.k8s.io, watch clusters.clusterregistry.k8s.io, patch clusters.clusterregistry.k8s.io/status. Missing or without all of its rules: ClusterRole clusterregistry:controller:health; install the operator's manifests of this release again, as you installed them"}},
		{"a role is not bound by this operator", starting, "nodes", nothing, "RightsMissing", []string{
			"list nodes", "kubectl create clusterrolebinding clusterregistry:team:fleet:controller-host:by-administrator --clusterrole=clusterregistry:controller:host --serviceaccount=team:fleet-controller"}},
		{"the operator may bind nothing", starting, "clusters leases", forbidden, "RightsMissing", []string{
			"kubectl create rolebinding --namespace=team fleet-controller:by-administrator --clusterrole=clusterregistry:controller --serviceaccount=team:fleet-controller; " +
				"kubectl create clusterrolebinding clusterregistry:team:fleet:controller-health:by-administrator --clusterrole=clusterregistry:controller:health --serviceaccount=team:fleet-controller"}},
		{"the operator may bind nothing, and an administrator did", runs, "", forbidden, "", nil},
	} {
		s := newStage(t, healthOnly, "v0.2.0", "v0.2.0", append(running(asItWas), leased(test.report))...)
		allowing(s, func(a authorizationv1.ResourceAttributes) bool { return !strings.Contains(test.lacks, a.Resource) }, test.refuse)
		found := s.Run(t.Context())
		if found.Reason != test.want {
			t.Errorf("%s: %+v", test.reason, found)
		}
		for _, says := range test.says {
			if !strings.Contains(found.Message, says) {
				t.Errorf("%s: %q is missing in %q", test.reason, says, found.Message)
			}
		}
	}
	// Where the operator may not even ask, it says what it could not bind.
	s := newStage(t, healthOnly, "v0.2.0", "v0.2.0", append(running(asItWas), leased(starting))...)
	allowing(s, everything, func(object client.Object) error {
		if _, is := object.(*authorizationv1.SubjectAccessReview); is {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no"))
		}
		return forbidden(object)
	})
	if found := s.Run(t.Context()); found.Reason != "RightsMissing" || !strings.Contains(found.Message, "it is not known what it may do") || !strings.Contains(found.Message, "kubectl create clusterrolebinding") {
		t.Errorf("%+v", found)
	}
}

// TestRightsToReadRanges expects that a function which connects to clusters is not without the
// right to read where the host cluster's Services and pods are.
func TestRightsToReadRanges(t *testing.T) {
	s := newStage(t, healthOnly, "v0.2.0", "v0.2.0")
	for function, want := range map[string]bool{contract.HealthFunction: true, contract.ExportsFunction: true, contract.RegisterHostFunction: false, contract.ClusterAPIFunction: false, contract.ClusterSelectionsFunction: false, contract.FeedFunction: true} {
		for _, resource := range []string{"nodes", "servicecidrs"} {
			if got := slices.ContainsFunc(rights(s.Objects, []string{function}), func(r right) bool { return r.role == roleHost && r.attributes.Resource == resource }); got != want {
				t.Errorf("%s: needs to list %s: %t", function, resource, got)
			}
		}
	}
}

// TestReport reads what is in the annotation, whoever has written it.
func TestReport(t *testing.T) {
	synctest.Test(t, testReport) // a Lease expires in 15 seconds, in which a busy computer may not get far
}

func testReport(t *testing.T) {
	t.Helper()
	report := func(functions string) string {
		return `{"holder": "fleet-controller-x_1", "functions": {` + functions + `}}`
	}
	for _, test := range []struct {
		reason string
		lease  *coordinationv1.Lease
		change func(*coordinationv1.Lease)
		want   string
		says   string
	}{
		{"both run", leased(runs), nil, "", ""},
		{"there is no Lease", nil, nil, "Starting", "no replica leads yet: the Lease fleet-controller has no holder"},
		{"no one holds it", leased(runs), func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("") }, "Starting", "no replica leads yet"},
		{"the leader is dead", leased(runs), func(l *coordinationv1.Lease) {
			l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-2 * time.Minute)}
		}, "LeaderLost", "fleet-controller-x_1 leads by the Lease fleet-controller, which it has not renewed since 1999-12-31T23:58:00Z, and no other"},
		{"its clock is late", leased(runs), func(l *coordinationv1.Lease) {
			l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-50 * time.Second)}
		}, "", ""},
		{"a duration of 68 years", leased(runs), func(l *coordinationv1.Lease) {
			l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = new(int32(1<<31-1)), &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
		}, "LeaderLost", ""},
		{"a negative duration", leased(runs), func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = new(int32(-5)) }, "", ""},
		{"it was never renewed", leased(runs), func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }, "LeaderLost", "since it was made"},
		{"no report yet", leased(""), nil, "Starting", "fleet-controller-x_1 leads, and has not reported yet how its functions are"},
		{"the report of an earlier holder", leased(strings.Replace(runs, "_1", "_0", 1)), nil, "Starting", "the last report is of fleet-controller-x_0"},
		{"nonsense", leased("yes"), nil, "ReportInvalid", "the annotation clusterregistry.k8s.io/controller-status of the Lease fleet-controller is not a report: invalid character"},
		{"a list", leased("[]"), nil, "ReportInvalid", ""},
		{"null", leased("null"), nil, "Starting", "the last report is of "},
		{"too much", leased(strings.Repeat("[", 1<<17)), nil, "ReportInvalid", "it has 131072 bytes, of which 65536 are the most"},
		{"deep", leased(strings.Repeat("[", 1<<15)), nil, "ReportInvalid", ""},
		{"a function is missing", leased(report(`"health": {"state": "Running"}`)), nil, "Starting", "registerHost is not reported of yet"},
		{"no functions", leased(`{"holder": "fleet-controller-x_1"}`), nil, "Starting", "health is not reported of yet; registerHost is not reported of yet"},
		{"another function", leased(report(`"health": {"state": "Running"}, "registerHost": {"state": "Running"}, "clusterAPI": {"state": "Failing"}`)), nil, "", ""},
		{"isolated", leased(report(`"health": {"state": "Isolated", "message": "More than half.", "since": "2026-01-02T03:04:05Z"}, "registerHost": {"state": "Running"}`)), nil,
			"Isolated", "health is isolated since 2026-01-02T03:04:05Z: More than half"},
		{"the worst counts, and both are named", leased(report(`"health": {"state": "Isolated"}, "registerHost": {"state": "Failing", "message": "no"}`)), nil, "Failing", "health is isolated; registerHost is failing: no"},
		{"refused", leased(report(`"health": {"state": "Running"}, "registerHost": {"state": "Refused", "message": "cluster a has the id"}`)), nil, "Refused", "registerHost is refused: cluster a has the id"},
		{"one holds objects", leased(report(`"health": {"state": "Running"}, "registerHost": {"state": "Running", "message": "1 held:\u0000 a.\n"}`)), nil, "ObjectsHeld", "registerHost: 1 held: a"},
		{"ranges are not known", leased(report(`"health": {"state": "RangesUnknown", "message": "Add them."}, "registerHost": {"state": "Running"}`)), nil, "RangesUnknown", "health: Add them"},
		{"ranges are not known, and objects are held", leased(report(`"health": {"state": "RangesUnknown", "message": "Add them."}, "registerHost": {"state": "Running", "message": "1 held."}`)), nil, "ObjectsHeld", "registerHost: 1 held; health: Add them"},
		{"ranges are not known, and the other one fails", leased(report(`"health": {"state": "RangesUnknown", "message": "Add them."}, "registerHost": {"state": "Failing"}`)), nil, "Failing", "registerHost is failing; health: Add them"},
		{"one holds objects, and the other one fails", leased(report(`"health": {"state": "Failing", "message": "no"}, "registerHost": {"state": "Running", "message": "1 held."}`)), nil, "Failing", "health is failing: no; registerHost: 1 held"},
		{"starting", leased(report(`"health": {"state": "Starting", "message": "Waiting."}, "registerHost": {"state": "Running"}`)), nil, "Starting", "health is starting: Waiting"},
		{"a state of a later release", leased(report(`"health": {"state": "Sleeping"}, "registerHost": {"state": "Running"}`)), nil, "ReportInvalid", `health is reported to be in the state "Sleeping", which this operator does not know`},
		{"control characters", leased(report(`"health": {"state": "Failing", "message": "a\u001b[31m\u0000\nb \u202e c"}, "registerHost": {"state": "Running"}`)), nil, "Failing", "health is failing: a [31m b c"},
		{"a long message", leased(report(`"health": {"state": "Failing", "message": "` + strings.Repeat("é", 4000) + `"}, "registerHost": {"state": "Running"}`)), nil, "Failing", strings.Repeat("é", messageMost) + "..."},
		{"a long holder", leased(runs), func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new(strings.Repeat("\n", 1<<16)) }, "Starting", "the last report is of"},
	} {
		if test.change != nil {
			test.change(test.lease)
		}
		v := newStage(t, both, "v0.3.0", "v0.3.0").reported(test.lease, []string{"health", "registerHost"})
		if v.Reason != test.want || v.Complete() != slices.Contains([]string{"", "ObjectsHeld", "RangesUnknown"}, test.want) || !strings.Contains(v.Message, test.says) || len(v.Message) > 4096 || strings.ContainsAny(v.Message, "\x00\x1b\n") {
			t.Errorf("%s: %+v", test.reason, v)
		}
	}
}
