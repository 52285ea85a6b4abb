package clusterregistry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

const complete = operandtest.Complete

// TestConditions says which results of the stages lead to which conditions. A
// result is a stage's hold, or "" for none; stages that are not named did not run.
func TestConditions(t *testing.T) {
	type results map[string]string
	for what, test := range map[string]struct {
		spec, status string
		results      results
		with         func(*scope)
		want         map[string]string
	}{
		"an installation waits for its certificates": {"mode: Aggregated", "", results{"VersionSupported": "", "CertificatesReady": "not yet"}, nil, map[string]string{
			"VersionSupported": "True Supported: v0.1.0 is supported on Kubernetes v1.37.1", "CertificatesReady": "False Held: not yet", "EtcdReady": "Unknown Waiting: Waiting for CertificatesReady",
			"ServerReady": "Unknown Waiting: Waiting for CertificatesReady", "APIServiceReady": "Unknown Waiting: Waiting for CertificatesReady",
			"Progressing": "True Progressing: the registry is being installed: CertificatesReady: not yet", "Ready": "False Held: CertificatesReady: not yet"}},
		"an installation is complete": {"mode: Aggregated", "", results{"VersionSupported": "", "CertificatesReady": "", "EtcdReady": "", "ServerReady": "", "APIServiceReady": ""}, nil, map[string]string{
			"APIServiceReady": "True Ready: the host cluster serves clusterregistry.k8s.io (v1alpha1)", "Progressing": "False UpToDate: the registry is up to date", "Ready": "True Ready: the registry is ready"}},
		"an independent one says where": {"mode: Independent", "endpoint: {url: https://a}", results{"VersionSupported": "", "CertificatesReady": "", "EtcdReady": "", "ServerReady": "", "EndpointReady": ""}, nil, map[string]string{
			"EndpointReady": "True Ready: clients reach the registry at https://a", "Ready": "True Ready: the registry is ready at https://a"}},
		"one part of a complete registry fails": {"mode: Aggregated", "server: {readyReplicas: 2}, version: v0.1.0" + complete, results{"VersionSupported": "", "CertificatesReady": "", "EtcdReady": "2 of 3", "ServerReady": "", "APIServiceReady": ""}, nil, map[string]string{
			"EtcdReady": "False Held: 2 of 3", "ServerReady": "True Ready: 2/2 servers ready (v0.1.0)", "Progressing": "False UpToDate: the registry is up to date", "Ready": "False Held: EtcdReady: 2 of 3"}},
		"two parts fail: the first is the sum": {"mode: Aggregated", complete[2:], results{"VersionSupported": "", "CertificatesReady": "", "EtcdReady": "2 of 3", "ServerReady": "1 of 2", "APIServiceReady": ""}, nil, map[string]string{
			"Ready": "False Held: EtcdReady: 2 of 3"}},
		"members are replaced": {"mode: Aggregated", complete[2:], results{"VersionSupported": "", "CertificatesReady": "", "EtcdReady": "m-1 is next", "ServerReady": "", "APIServiceReady": ""}, func(s *scope) { s.Servers.Rolling = "etcd: 1 of 3 members updated" }, map[string]string{
			"Progressing": "True Progressing: etcd: 1 of 3 members updated", "Ready": "False Held: EtcdReady: m-1 is next"}},
		"a version that can't run": {"mode: Aggregated", "", results{"VersionSupported": "unknown"}, func(s *scope) { s.Rendered = nil }, map[string]string{
			"VersionSupported": "False Held: unknown", "EtcdReady": "Unknown Waiting: Waiting for VersionSupported", "Progressing": "False Held: nothing is changed: unknown", "Ready": "False Held: VersionSupported: unknown"}},
		"what is not rendered any more can't be deleted": {"mode: Aggregated", complete[2:], results{"VersionSupported": "", "CertificatesReady": "", "EtcdReady": "", "ServerReady": "", "APIServiceReady": "", "Progressing": "delete ConfigMap old: forbidden"}, nil, map[string]string{
			"ServerReady": "True Ready: 0/2 servers ready ()", "Progressing": "True Held: delete ConfigMap old: forbidden", "Ready": "False Held: Progressing: delete ConfigMap old: forbidden"}},
		"paused, and well": {"mode: Aggregated, paused: true", complete[2:], results{"VersionSupported": "", "CertificatesReady": "", "EtcdReady": "", "ServerReady": "", "APIServiceReady": ""}, nil, map[string]string{
			"Progressing": "False Paused: nothing is changed until spec.paused is false", "Ready": "True Ready: the registry is ready"}},
		"paused in an installation": {"mode: Aggregated, paused: true", "", results{"VersionSupported": "", "CertificatesReady": "not yet"}, nil, map[string]string{
			"Progressing": "False Paused: nothing is changed until spec.paused is false", "Ready": "False Held: CertificatesReady: not yet"}},
		"deleted, paused or not": {"mode: Aggregated, paused: true", complete[2:], results{}, func(s *scope) { s.Registry.DeletionTimestamp = timeAt(s.Now) }, map[string]string{
			"Progressing": "True Deleting: the registry is being deleted", "Ready": "False Deleting: the registry is being deleted"}},
		"its namespace is terminating": {"mode: Aggregated", complete[2:], results{}, func(s *scope) { s.Terminating = true }, map[string]string{
			"Progressing": "True Deleting: the registry is being deleted with its namespace team, which is terminating", "Ready": "False Deleting: the registry is being deleted with its namespace team, which is terminating"}},
		"a mode that is none": {"mode: ''", "", results{"VersionSupported": "", "CertificatesReady": "not yet"}, nil, map[string]string{
			"EndpointReady": "Unknown Waiting: Waiting for CertificatesReady", "Ready": "False Held: CertificatesReady: not yet"}},
	} {
		s := look(t, "{spec: {"+test.spec+"}, status: {"+test.status+"}}")
		if test.with != nil {
			test.with(s)
		}
		for kind, message := range test.results {
			var v verdict.Verdict
			if message != "" {
				v = verdict.Waiting("Held", "%s", message)
			}
			s.record(kind, v)
		}
		conditions := s.conditions()
		for kind, want := range test.want {
			c := meta.FindStatusCondition(conditions, kind)
			if c == nil {
				t.Errorf("%s: %s is missing", what, kind)
			} else if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != want {
				t.Errorf("%s: %s is\n%q, want\n%q", what, kind, got, want)
			}
		}
	}
}

// TestRecord is about whether the next stage runs.
func TestRecord(t *testing.T) {
	for _, test := range []struct {
		reason, status string
		rendered       bool
		found          verdict.Verdict
		proceeds       bool
	}{
		{"a stage is complete", "{}", true, done, true},
		{"a stage waits", "{}", true, verdict.Waiting("R", ""), false},
		{"a stage waits, but serves", "{}", true, verdict.Waiting("R", "").DegradedIf(true), true},
		{"in a complete registry each stage looks after something", "{" + complete[2:] + "}", true, verdict.Waiting("R", ""), true},
		{"but not before it is known what to look after", "{" + complete[2:] + "}", false, verdict.Waiting("R", ""), false},
	} {
		s := look(t, "{spec: {mode: Aggregated}, status: "+test.status+"}")
		if !test.rendered {
			s.Rendered = nil
		}
		if got := s.record("EtcdReady", test.found); got != test.proceeds || s.ReadOnly() {
			t.Errorf("%s: goes on: %v, frozen: %v", test.reason, got, s.ReadOnly())
		}
		s.record("EtcdReady", verdict.Waiting("R", "the data is gone").AsReadOnly())
		s.record("ServerReady", done)
		if !s.ReadOnly() || s.ReadOnlyUntil() != "this is resolved: EtcdReady: the data is gone" {
			t.Errorf("%s: a later stage may change something although an earlier one said no", test.reason)
		}
	}
}

func TestTelling(t *testing.T) {
	for _, test := range []struct {
		reason, kind string
		old, now     string // status and reason
		want         bool
	}{
		{"a part is reached for the first time", "EtcdReady", "", "False A", true},
		{"a part whose turn has not come", "EtcdReady", "", "Unknown Waiting", false},
		{"a part becomes well", "EtcdReady", "False A", "True Ready", true},
		{"a part has another problem", "EtcdReady", "False A", "False B", true},
		{"the same problem, in other words", "EtcdReady", "False A", "False A", false},
		{"a part is not looked at any more", "EtcdReady", "True Ready", "Unknown Waiting", false},
		{"an installation begins", "Ready", "", "False A", false},
		{"it waits for the next part", "Ready", "False A", "False B", false},
		{"it is complete", "Ready", "False A", "True Ready", true},
		{"something broke", "Ready", "True Ready", "False A", true},
		{"changes begin", "Progressing", "False UpToDate", "True Progressing", true},
		{"they go on", "Progressing", "True Progressing", "True Progressing", false},
		{"they are paused", "Progressing", "True Progressing", "False Paused", true},
		{"a new registry always progresses", "Progressing", "", "True Progressing", false},
	} {
		condition := func(text string) metav1.Condition {
			status, reason, _ := strings.Cut(text, " ")
			return metav1.Condition{Type: test.kind, Status: metav1.ConditionStatus(status), Reason: reason}
		}
		var old *metav1.Condition
		if test.old != "" {
			old = new(condition(test.old))
		}
		if got := telling(old, condition(test.now)); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}

// TestObservedGeneration is about whom "kubectl wait" believes: every condition
// tells for which spec it was found, whatever became of the others, and the status
// as a whole only of a pass without an error.
func TestObservedGeneration(t *testing.T) {
	for reason, test := range map[string]struct {
		result func(*scope)
		whole  int64
	}{
		"all is well": {func(s *scope) {
			for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
				s.record(kind, done)
			}
		}, 7},
		"a stage waits":                        {func(s *scope) { s.record("EtcdReady", verdict.Waiting("R", "")) }, 7},
		"a stage fails":                        {func(s *scope) { s.record("EtcdReady", verdict.Failed(errors.New("no"))) }, 6},
		"it is not known what is to be served": {func(s *scope) { s.Rendered = nil; s.record("VersionSupported", verdict.Waiting("R", "")) }, 7},
	} {
		s := look(t, "{spec: {mode: Aggregated}, status: {observedGeneration: 6, conditions: [{type: Ready, status: 'True', reason: Ready, observedGeneration: 6, lastTransitionTime: null, message: ''}]}}")
		r := reading(t, s, s.Registry.DeepCopy())
		s.Events = events.NewFakeRecorder(20)
		test.result(s)
		result, err := r.report(t.Context(), s)
		if (err == nil) != (test.whole == 7) || err == nil && result.RequeueAfter == 0 {
			t.Errorf("%s: %+v, %v", reason, result, err)
		}
		now := &operatorv1alpha1.ClusterRegistry{}
		if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.Registry), now); err != nil {
			t.Fatal(err)
		}
		for _, kind := range append(pass.Parts(s.Registry.Spec.Mode), operatorv1alpha1.ConditionProgressing, operatorv1alpha1.ConditionReady) {
			c := meta.FindStatusCondition(now.Status.Conditions, kind)
			if c == nil || c.ObservedGeneration != 7 || kind == operatorv1alpha1.ConditionReady && (c.Status == "True") != (reason == "all is well") {
				t.Errorf("%s: %s is %+v", reason, kind, c)
			}
		}
		if now.Status.ObservedGeneration != test.whole {
			t.Errorf("%s: the status is of generation %d", reason, now.Status.ObservedGeneration)
		}
	}
}

// TestNext says when to look again, and which error the queue is told: always that
// of the first stage.
func TestNext(t *testing.T) {
	for range 20 {
		s := look(t, "{spec: {mode: Aggregated}}")
		for _, kind := range []string{"APIServiceReady", "CertificatesReady", "ServerReady", "Progressing"} {
			s.record(kind, verdict.Failed(errors.New(kind)))
		}
		s.record("EtcdReady", verdict.Waiting("R", "").In(verdict.Soon))
		if after, err := s.next(); err == nil || err.Error() != "CertificatesReady" || after != verdict.Soon {
			t.Fatalf("after %s: %v", after, err)
		}
	}
	s := look(t, "{spec: {mode: Independent}}")
	if after, err := s.next(); after != verdict.Vigil || err != nil {
		t.Errorf("nothing waits: after %s: %v", after, err)
	}
	s.record("EndpointReady", verdict.Waiting("R", ""))
	if after, err := s.next(); after != verdict.Backstop || err != nil {
		t.Errorf("a stage waits: after %s: %v", after, err)
	}
	s = look(t, "{spec: {"+withController+"}}")
	s.record("ControllerReady", verdict.Failed(errors.New("no route")))
	if after, err := s.next(); after != verdict.Backstop || err != nil {
		t.Errorf("the controller fails, for which nothing waits: after %s: %v", after, err)
	}
	s.record("Progressing", verdict.Waiting("R", "").In(verdict.Soon))
	if after, err := s.next(); after != verdict.Soon || err != nil {
		t.Errorf("the controller fails during an upgrade: after %s: %v", after, err)
	}
	s = look(t, "{spec: {mode: Aggregated}}")
	s.operation = verdict.Failed(errors.New("not recorded"))
	if after, err := s.next(); after != verdict.Backstop || err == nil || err.Error() != "not recorded" {
		t.Errorf("an operation fails: after %s: %v", after, err)
	}
}

// TestResyncPeriod reconciles again after the time that a registry waits for, and at latest
// after the period that the operator was given.
func TestResyncPeriod(t *testing.T) {
	for _, test := range []struct {
		reason              string
		waits, period, want time.Duration
	}{
		{"no period", verdict.Resync, 0, verdict.Vigil},
		{"what it waits for comes first", verdict.Soon, 10 * time.Second, verdict.Soon},
		{"the period comes first", verdict.Backstop, 10 * time.Second, 10 * time.Second},
	} {
		s := look(t, "{spec: {mode: Aggregated}}")
		r := reading(t, s, s.Registry.DeepCopy())
		r.ResyncPeriod, s.Events = test.period, events.NewFakeRecorder(20)
		for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
			s.record(kind, done)
		}
		s.record("EtcdReady", verdict.Waiting("R", "").In(test.waits))
		if result, err := r.report(t.Context(), s); err != nil || result.RequeueAfter != test.want {
			t.Errorf("%s: after %s, want %s: %v", test.reason, result.RequeueAfter, test.want, err)
		}
	}
}

func TestVerdictOfAnError(t *testing.T) {
	v := verdict.Failed(errors.New("no route"))
	if v.Reason != operatorv1alpha1.ReasonInternalError || v.Err == nil || v.State != verdict.Blocked {
		t.Errorf("%+v", v)
	}
}

func timeAt(t time.Time) *metav1.Time { return new(metav1.NewTime(t)) }

// TestOldDefinition is about a host cluster whose CustomResourceDefinition does not have
// status.operation: an upgrade that is not recorded must not be taken for one that began.
func TestOldDefinition(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated}, status: {"+complete[2:]+"}}")
	r := reading(t, s, s.Registry.DeepCopy())
	recorder := events.NewFakeRecorder(20)
	s.Events = recorder
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			err := c.SubResource(name).Patch(ctx, object, patch, options...)
			object.(*operatorv1alpha1.ClusterRegistry).Status.Operation = nil
			return err
		}})
	operation.Begin(s.Registry, &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, From: "v0.1.0", To: "v0.2.0"})
	err := r.writeStatus(t.Context(), s, nil)
	if err == nil || !strings.Contains(err.Error(), "clusterregistries.operator.clusterregistry.io is of an earlier release than the operator") {
		t.Errorf("%v", err)
	}
	if event := <-recorder.Events; !strings.Contains(event, "does not store status.operation") {
		t.Errorf("the event is %q", event)
	}
}

// TestBackupConditions is about what Ready makes of backups.
func TestBackupConditions(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated}}")
	for _, test := range []struct {
		v    verdict.Verdict
		want metav1.ConditionStatus
	}{
		{verdict.Verdict{Reason: operatorv1alpha1.ReasonBackedUp, Message: "m"}, metav1.ConditionTrue},
		{verdict.Waiting(operatorv1alpha1.ReasonFirstBackupPending, "m"), metav1.ConditionUnknown},
		{verdict.Waiting(operatorv1alpha1.ReasonBackupFailed, "m"), metav1.ConditionFalse},
	} {
		s.found[operatorv1alpha1.ConditionBackupReady] = test.v
		if c := s.condition(operatorv1alpha1.ConditionBackupReady, ""); c.Status != test.want || c.Reason != test.v.Reason || c.Message != "m" {
			t.Errorf("%+v becomes %+v", test.v, c)
		}
	}
}
