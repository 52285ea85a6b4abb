package diagnose

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/cli/command/commandtest"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

// well are the objects of a host cluster with nothing to find.
const well = `
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistry
metadata: {name: fleet, namespace: registries, uid: creg}
spec: {version: v0.4.0, mode: Aggregated}
status:
  version: v0.4.0
  conditions:
  - {type: EtcdReady, status: "True", reason: Ready}
  - {type: Available, status: "True", reason: Available}
  - {type: Ready, status: "True", reason: Ready}
---
apiVersion: v1
kind: Pod
metadata: {name: fleet-etcd-0, namespace: registries, uid: etcd-0, labels: &own {app.kubernetes.io/instance: fleet, app.kubernetes.io/managed-by: clusterregistry-operator}}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: fleet-snapshot-x, namespace: registries, labels: {app.kubernetes.io/instance: fleet, app.kubernetes.io/managed-by: clusterregistry-operator, batch.kubernetes.io/job-name: fleet-snapshot, job-name: fleet-snapshot}}
status: {phase: Succeeded}
---
apiVersion: v1
kind: Pod
metadata: {name: of-someone-else, namespace: registries}
status: {phase: Pending}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-fleet-etcd-0, namespace: registries, uid: claim, labels: {app.kubernetes.io/instance: fleet, app.kubernetes.io/managed-by: clusterregistry-operator}}
status: {phase: Bound}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: fleet-serving, namespace: registries, labels: {app.kubernetes.io/instance: fleet, app.kubernetes.io/managed-by: clusterregistry-operator}}
status: {conditions: [{type: Ready, status: "True"}]}
---
` + commandtest.Operator

// labels are those of the registry's objects.
const labels = `labels: {app.kubernetes.io/instance: fleet, app.kubernetes.io/managed-by: clusterregistry-operator}`

// creg returns the ClusterRegistry with a condition in the place of the one of its type.
func creg(conditions string) string {
	return "apiVersion: operator.clusterregistry.io/v1alpha1\nkind: ClusterRegistry\nmetadata: {name: fleet, namespace: registries, uid: creg}\n" +
		"spec: {version: v0.4.0, mode: Aggregated}\nstatus: {version: v0.4.0, conditions: [" + conditions + "]}\n"
}

const served = `{type: Available, status: "True", reason: Available}, {type: Ready, status: "True", reason: Ready}`

// key names an object.
func key(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// asked are all resources that may be listed.
var asked = []schema.GroupVersionResource{hostcluster.Resource, pods, events, persistentClaims, deployments, statefulSets, jobs, leases, certificates, certificateRequests, apiServices}

// newEnv returns a host cluster that is well, with objects beside and in place of its
// own, and without those that are named.
func newEnv(t *testing.T, text string, without ...string) *commandtest.Env {
	t.Helper()
	changes := commandtest.Objects(t, text)
	for _, object := range commandtest.Objects(t, well) {
		same := func(o *unstructured.Unstructured) bool { return key(o) == key(object) }
		if !slices.ContainsFunc(changes, same) && !slices.Contains(without, key(object)) {
			changes = append(changes, object)
		}
	}
	env := commandtest.New(t)
	env.Objects = commandtest.HostCluster(changes...)
	return env
}

// findings runs the command and returns its findings, one a line.
func findings(t *testing.T, reason string, env *commandtest.Env, args ...string) string {
	t.Helper()
	text, code := env.Run(t, New(env.Env), append(args, "-o", "json")...)
	report := &Report{}
	if err := json.Unmarshal(env.Stdout.Bytes(), report); err != nil {
		t.Fatalf("%s: %v, %s", reason, err, text)
	}
	var out []string
	for _, finding := range report.Findings {
		out = append(out, string(finding.Severity)+" "+finding.Object+": "+finding.Message)
		if finding.Next == "" {
			t.Errorf("%s: %s has no next step", reason, finding.Message)
		}
	}
	if want := map[bool]int{true: 0, false: 4}[len(out) == 0]; code != want {
		t.Errorf("%s: exit code %d, %s", reason, code, text)
	}
	for _, action := range env.Objects.Actions() {
		if resource := action.GetResource(); action.GetVerb() != "list" || !slices.Contains(asked, resource) {
			t.Errorf("%s: it has sent %s %s", reason, action.GetVerb(), resource)
		}
	}
	return strings.Join(out, "\n")
}

func TestFindings(t *testing.T) {
	for _, test := range []struct{ reason, objects, without, want string }{
		{reason: "all is well"},
		{
			reason: "a condition, a later one that waits, and one that has its own reason", objects: creg(`{type: Ready, status: "False", reason: Waiting}, {type: Available, status: "False", reason: NotAvailable, message: m}, {type: EtcdReady, status: "False", reason: MembersNotReady, message: "no\u001b[2J"}, {type: ServerReady, status: "False", reason: Waiting}, {type: APIServiceReady, status: "False", reason: BackendDown, message: gone}`),
			want: "critical registry registries/fleet: NOT AVAILABLE: MembersNotReady: no[2J\ncritical registry registries/fleet: APIServiceReady is False: BackendDown: gone",
		},
		{reason: "data is at stake", objects: creg(`{type: Ready, status: "False", reason: DataLost}, {type: Available, status: "True", reason: Available}, {type: EtcdReady, status: "False", reason: DataLost, message: empty}`), want: "critical registry registries/fleet: not ready: DataLost: empty"},
		{reason: "no operator has looked", objects: creg(""), want: "error registry registries/fleet: the operator has not reported of it: it is not running, or doesn't watch this namespace"},
		{reason: "true with a reservation", objects: creg(served + `, {type: CertificatesReady, status: "True", reason: CAExpiring, message: soon}`), want: "warning registry registries/fleet: CertificatesReady: CAExpiring: soon"},
		{reason: "an upgrade that is blocked", objects: creg(served + `, {type: Progressing, status: "True", reason: SnapshotFailed, message: full}`), want: "error registry registries/fleet: the upgrade does not continue: SnapshotFailed: full"},
		{reason: "paused", objects: strings.Replace(creg(served), "mode:", "paused: true, mode:", 1), want: "warning registry registries/fleet: it is paused: the operator changes and repairs nothing"},
		{
			reason: "an address that has changed, now and long ago", want: "warning registry registries/fleet: AddressChanged at 2026-11-23T11:00:00Z: from a to b",
			objects: `{apiVersion: v1, kind: Event, metadata: {name: a, namespace: registries}, type: Warning, reason: AddressChanged, message: from a to b, lastTimestamp: "2026-11-23T11:00:00Z", involvedObject: {uid: creg}}` + "\n---\n" +
				`{apiVersion: v1, kind: Event, metadata: {name: b, namespace: registries}, type: Warning, reason: AddressChanged, message: before, lastTimestamp: "2026-11-01T11:00:00Z", involvedObject: {uid: creg}}` + "\n---\n" +
				`{apiVersion: v1, kind: Event, metadata: {name: c, namespace: registries}, type: Warning, reason: EtcdReady, message: it was so, lastTimestamp: "2026-11-23T11:30:00Z", involvedObject: {uid: creg}}`,
		},
		{reason: "a pod that starts", objects: `{apiVersion: v1, kind: Pod, metadata: {name: fleet-etcd-0, namespace: registries, ` + labels + `}, spec: {nodeName: node-1}, status: {phase: Pending}}`, want: "warning pod registries/fleet-etcd-0: pod fleet-etcd-0 on node node-1 is starting"},
		{
			reason: "a pod that no node fits, with its last event", want: "error pod registries/fleet-etcd-0: pod fleet-etcd-0 can't be scheduled: no node: the last",
			objects: `{apiVersion: v1, kind: Pod, metadata: {name: fleet-etcd-0, namespace: registries, uid: etcd-0, ` + labels + `}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: no node}]}}` + "\n---\n" +
				`{apiVersion: v1, kind: Event, metadata: {name: a, namespace: registries}, type: Warning, message: the last, series: {lastObservedTime: "2026-11-23T11:00:00.000000Z"}, involvedObject: {uid: etcd-0}}` + "\n---\n" +
				`{apiVersion: v1, kind: Event, metadata: {name: b, namespace: registries}, type: Warning, message: the first, eventTime: "2026-11-23T10:00:00.000000Z", involvedObject: {uid: etcd-0}}`,
		},
		{reason: "a crash", objects: `{apiVersion: v1, kind: Pod, metadata: {name: fleet-server-0, namespace: registries, ` + labels + `}, status: {phase: Running, containerStatuses: [{name: server, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, message: panic}}}]}}`, want: "error pod registries/fleet-server-0: pod fleet-server-0: container server exited with code 1: panic"},
		{reason: "an image that is not there", objects: `{apiVersion: v1, kind: Pod, metadata: {name: fleet-server-0, namespace: registries, ` + labels + `}, status: {phase: Pending, containerStatuses: [{name: server, state: {waiting: {reason: ErrImagePull, message: not found}}}]}}`, want: "error pod registries/fleet-server-0: pod fleet-server-0: container server is waiting (ErrImagePull): not found"},
		{reason: "the guard refuses", objects: `{apiVersion: v1, kind: Pod, metadata: {name: fleet-etcd-0, namespace: registries, ` + labels + `}, status: {phase: Running, containerStatuses: [{name: etcd, state: {terminated: {exitCode: 65, message: empty}}}]}}`, want: "critical pod registries/fleet-etcd-0: pod fleet-etcd-0: container etcd exited with code 65: empty"},
		{reason: "killed at its limit, and runs again", objects: `{apiVersion: v1, kind: Pod, metadata: {name: fleet-etcd-0, namespace: registries, ` + labels + `}, status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: etcd, restartCount: 1, lastState: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-11-23T11:30:00Z"}}}]}}`,
			want: "warning registry registries/fleet: pod fleet-etcd-0: container etcd was killed at its memory limit (OOMKilled, 2026-11-23T11:30:00Z, 1 restarts): raise spec.etcd.resources.limits.memory"},
		{reason: "a Job that failed", objects: `{apiVersion: batch/v1, kind: Job, metadata: {name: fleet-snapshot, namespace: registries, ` + labels + `}, status: {conditions: [{type: Failed, status: "True", message: too often}]}}`, want: "error job registries/fleet-snapshot: Job fleet-snapshot failed (too often)"},
		{
			reason: "pods that are missing", want: "error deployment registries/fleet-server: 1 of 2 pods exist: exceeded quota\nerror statefulset registries/fleet-etcd: 0 of 3 pods exist: refused by a webhook",
			objects: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: fleet-server, namespace: registries, ` + labels + `}, spec: {replicas: 2}, status: {replicas: 1, conditions: [{type: ReplicaFailure, status: "True", message: exceeded quota}]}}` + "\n---\n" +
				`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: fleet-etcd, namespace: registries, uid: set, ` + labels + `}, spec: {replicas: 3}, status: {replicas: 0}}` + "\n---\n" +
				`{apiVersion: v1, kind: Event, metadata: {name: a, namespace: registries}, type: Warning, message: refused by a webhook, involvedObject: {uid: set}}`,
		},
		{
			reason: "a claim without a volume", want: "error persistentvolumeclaim registries/data-fleet-etcd-0: it is not bound to a volume (StorageClass fast): no such class",
			objects: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-fleet-etcd-0, namespace: registries, uid: claim, ` + labels + `}, spec: {storageClassName: fast}, status: {phase: Pending}}` + "\n---\n" +
				`{apiVersion: v1, kind: Event, metadata: {name: a, namespace: registries}, type: Warning, message: no such class, involvedObject: {uid: claim}}`,
		},
		{reason: "a claim that no pod uses yet", objects: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: fleet-snapshots, namespace: registries, ` + labels + `}, status: {phase: Pending}}`},
		{
			reason: "a claim that a pod waits for", want: "error persistentvolumeclaim registries/data-fleet-etcd-0: it is not bound to a volume (the default StorageClass)\nwarning pod registries/fleet-etcd-0: pod fleet-etcd-0 is waiting to be scheduled",
			objects: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-fleet-etcd-0, namespace: registries, ` + labels + `}, status: {phase: Pending}}` + "\n---\n" +
				`{apiVersion: v1, kind: Pod, metadata: {name: fleet-etcd-0, namespace: registries, ` + labels + `}, spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data-fleet-etcd-0}}]}, status: {phase: Pending}}`,
		},
		{reason: "a volume that is gone", objects: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-fleet-etcd-0, namespace: registries, ` + labels + `}, status: {phase: Lost}}`, want: "critical persistentvolumeclaim registries/data-fleet-etcd-0: its volume is gone, and the data in it; delete nothing before docs/how-to/replace-an-etcd-member.md is read"},
		{reason: "a claim that is being deleted", objects: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-fleet-etcd-0, namespace: registries, deletionTimestamp: "2026-11-23T11:00:00Z", ` + labels + `}, status: {phase: Bound}}`, want: "warning persistentvolumeclaim registries/data-fleet-etcd-0: it is being deleted, as soon as no pod uses it"},
		{
			reason: "a certificate that is refused", want: "error certificate registries/fleet-serving: Certificate fleet-serving is not issued yet: pending; the issuer says no",
			objects: `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: fleet-serving, namespace: registries, ` + labels + `}, status: {revision: 1, conditions: [{type: Ready, status: "False", message: pending}]}}` + "\n---\n" +
				`{apiVersion: cert-manager.io/v1, kind: CertificateRequest, metadata: {name: fleet-serving-2, namespace: registries}, status: {conditions: [{type: Ready, status: "False", message: the issuer says no}]}}` + "\n---\n" +
				`{apiVersion: cert-manager.io/v1, kind: CertificateRequest, metadata: {name: fleet-serving-1, namespace: registries}, status: {conditions: [{type: Ready, status: "False", message: before}]}}`,
		},
		{reason: "a CA that expires", objects: `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: fleet-etcd-ca, namespace: registries, ` + labels + `}, spec: {isCA: true}, status: {notAfter: "2027-01-01T00:00:00Z", conditions: [{type: Ready, status: "True"}]}}`,
			want: `warning certificate registries/fleet-etcd-ca: the CA fleet-etcd-ca expires on 2027-01-01; cert-manager renews it with the same key before that, and what has to be done then is in docs/how-to/certificates.md, "When a CA expires"`},
		{reason: "no operator", without: "Deployment clusterregistry-system/clusterregistry-operator", want: "error namespace clusterregistry-system: the operator is not in this namespace"},
		{
			reason: "an operator that does not run, with why", want: "error deployment clusterregistry-system/clusterregistry-operator: the operator is not running: no pod of it is available, and registries are neither changed nor repaired\nerror pod clusterregistry-system/op: pod op: container operator is waiting (ErrImagePull): no\nerror lease clusterregistry-system/clusterregistry-operator: no operator leads: the Lease is not held, or was last renewed at 2026-11-23T11:00:00Z",
			objects: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: clusterregistry-operator, namespace: clusterregistry-system, labels: {app.kubernetes.io/name: clusterregistry-operator}}}` + "\n---\n" +
				`{apiVersion: v1, kind: Pod, metadata: {name: op, namespace: clusterregistry-system, labels: {app.kubernetes.io/name: clusterregistry-operator}}, status: {phase: Pending, containerStatuses: [{name: operator, state: {waiting: {reason: ErrImagePull, message: "no"}}}]}}` + "\n---\n" +
				`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: clusterregistry-operator, namespace: clusterregistry-system}, spec: {holderIdentity: a, leaseDurationSeconds: 15, renewTime: "2026-11-23T11:00:00.000000Z"}}`,
		},
		{reason: "no operator leads", without: "Lease clusterregistry-system/clusterregistry-operator", want: "error namespace clusterregistry-system: no operator leads: the Lease clusterregistry-operator does not exist"},
		{reason: "a Lease that was given up", objects: `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: clusterregistry-operator, namespace: clusterregistry-system}, spec: {holderIdentity: ""}}`, want: "error lease clusterregistry-system/clusterregistry-operator: no operator leads: the Lease is not held, or was last renewed at no time"},
		{reason: "no cert-manager to be found", without: "Deployment cert-manager/cert-manager", want: "warning host cluster: no Deployment has the labels of cert-manager: certificates are issued and renewed only if it runs elsewhere"},
		{reason: "a cert-manager that does not run", objects: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: cert-manager, namespace: cert-manager, labels: {app.kubernetes.io/name: cert-manager}}}`, want: "error deployment cert-manager/cert-manager: cert-manager is not running: no certificate is issued or renewed"},
		{reason: "an API that is down", objects: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1beta1.clusterregistry.k8s.io}, spec: {group: clusterregistry.k8s.io}, status: {conditions: [{type: Available, status: "False", reason: FailedDiscoveryCheck, message: refused}]}}`,
			want: "critical apiservice v1beta1.clusterregistry.k8s.io: kube-apiserver does not reach the registry, and namespaces of the host cluster hang in deletion, any namespace: FailedDiscoveryCheck: refused"},
		{reason: "an API of someone else that is down", objects: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.metrics}, spec: {group: metrics}, status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: none}]}}`,
			want: "warning apiservice v1.metrics: it is not available, and not a registry's; while it is listed, namespaces of the host cluster hang in deletion, any namespace: MissingEndpoints: none"},
		{reason: "no API", without: "APIService /v1beta1.clusterregistry.k8s.io", want: "critical registry registries/fleet: the host cluster does not list its API: no APIService is of the group clusterregistry.k8s.io"},
	} {
		if got := findings(t, test.reason, newEnv(t, test.objects, test.without)); got != test.want {
			t.Errorf("%s: it finds\n%s", test.reason, got)
		}
	}
}

func TestDiagnoseText(t *testing.T) {
	env := newEnv(t, `{apiVersion: v1, kind: Pod, metadata: {name: fleet-etcd-0, namespace: registries, `+labels+`}, spec: {nodeName: node-1}, status: {phase: Pending}}`+"\n---\n"+
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: cert-manager, namespace: cert-manager, labels: {app.kubernetes.io/name: cert-manager}}}`)
	text, code := env.Run(t, New(env.Env), "fleet")
	if want := "ATTENTION: 1 error, 1 warning, 1 registry"; code != 4 || text != want {
		t.Errorf("exit code %d, %q", code, text)
	}
	const want = `ATTENTION: 1 error, 1 warning, 1 registry

error     deployment cert-manager/cert-manager
  cert-manager is not running: no certificate is issued or renewed
  next: kubectl -n cert-manager describe deployment cert-manager

warning   pod registries/fleet-etcd-0
  pod fleet-etcd-0 on node node-1 is starting
  next: kubectl -n registries describe pod fleet-etcd-0
`
	if got := env.Stdout.String(); got != want {
		t.Errorf("it prints\n%s", got)
	}
	env = newEnv(t, "")
	if text, code := env.Run(t, New(env.Env)); code != 0 || env.Stdout.String() != "OK: nothing found, 1 registry\n" {
		t.Errorf("with nothing to find: %d, %q, it prints %s", code, text, env.Stdout)
	}
}

// TestDiagnoseLostQuorum leads to the plan of the recovery, once, also where another part is not
// ready either.
func TestDiagnoseLostQuorum(t *testing.T) {
	for reason, want := range map[string]string{"QuorumLost": "NOT AVAILABLE: QuorumLost: gone", "Recovering": "NOT AVAILABLE while etcd is recovered from a lost quorum: Recovering: gone"} {
		lost := `{type: Available, status: "False", reason: NotAvailable}, {type: Ready, status: "False", reason: NotAvailable}, {type: EtcdReady, status: "False", reason: ` + reason + `, message: gone}`
		next := "\n  next: kubectl registry recover plan fleet -n registries; docs/how-to/troubleshooting.md, " + reason + "\n"
		env := newEnv(t, creg(lost))
		_, code := env.Run(t, New(env.Env), "fleet")
		if text := env.Stdout.String(); code != 4 || text != "ATTENTION: 1 critical, 1 registry\n\ncritical  registry registries/fleet\n  "+want+next {
			t.Errorf("%s: it exits with %d:\n%s", reason, code, text)
		}
		env = newEnv(t, creg(lost+`, {type: CertificatesReady, status: "False", reason: CertificateNotReady, message: none}`))
		_, _ = env.Run(t, New(env.Env), "fleet")
		if text := env.Stdout.String(); strings.Count(text, "EtcdReady is False: "+reason+": gone"+next) != 1 {
			t.Errorf("%s, with a certificate that is not ready:\n%s", reason, text)
		}
	}
}

// TestUnchecked refuses one resource after the other, each of which must be named, and
// hide nothing of the rest.
func TestUnchecked(t *testing.T) {
	crash := `{apiVersion: v1, kind: Pod, metadata: {name: fleet-server-0, namespace: registries, ` + labels + `}, status: {phase: Running, containerStatuses: [{name: server, state: {terminated: {exitCode: 1, message: panic}}}]}}` + "\n---\n" +
		`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: fleet-serving, namespace: registries, ` + labels + `}, status: {conditions: [{type: Ready, status: "False", message: pending}]}}`
	for _, resource := range asked {
		env := newEnv(t, crash)
		env.Objects.PrependReactor("list", resource.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(resource.GroupResource(), "", errors.New("no"))
		})
		*env.Flags.Namespace = "registries"
		got := findings(t, resource.Resource, env, "fleet")
		if !strings.Contains(strings.ToLower(got), "not checked: "+strings.ToLower(resource.Resource)+": ") {
			t.Errorf("without %s it finds\n%s", resource.Resource, got)
		}
		if resource != pods && !strings.Contains(got, "container server exited") || resource != certificates && !strings.Contains(got, "is not issued yet") {
			t.Errorf("without %s the rest is hidden:\n%s", resource.Resource, got)
		}
	}
}

// TestUnknownForm expects that what this plugin doesn't understand is named, and hides
// nothing of the rest.
func TestUnknownForm(t *testing.T) {
	got := findings(t, "a pod of another form", newEnv(t, `{apiVersion: v1, kind: Pod, metadata: {name: odd, namespace: registries, `+labels+`}, spec: new}`+"\n---\n"+
		`{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: fleet-serving, namespace: registries, `+labels+`}, status: {conditions: [{type: Ready, status: "False", message: pending}]}}`))
	if !strings.Contains(got, "not checked: pods: pods odd: cannot restore struct from: string; this plugin may be too old") || !strings.Contains(got, "is not issued yet") {
		t.Errorf("it finds\n%s", got)
	}
}

func TestWhatCantBeAsked(t *testing.T) {
	missing := &apierrors.StatusError{}
	missing.ErrStatus.Reason, missing.ErrStatus.Code, missing.ErrStatus.Message = "NotFound", 404, "the server could not find the requested resource"
	for _, test := range []struct {
		reason, resource string
		err              error
		args, text, want string
		code             int
	}{
		{reason: "no operator's API", resource: "clusterregistries", err: missing, code: 4, text: "ATTENTION: 1 critical, 0 registries", want: "it has no ClusterRegistries"},
		{reason: "no cert-manager", resource: "certificates", err: missing, code: 4, text: "ATTENTION: 1 error, 1 registry", want: "it has no cert-manager"},
		{reason: "no right, and no name", resource: "clusterregistries", err: apierrors.NewForbidden(hostcluster.Resource.GroupResource(), "", errors.New("no")), code: 4, text: "ATTENTION: 1 unchecked, 0 registries", want: "not checked: ClusterRegistries, and so nothing that belongs to one; with a NAME and -n that is checked all the same: "},
		{reason: "a host cluster that fails at it", resource: "clusterregistries", err: apierrors.NewInternalError(errors.New("broken")), code: 4, text: "ATTENTION: 1 unchecked, 0 registries", want: "broken"},
		{reason: "credentials", resource: "clusterregistries", err: apierrors.NewUnauthorized("no"), code: 1, text: "list the ClusterRegistries: the host cluster (context hub) does not accept the credentials of the kubeconfig: sign in again, or name another context with --context"},
		{reason: "an unknown name", args: "other", code: 2, text: `there is no ClusterRegistry "other": there are registries/fleet`},
		{reason: "a form that is not known", args: "-o xml", code: 2, text: "--output=xml: use json or yaml or jsonpath=TEMPLATE"},
	} {
		env := newEnv(t, "")
		if test.err != nil {
			env.Objects.PrependReactor("list", test.resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
		}
		text, code := env.Run(t, New(env.Env), strings.Fields(test.args)...)
		if code != test.code || text != test.text || !strings.Contains(env.Stdout.String(), test.want) {
			t.Errorf("%s: exit code %d, %q, it prints\n%s", test.reason, code, text, env.Stdout)
		}
	}
}

// TestServed has registries whose clients are not served, or that can't be asked.
func TestServed(t *testing.T) {
	missing := &apierrors.StatusError{}
	missing.ErrStatus.Reason, missing.ErrStatus.Code = "NotFound", 404
	for _, test := range []struct {
		reason string
		err    error
		want   string
	}{
		{"it answers", nil, ""},
		{"it doesn't", apierrors.NewServiceUnavailable("no endpoints"), "critical clusters: they can't be listed through the host cluster: no endpoints"},
		{"no right", apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "", errors.New("no")), `unchecked host cluster: not checked: whether clients are served: clusters is forbidden: no`},
		{"another API under its name", missing, "unchecked clusters: not checked: whether clients are served: this plugin asks for clusterregistry.k8s.io/v1beta1, which every registry serves"},
	} {
		env := newEnv(t, "")
		env.Clusters.PrependReactor("list", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
			return test.err != nil, nil, test.err
		})
		if got := findings(t, test.reason, env); got != test.want {
			t.Errorf("%s: it finds\n%s", test.reason, got)
		}
	}
}

// TestRendered has the objects of a registry as the operator makes them: each kind must
// be found by its labels, and be read.
func TestRendered(t *testing.T) {
	content, err := os.ReadFile("../../operator/render/testdata/newest/aggregated-ha.yaml")
	if err != nil {
		t.Fatal(err)
	}
	env := newEnv(t, string(content)+"\n---\n"+strings.Replace(creg(served), "namespace: registries", "namespace: team", 1), "ClusterRegistry registries/fleet")
	got := findings(t, "rendered", env, "fleet")
	for _, want := range []string{
		"error deployment team/fleet-server: 0 of ",
		"error statefulset team/fleet-etcd: 0 of 3 pods exist",
		"error certificate team/fleet-serving: Certificate fleet-serving is waiting for cert-manager to process it",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not among\n%s", want, got)
		}
	}
	if strings.Contains(got, "not checked") {
		t.Errorf("it can't read what the operator makes:\n%s", got)
	}
}
