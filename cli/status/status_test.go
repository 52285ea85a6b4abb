package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

func condition(kind, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

func at(days float64) *metav1.Time {
	return &metav1.Time{Time: commandtest.Now.Add(time.Duration(days * 24 * float64(time.Hour)))}
}

// fleet returns a registry that is well, with changes.
func fleet(changes ...func(*operatorv1alpha1.ClusterRegistry)) *operatorv1alpha1.ClusterRegistry {
	out := &operatorv1alpha1.ClusterRegistry{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistry"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "fleet"},
		Spec:       operatorv1alpha1.ClusterRegistrySpec{Version: "v0.4.0", Mode: operatorv1alpha1.ModeAggregated},
		Status: operatorv1alpha1.ClusterRegistryStatus{
			Version: "v0.4.0",
			Conditions: []metav1.Condition{
				condition("Ready", "True", "Ready", ""), condition("Available", "True", "Available", ""), condition("EtcdReady", "True", "Ready", ""), condition("ServerReady", "True", "Ready", ""),
			},
			Etcd:         operatorv1alpha1.EtcdStatus{Ready: "1/1", Members: []operatorv1alpha1.EtcdMember{{Name: "fleet-etcd-0", Ready: true, Version: "3.7.3"}}},
			Certificates: []operatorv1alpha1.CertificateStatus{{Name: "fleet-serving", NotAfter: at(60.5), RenewalTime: at(30)}, {Name: "fleet-etcd-ca", NotAfter: at(3650)}},
		},
	}
	for _, change := range changes {
		change(out)
	}
	return out
}

func set(conditions ...metav1.Condition) func(*operatorv1alpha1.ClusterRegistry) {
	return func(creg *operatorv1alpha1.ClusterRegistry) {
		for _, condition := range conditions {
			for i := range creg.Status.Conditions {
				if creg.Status.Conditions[i].Type == condition.Type {
					creg.Status.Conditions[i] = condition
				}
			}
		}
	}
}

func cluster(name string, conditions ...metav1.Condition) *v1beta1.Cluster {
	out := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if conditions != nil {
		out.Status = &v1beta1.ClusterStatus{Conditions: conditions}
	}
	return out
}

// TestStatusProblems has what needs attention, and what doesn't.
func TestStatusProblems(t *testing.T) {
	deleting := metav1.Now()
	for _, test := range []struct {
		reason   string
		registry *operatorv1alpha1.ClusterRegistry
		clusters []runtime.Object
		verdict  string
		problems []string
	}{
		{
			reason: "an operator that has begun only", registry: fleet(func(c *operatorv1alpha1.ClusterRegistry) {
				c.Status.Conditions = []metav1.Condition{condition("Progressing", "True", "Creating", "")}
			}),
			verdict: "ATTENTION: 1 problem in 1 registry, 0 clusters", problems: []string{"registry registries/fleet: perhaps not available: the operator has not said why yet"},
		},
		{reason: "all is well", registry: fleet(), clusters: []runtime.Object{cluster("east", condition("Available", "True", "Probed", "")), cluster("west")}, verdict: "OK: 1 registry, 2 clusters"},
		{
			reason: "the first part that is not ready is the cause", verdict: "ATTENTION: 1 problem in 1 registry, 0 clusters",
			registry: fleet(set(condition("Ready", "False", "Waiting", "Waiting for etcd"), condition("EtcdReady", "False", "MembersNotReady", "fleet-etcd-0 is\nnot ready"), condition("ServerReady", "False", "Waiting", ""))),
			problems: []string{"registry registries/fleet: not ready: MembersNotReady: fleet-etcd-0 is not ready"},
		},
		{
			reason: "clients are not served", verdict: "ATTENTION: 1 problem in 1 registry, 0 clusters",
			registry: fleet(set(condition("Ready", "False", "NotAvailable", "503"), condition("Available", "False", "NotAvailable", "503"))),
			problems: []string{"registry registries/fleet: NOT AVAILABLE: NotAvailable: 503"},
		},
		{
			reason: "no report", verdict: "ATTENTION: 1 problem in 1 registry, 0 clusters",
			registry: fleet(func(c *operatorv1alpha1.ClusterRegistry) { c.Status.Conditions = nil }),
			problems: []string{"registry registries/fleet: the operator has not reported of it: it is not running, or doesn't watch this namespace"},
		},
		{
			reason: "deletion", verdict: "ATTENTION: 1 problem in 1 registry, 0 clusters",
			registry: fleet(func(c *operatorv1alpha1.ClusterRegistry) {
				c.DeletionTimestamp, c.Finalizers = &deleting, []string{operatorv1alpha1.Finalizer}
			}),
			problems: []string{"registry registries/fleet: it is being deleted"},
		},
		{
			reason: "certificates", verdict: "ATTENTION: 2 problems in 1 registry, 0 clusters",
			registry: fleet(func(c *operatorv1alpha1.ClusterRegistry) {
				c.Status.Certificates = []operatorv1alpha1.CertificateStatus{{Name: "gone", NotAfter: at(-0.5)}, {Name: "late", NotAfter: at(3.5), RenewalTime: at(-2)}, {Name: "soon", NotAfter: at(30), RenewalTime: at(-0.5)}, {Name: "none"}}
			}),
			problems: []string{"registry registries/fleet: certificate gone has expired on 2026-11-23 00:00:00", "registry registries/fleet: certificate late should have been renewed on 2026-11-21, and expires in 3 days"},
		},
		{
			reason: "a rollback", verdict: "ATTENTION: 1 problem in 1 registry, 0 clusters",
			registry: fleet(func(c *operatorv1alpha1.ClusterRegistry) {
				c.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade, From: "v0.3.0", To: "v0.4.0", Phase: operatorv1alpha1.PhaseRollback, Message: "it crashed"}
			}),
			problems: []string{"registry registries/fleet: the upgrade to v0.4.0 is rolled back: it crashed"},
		},
		{
			reason: "clusters that are not well", registry: fleet(), verdict: "ATTENTION: 1 problem in 1 registry, 3 clusters",
			clusters: []runtime.Object{cluster("a", condition("Available", "False", "Refused", "no")), cluster("b", condition("Available", "Unknown", "Silent", "?")),
				cluster("c", condition("Available", "True", "Probed", ""), condition("IdentityVerified", "False", "OtherCluster", "it is another"))},
			problems: []string{"clusters: 3 clusters are not well: a, b, c"},
		},
		{
			reason: "many", registry: fleet(), verdict: "ATTENTION: 1 problem in 1 registry, 7 clusters",
			clusters: func() (out []runtime.Object) {
				for _, name := range strings.Split("abcdefg", "") {
					out = append(out, cluster(name, condition("Available", "False", "Refused", "no")))
				}
				return out
			}(),
			problems: []string{"clusters: 7 clusters are not well: a, b, c, d, e, and 2 more"},
		},
	} {
		env := commandtest.New(t, test.clusters...).WithObjects(t, test.registry)
		text, code := env.Run(t, New(env.Env), "-o", "json")
		report := &Report{}
		if err := json.Unmarshal(env.Stdout.Bytes(), report); err != nil {
			t.Fatalf("%s: %v, %s", test.reason, err, text)
		}
		var problems []string
		for _, problem := range report.Problems {
			problems = append(problems, problem.Object+": "+problem.Message)
			if problem.Next == "" || problem.Severity == "" {
				t.Errorf("%s: %s has no next step or severity", test.reason, problem.Message)
			}
		}
		wantCode := 0
		if len(test.problems) > 0 {
			wantCode = 4
		}
		if got := strings.Join(problems, "\n"); report.Verdict != test.verdict || got != strings.Join(test.problems, "\n") || code != wantCode {
			t.Errorf("%s: exit code %d, %q\n%s", test.reason, code, report.Verdict, got)
		}
	}
}

func TestStatusText(t *testing.T) {
	env := commandtest.New(t, cluster("east", condition("Available", "False", "Refused", "connect\x1b[2J: refused"))).WithObjects(t, fleet(func(c *operatorv1alpha1.ClusterRegistry) { c.Spec.Version = "v0.5.0" }))
	if _, code := env.Run(t, New(env.Env), "fleet"); code != 4 {
		t.Errorf("exit code %d", code)
	}
	const want = `ATTENTION: 1 problem in 1 registry, 1 cluster
  clusters: 1 cluster is not well: east
    next: kubectl describe crc east

NAMESPACE    REGISTRY   MODE         VERSION            AVAILABLE   READY   ETCD   CERTIFICATES   OPERATION
registries   fleet      Aggregated   v0.4.0 -> v0.5.0   True        True    1/1    2, 60d left    -

CERTIFICATE     EXPIRES      DAYS LEFT   RENEWAL
fleet-serving   2027-01-23   60          2026-12-23
fleet-etcd-ca   2036-11-20   3650        -

ETCD MEMBER    READY   VERSION
fleet-etcd-0   true    3.7.3

Clusters: 1, 0 available, 1 not available, 0 unknown, 0 that no one reports of
CLUSTER   AVAILABLE   REASON    MESSAGE
east      False       Refused   connect[2J: refused
`
	if got := env.Stdout.String(); got != want {
		t.Errorf("it prints\n%s", got)
	}
}

// TestStatusLostQuorum leads to the plan of the recovery, and says plainly that one is under way.
func TestStatusLostQuorum(t *testing.T) {
	const plan = "    next: kubectl registry recover plan fleet -n registries; docs/how-to/troubleshooting.md, "
	for reason, want := range map[string]string{
		operatorv1alpha1.ReasonQuorumLost: "  registry registries/fleet: NOT AVAILABLE: QuorumLost: 1 of 3\n" + plan + "QuorumLost\n",
		operatorv1alpha1.ReasonRecovering: "  registry registries/fleet: NOT AVAILABLE while etcd is recovered from a lost quorum: Recovering: 1 of 3\n" + plan + "Recovering\n",
	} {
		env := commandtest.New(t).WithObjects(t, fleet(set(condition("Ready", "False", "NotAvailable", ""), condition("Available", "False", "NotAvailable", ""), condition("EtcdReady", "False", reason, "1 of 3")), func(c *operatorv1alpha1.ClusterRegistry) {
			c.Status.Recovery = &operatorv1alpha1.RecoveryStatus{ID: "c-1"}
			if reason == operatorv1alpha1.ReasonRecovering {
				c.Status.Recovery.Phase = operatorv1alpha1.RecoveryStopping
			}
		}))
		_, code := env.Run(t, New(env.Env))
		text := env.Stdout.String()
		if code != 4 || !strings.Contains(text, want) || strings.Contains(text, "Recovery: Stopping\n") != (reason == operatorv1alpha1.ReasonRecovering) {
			t.Errorf("%s: it exits with %d:\n%s", reason, code, text)
		}
	}
}

// TestStatusHostileText has what servers may say, and expects none of it to reach a
// terminal as a command.
func TestStatusHostileText(t *testing.T) {
	hostile := "\x1b]0;title\a\u202ered"
	report := &Report{Verdict: hostile, Problems: []Problem{{Object: hostile, Message: hostile, Next: hostile}}, Notes: []string{hostile},
		Registries: []Registry{{Name: hostile}}, NotWell: []Cluster{{Name: hostile, Message: hostile}}}
	out := &bytes.Buffer{}
	if err := report.print(out, true); err != nil || strings.ContainsAny(out.String(), "\x1b\a\u202e") {
		t.Errorf("%v, %q", err, out)
	}
}

// TestStatusWhatCantBeAsked has contexts that lack a side.
func TestStatusWhatCantBeAsked(t *testing.T) {
	missing := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Message: "the server could not find the requested resource"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "clusterregistries"}, "", errors.New("no"))
	independent := fleet(func(c *operatorv1alpha1.ClusterRegistry) { c.Spec.Mode = operatorv1alpha1.ModeIndependent })
	for _, test := range []struct {
		reason             string
		registry           *operatorv1alpha1.ClusterRegistry
		registries, crcs   error
		args               string
		code               int
		text, verdict, has string
	}{
		{reason: "an independent registry's own context", registry: fleet(), registries: missing, verdict: "OK: 0 clusters", has: "note: this context has no ClusterRegistries"},
		{reason: "a user who may read clusters only", registry: fleet(), registries: forbidden, verdict: "OK: 0 clusters", has: "note: you may not list ClusterRegistries here"},
		{reason: "a host with an independent registry", registry: independent, crcs: missing, verdict: "OK: 1 registry", has: "note: the clusters of an independent registry are listed with its own context"},
		{reason: "a user who may read registries only", registry: fleet(), crcs: forbidden, verdict: "OK: 1 registry", has: "note: you may not list the clusters in the registry: see docs/reference/plugin.md for the rights"},
		{reason: "a host whose registry is down", registry: fleet(), crcs: apierrors.NewServiceUnavailable("no endpoints"), code: 4, text: "ATTENTION: 1 problem in 1 registry", verdict: "ATTENTION: 1 problem in 1 registry", has: "next: kubectl get apiservices"},
		{reason: "neither", registry: fleet(), registries: missing, crcs: missing, code: 1, text: `list the clusters: the registry (context hub) does not serve clusterregistry.k8s.io/v1beta1: name the context of a registry with --context; a registry of which no server runs is not served either, and "kubectl registry status" says so`},
		{reason: "no operator, and a name", registry: fleet(), registries: missing, args: "fleet", code: 1, text: "list the ClusterRegistries: the host cluster (context hub) has no ClusterRegistries: the operator is not installed there; name the context of the host cluster with --context"},
		{reason: "an unknown name", registry: fleet(), args: "other", code: 2, text: `there is no ClusterRegistry "other": there are registries/fleet`},
		{reason: "a broken host", registry: fleet(), registries: errors.New("broken"), code: 1, text: "list the ClusterRegistries: broken"},
		{reason: "watching for a program", registry: fleet(), args: "-w -o json", code: 2, text: `--watch is for people: leave out --output, or watch with "kubectl get creg,crc -w -o json"`},
	} {
		env := commandtest.New(t).WithObjects(t, test.registry)
		if test.registries != nil {
			env.Objects.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.registries })
		}
		if test.crcs != nil {
			env.Clusters.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.crcs })
		}
		text, code := env.Run(t, New(env.Env), strings.Fields(test.args)...)
		verdict, rest, _ := strings.Cut(env.Stdout.String(), "\n")
		if text != test.text || code != test.code || verdict != test.verdict || !strings.Contains(rest, test.has) {
			t.Errorf("%s: exit code %d, %q, it prints\n%s", test.reason, code, text, env.Stdout)
		}
	}
}

// lockedBuffer is a buffer that a test may read while a command writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestStatusWatch expects that a change is shown, and nothing else.
func TestStatusWatch(t *testing.T) {
	env := commandtest.New(t, cluster("east", condition("Available", "True", "Probed", ""))).WithObjects(t, fleet())
	out := &lockedBuffer{}
	env.Out = out
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&shower{env: env.Env, watch: true}).follow(ctx) }()
	wait := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(out.String(), text); {
			if time.Now().After(deadline) {
				t.Fatalf("it does not show %q but %q", text, out)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	wait("OK: 1 registry, 1 cluster")
	bad := cluster("east", condition("Available", "False", "Refused", "refused"))
	if _, err := env.Clusters.ClusterregistryV1beta1().Clusters().Update(t.Context(), bad, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait("ATTENTION: 1 problem")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if shown := strings.Count(out.String(), "--- "); shown != 2 {
		t.Errorf("it was shown %d times", shown)
	}
}

func TestClusters(t *testing.T) {
	of := func(name, region, version, available string, age float64) runtime.Object {
		out := cluster(name, condition("Available", available, "Probed", ""))
		out.CreationTimestamp = *at(-age)
		out.Status.Version.Kubernetes = version
		if region != "" {
			out.Labels = map[string]string{"region": region}
		}
		return out
	}
	clusters := []runtime.Object{of("a", "eu", "v1.37.1", "True", 10), of("b", "eu", "v1.36.3", "False", 20), of("c", "us", "v1.37.0", "True", 5), of("d", "", "", "Unknown", 1), of("e", "eu", "v1.36.10", "True", 2)}
	env := commandtest.New(t, clusters...)
	if text, code := env.Run(t, NewClusters(env.Env), "--by", "region"); code != 0 {
		t.Fatal(text)
	}
	const want = `REGION   CLUSTERS   AVAILABLE   VERSIONS             OLDEST VERSION   OLDEST ENTRY
eu       3          2/3         v1.37 (1), v1.36 (2)   v1.36.3 (b)      20d
us       1          1/1         v1.37 (1)              v1.37.0 (c)      5d
<none>   1          0/1         -                      -                24h
`
	if got := env.Stdout.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("it prints\n%s", got)
	}
	env = commandtest.New(t, clusters...)
	if text, code := env.Run(t, NewClusters(env.Env), "--by", "region", "-l", "region=us", "-o", "json"); code != 0 {
		t.Fatal(text)
	}
	var groups []Group
	if err := json.Unmarshal(env.Stdout.Bytes(), &groups); err != nil || len(groups) != 1 || groups[0].Value != "us" || groups[0].Versions["v1.37"] != 1 {
		t.Errorf("it prints %s, %v", env.Stdout, err)
	}
	env = commandtest.New(t)
	env.Clusters.PrependReactor("list", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("no"))
	})
	if text, code := env.Run(t, NewClusters(env.Env), "--by", "region"); code != 1 || text != "list the clusters: clusters.clusterregistry.k8s.io is forbidden: no; docs/reference/plugin.md lists the rights that each command needs" {
		t.Errorf("without the right: %d, %q", code, text)
	}
}
