package recovery

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// test is a registry with what is beside it, and what a plan says of it.
type test struct {
	reason   string
	registry *r
	objects  []runtime.Object
	code     int
	says     []string
	// never is what it must not say.
	never []string
}

func (test test) check(t *testing.T) {
	t.Helper()
	text, code := run(t, host(t, slices.Concat(test.objects, []runtime.Object{test.registry})...), "fleet")
	if code != test.code {
		t.Errorf("%s: it exits with %d, want %d: %s", test.reason, code, test.code, text)
	}
	for _, want := range test.says {
		if !strings.Contains(text, want) {
			t.Errorf("%s: it lacks %q:\n%s", test.reason, want, text)
		}
	}
	for _, never := range test.never {
		if strings.Contains(text, never) {
			t.Errorf("%s: it says %q:\n%s", test.reason, never, text)
		}
	}
}

// TestWentBack shows both sides of an etcd that went back, with what each of them loses, and
// recommends none.
func TestWentBack(t *testing.T) {
	back := func(r *r) {
		condition(v1alpha1.ReasonWentBack, "etcd went back from revision 140 to 100")(r)
		r.Status.Recovery.LastRevision = 140
		r.Status.Recovery.Members = []v1alpha1.RecoveryMember{{Name: "fleet-etcd-0", Message: "its data may be left: its pod does not run"},
			{Name: "fleet-etcd-1", Revision: 100, RevisionsLost: 40, Message: "it serves clients"}, {Name: "fleet-etcd-2", Revision: 100, RevisionsLost: 40, Message: "it serves clients"}}
	}
	test{reason: "two of three were set back", registry: fleet(back), code: 4, says: []string{
		"ATTENTION: the etcd of registries/fleet went back: it was at revision 140, and what it had acknowledged is missing in what it serves now.",
		"Copy: member fleet-etcd-0", "Copy: member fleet-etcd-1, up to revision 100", "40 revisions that are known",
		`"name":"fleet-etcd-1","acceptDataLossUpTo":40,"approvedFor":"c-1"`, "Nothing was changed."}, never: []string{"recommended", "lost its quorum", "In the way"}}.check(t)
	test{reason: "one side is approved", registry: fleet(back, approve(v1alpha1.RecoverFromMember, "fleet-etcd-1", 40, "c-1")), code: 4,
		says: []string{"spec.recovery approves member fleet-etcd-1, with which the operator continues next"}}.check(t)
}

// TestPlan has all of a plan, in its order.
func TestPlan(t *testing.T) {
	text, code := run(t, host(t, fleet(newest("eleven", 80)), saved("eleven", 80, time.Hour), saved("ten", 60, 2*time.Hour), nodeThat("node-1", corev1.ConditionUnknown), pod("fleet-etcd-1", "etcd", "node-1")), "fleet")
	const want = `ATTENTION: the etcd of registries/fleet has lost its quorum for good: the data of 3 of 5 members is gone. It continues only with a copy of the data that a person approves.

  Loss              c-1
  Noticed           2026-11-23T11:40:00Z, 20 min ago
  Newest revision   100, as far as it is known: clients may have been answered newer ones

In the way: pod fleet-etcd-1 is on node node-1, which does not answer, and the pod may still run there. Nothing is recovered before it has terminated for certain. Do not delete it by force. Bring the node back or, when you know that the pod does not run any more, taint that Node (kubectl taint nodes node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute). Delete that Node only to give up the data of this member, which may be on its disk.
Gone: fleet-etcd-2: its volume is gone.
Gone: fleet-etcd-3: it is empty[2J.
Gone: fleet-etcd-4: its data is lost or damaged.
Recommended: member fleet-etcd-0, which loses the least of what is known. Which one it is to be is a person's decision: what the copy lacks is lost for good.

Copy: member fleet-etcd-0 (recommended), up to revision 90
  Known: it has its data.
  Lost: 10 revisions that are known, and newer ones that clients were answered, if there are any.
  kubectl -n registries patch creg fleet --type=merge -p '{"spec":{"recovery":{"from":"Member","name":"fleet-etcd-0","acceptDataLossUpTo":10,"approvedFor":"c-1"}}}'

Copy: backup eleven, up to revision 80, taken at 2026-11-23T11:00:00Z, 60 min ago, verified 60 min ago
  At: s3://backups/one/eleven
  Lost: 20 revisions that are known, and all else that was written after 2026-11-23T11:00:00Z, 60 min ago.
  kubectl -n registries patch creg fleet --type=merge -p '{"spec":{"recovery":{"from":"Backup","name":"eleven","acceptDataLossUpTo":20,"approvedFor":"c-1"}}}'

Copy: backup ten, up to revision 60, taken at 2026-11-23T10:00:00Z, 2 h ago, verified 2 h ago
  At: s3://backups/one/ten
  Lost: 40 revisions that are known, and all else that was written after 2026-11-23T10:00:00Z, 2 h ago.
  kubectl -n registries patch creg fleet --type=merge -p '{"spec":{"recovery":{"from":"Backup","name":"ten","acceptDataLossUpTo":40,"approvedFor":"c-1"}}}'

Copy: member fleet-etcd-1
  Known: its data may be left: it does not answer, and was on node node-1.
  Lost: up to which revision it goes is not known. Before its data is used, the operator finds that out: with this command, it is refused, and stays as it is, if it ends before revision 90; and newer ones that clients were answered, if there are any.
  kubectl -n registries patch creg fleet --type=merge -p '{"spec":{"recovery":{"from":"Member","name":"fleet-etcd-1","acceptDataLossUpTo":10,"approvedFor":"c-1"}}}'

Not known here: whether the backups are still in their store as they were: this command does not reach stores; the operator looks before it stops anything.
Note: keep all volumes, and delete no claim, no PersistentVolume, and no pod by force. If a volume can be brought back, as a disk that was not attached, do that instead: with a majority of the members, nothing is lost.
Nothing was changed.
`
	if code != 4 || !strings.HasPrefix(text, want) {
		t.Errorf("it exits with %d:\n%s", code, text)
	}
}

// TestInTheWay is about what keeps a recovery from being made.
func TestInTheWay(t *testing.T) {
	deleted := func(r *r) {
		r.DeletionTimestamp, r.Finalizers = at(0), []string{"f"}
	}
	silent := condition(v1alpha1.ReasonMembersNotReady, "0/5 are ready.")
	for _, test := range []test{
		{reason: "nothing", registry: fleet(), never: []string{"In the way", "spec.recovery does nothing", "with which the operator begins next"}},
		{reason: "it is paused", registry: fleet(func(r *r) { r.Spec.Paused = true }), says: []string{`In the way: spec.paused is true, and nothing is changed until it is false (kubectl -n registries patch creg fleet --type=merge -p '{"spec":{"paused":false}}').`}},
		{reason: "it is being deleted", registry: fleet(deleted), says: []string{"In the way: the registry is being deleted"}},
		{reason: "the loss is not certain at the moment", registry: fleet(silent), says: []string{"is not certain of the loss at the moment", "EtcdReady is False: MembersNotReady: 0/5 are ready.\n"}},
		{reason: "the operator is silent", registry: fleet(func(r *r) { r.Status.Conditions = nil }), says: []string{"has not reported of etcd since"}},
		{reason: "it is approved", registry: fleet(approve("Member", "fleet-etcd-0", 10, "c-1")), says: []string{"spec.recovery approves member fleet-etcd-0, with which the operator begins next."}, never: []string{"In the way"}},
		{reason: "it is approved, and paused", registry: fleet(approve("Member", "fleet-etcd-0", 10, "c-1"), func(r *r) { r.Spec.Paused = true }), says: []string{"with which the operator begins next, as soon as nothing is in the way."}},
		{reason: "too little is accepted", registry: fleet(approve("Member", "fleet-etcd-0", 9, "c-1")),
			says: []string{"In the way: spec.recovery does nothing yet: fleet-etcd-0 lacks 10 known revisions, and spec.recovery.acceptDataLossUpTo is 9: set it to 10"}, never: []string{"begins next"}},
		{reason: "another loss", registry: fleet(approve("Member", "fleet-etcd-0", 10, "c-0")), says: []string{"spec.recovery is approved for the loss c-0, and this one is c-1"}},
		{reason: "a member whose data is gone", registry: fleet(approve("Member", "fleet-etcd-2", 10, "c-1")), says: []string{"the data of fleet-etcd-2 is gone (its volume is gone)"}},
		{reason: "a backup that is not there", registry: fleet(approve("Backup", "none", 10, "c-1")), says: []string{"spec.recovery does nothing yet: there is no ClusterRegistryBackup none in namespace registries"}},
		{reason: "a backup of other data", registry: fleet(approve("Backup", "one", 100, "c-1")), objects: []runtime.Object{saved("one", 80, time.Hour, func(b *b) { b.Status.Lineage = "two" })}, says: []string{"ClusterRegistryBackup one is of other data (lineage two)"}},
		{reason: "a backup that fits", registry: fleet(approve("Backup", "one", 20, "c-1")), objects: []runtime.Object{saved("one", 80, time.Hour)}, says: []string{"spec.recovery approves backup one"}},
		{reason: "what the operator alone knows", registry: fleet(approve("Member", "fleet-etcd-0", 10, "c-1"), func(r *r) { r.Status.Recovery.Message = "fleet-etcd-0 was being added to etcd" }), says: []string{"spec.recovery does nothing yet: fleet-etcd-0 was being added to etcd."}},
		{reason: "a pod that does not terminate", registry: fleet(), objects: []runtime.Object{pod("fleet-server-0", "server", "node-1", terminating(time.Hour)), nodeThat("node-1", corev1.ConditionUnknown)},
			says: []string{"In the way: pod fleet-server-0 does not terminate: node node-1, on which it is, may be gone", "delete that Node, or taint that Node (kubectl taint nodes node-1 "}},
		{reason: "a pod that does not terminate although its node answers", registry: fleet(), objects: []runtime.Object{pod("fleet-server-0", "server", "node-1", terminating(time.Hour)), nodeThat("node-1", corev1.ConditionTrue)},
			says: []string{`although node node-1, on which it is, answers: see "kubectl -n registries describe pod fleet-server-0"`}},
		{reason: "a pod whose node was deleted", registry: fleet(), objects: []runtime.Object{pod("fleet-server-0", "server", "node-1")}, says: []string{"is on node node-1, which was deleted: the host cluster removes the pod next"}},
		{reason: "pods that will terminate", registry: fleet(), objects: []runtime.Object{pod("fleet-server-0", "server", "node-1", terminating(time.Minute)), pod("fleet-server-1", "server", "node-2", ready), pod("fleet-server-2", "server", ""), nodeThat("node-1", corev1.ConditionTrue)}, never: []string{"In the way"}},
		{reason: "a pod of something else", registry: fleet(), objects: []runtime.Object{pod("fleet-backup-0", "backup", "node-1")}, never: []string{"In the way"}},
	} {
		test.code = 4
		test.check(t)
	}
}

// TestSingle is about the loss of an only member's data, of which no other member has a copy.
func TestSingle(t *testing.T) {
	single := func(r *r) {
		r.Spec.Etcd.Replicas, r.Status.Recovery.Members = 1, []v1alpha1.RecoveryMember{{Name: "fleet-etcd-0", DataGone: true, Message: "its data is lost or damaged"}}
	}
	backup := saved("eleven", 80, time.Hour)
	for _, test := range []test{
		{reason: "there is a backup", registry: fleet(single, newest("eleven", 80)), objects: []runtime.Object{backup}, says: []string{
			"ATTENTION: the data of the only etcd member of registries/fleet is gone, and no other member has it. etcd continues only with a backup that a person approves.\n",
			"Gone: fleet-etcd-0: its data is lost or damaged.", "Recommended: backup eleven, which loses the least of what is known",
			`{"from":"Backup","name":"eleven","acceptDataLossUpTo":20,"approvedFor":"c-1"}`, "do that instead: nothing is lost then."}, never: []string{"majority", "can't be named", "Copy: member"}},
		{reason: "there is none", registry: fleet(single), says: []string{"there is no copy with which the operator could continue"}, never: []string{"Copy:"}},
		{reason: "the member is named", registry: fleet(single, approve("Member", "fleet-etcd-0", 100, "c-1")), says: []string{"set spec.recovery.name to a member whose data is left (there is none), or recover with a backup"}},
		{reason: "another member is named", registry: fleet(single, approve("Member", "fleet-etcd-1", 100, "c-1")), says: []string{"etcd has no such member: set it to a member whose data is left (there is none), or recover with a backup"}},
	} {
		test.code = 4
		test.check(t)
	}
}

// TestCorruptCopy recommends no data that may be wrong by etcd's alarm.
func TestCorruptCopy(t *testing.T) {
	test{reason: "an alarm", registry: fleet(newest("eleven", 80), func(r *r) { r.Status.Recovery.Members[0].Corrupt = true }), code: 4,
		objects: []runtime.Object{saved("eleven", 80, time.Hour), nodeThat("node-1", corev1.ConditionUnknown)},
		says:    []string{"Recommended: backup eleven", "Refused: etcd's alarm CORRUPT names fleet-etcd-0"}, never: []string{`"name":"fleet-etcd-0"`}}.check(t)
}

// TestUnderWay shows how far a recovery is.
func TestUnderWay(t *testing.T) {
	approved := approve("Member", "fleet-etcd-0", 10, "c-1")
	for _, test := range []test{
		{reason: "it stops", registry: fleet(approved, in(v1alpha1.RecoveryStopping, "pod fleet-server-0 terminates next")),
			objects: []runtime.Object{pod("fleet-server-0", "server", "node-1", terminating(-time.Minute)), pod("fleet-server-1", "server", "node-1", terminating(time.Minute)), pod("fleet-server-2", "server", "", terminating(-time.Minute)), pod("fleet-etcd-0", "etcd", "node-1", ready), pod("fleet-etcd-1", "etcd", "node-2", terminating(time.Hour)), nodeThat("node-1", corev1.ConditionTrue), nodeThat("node-2", corev1.ConditionUnknown)},
			says: []string{"ATTENTION: the etcd of registries/fleet is being recovered from a lost quorum, with member fleet-etcd-0, as spec.recovery says: all servers and etcd members are stopped first (Stopping).",
				"The operator: pod fleet-server-0 terminates next.", "Waits for: pod fleet-server-0 on node node-1, which is terminating.", "Waits for: pod fleet-server-1 on node node-1, which was to have terminated 60 s ago.", "Waits for: pod fleet-server-2, which is terminating.",
				"Waits for: pod fleet-etcd-0 on node node-1.", "Waits for: pod fleet-etcd-1 does not terminate: node node-2, on which it is, may be gone", "another copy can be approved", "Copy: member fleet-etcd-0, up to revision 90"},
			never: []string{"Recommended", "(recommended)", "spec.recovery does nothing", "In the way"}},
		{reason: "it restores, and is paused", registry: fleet(approved, in(v1alpha1.RecoveryRestoring, "etcd begins with the data of member fleet-etcd-0"), func(r *r) { r.Spec.Paused = true }),
			says: []string{"a new etcd with one member begins with that data (Restoring)", "In the way: spec.paused is true"}, never: []string{"Waits for"}},
		{reason: "the approval was removed", registry: fleet(in(v1alpha1.RecoveryRestoring, "")), says: []string{"with the copy that was approved: a new etcd"}, never: []string{"The operator:"}},
		{reason: "of a registry that was deleted since", registry: fleet(in(v1alpha1.RecoveryStopping, "m"), func(r *r) { r.Status.Recovery.Members, r.Status.Recovery.LastRevision = nil, 0 }), says: []string{"is being recovered"}, never: []string{"Copy:", "Newest revision"}},
		{reason: "a phase of a newer operator", registry: fleet(in("Growing", "m")), says: []string{"is being recovered from a lost quorum, with the copy that was approved (Growing)."}},
	} {
		test.code = 4
		test.check(t)
	}
}

// TestNotLost says that no recovery is needed, or why none is possible.
func TestNotLost(t *testing.T) {
	well := func(r *r) {
		r.Status.Recovery, r.Status.Conditions = nil, []metav1.Condition{{Type: v1alpha1.ConditionEtcdReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}}
	}
	ill := func(reason, message string) func(*r) {
		return func(r *r) {
			r.Status.Recovery = nil
			condition(reason, message)(r)
		}
	}
	was := func(r *r) {
		r.Status.Recovered = &v1alpha1.RecoveredStatus{ID: "c-0", From: "Backup", Name: "nightly", LostTime: *at(49 * time.Hour), LastRevision: 60, Revision: 50, CompletionTime: *at(48 * time.Hour)}
	}
	for _, test := range []test{
		{reason: "all is well", registry: fleet(well), says: []string{"OK: the etcd of registries/fleet has not lost its quorum: no recovery is needed.\nNothing was changed.\n"}},
		{reason: "it was recovered", registry: fleet(well, was, approve("Backup", "nightly", 10, "c-0")), says: []string{"Note: spec.recovery is approved for the loss c-0, and does nothing for another one: it may stay.",
			"Recovered before: loss c-0, noticed at 2026-11-21T11:00:00Z, with backup nightly, which ended with revision 50; the newest that was known is 60; complete at 2026-11-21T12:00:00Z, 2 days ago."}},
		{reason: "it was recovered, and lost again", registry: fleet(was), code: 4, says: []string{"has lost its quorum", "Recovered before: loss c-0", "Note: backups from before the last recovery, and the volumes that it has abandoned, can't be named"}},
		{reason: "members are down", registry: fleet(ill(v1alpha1.ReasonMembersNotReady, "1/3 are ready")), code: 4, says: []string{"does not find that the etcd of registries/fleet has lost its quorum for good", "EtcdReady is False: MembersNotReady: 1/3 are ready."}},
		{reason: "nothing is reported", registry: fleet(func(r *r) { r.Status.Recovery, r.Status.Conditions = nil, nil }), code: 4, says: []string{"the operator has not reported of etcd."}},
		{reason: "a single member", registry: fleet(ill(v1alpha1.ReasonDataLost, "empty"), func(r *r) { r.Spec.Etcd.Replicas = 1 }), code: 4, says: []string{"kubectl registry restore plan --registry fleet --latest -n registries"}},
		{reason: "an external etcd", registry: fleet(well, func(r *r) { r.Spec.Etcd.External = &v1alpha1.ExternalEtcd{} }), code: 3, says: []string{"the etcd of registries/fleet is external"}},
		{reason: "an external etcd that went back", registry: fleet(condition(v1alpha1.ReasonWentBack, "etcd went back"), func(r *r) {
			r.Spec.Etcd.External, r.Spec.Backup = &v1alpha1.ExternalEtcd{}, nil
			r.Status.Backup, r.Status.Recovery.Members = nil, []v1alpha1.RecoveryMember{{Name: "a:2379", Revision: 60, RevisionsLost: 40, Message: "it serves clients"}}
		}), code: 4, says: []string{"the etcd of registries/fleet went back: it was at revision 100", `"name":"a:2379","acceptDataLossUpTo":40,"approvedFor":"c-1"`, "Note: etcd is external, and the operator recovers nothing of it"}, never: []string{"volumes", "Not known here"}},
	} {
		test.check(t)
	}
}

// TestOutput expects for programs what people are told.
func TestOutput(t *testing.T) {
	text, code := run(t, host(t, fleet(newest("eleven", 80)), saved("eleven", 80, time.Hour)), "fleet", "-o", "json")
	var got Plan
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&got); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	var names []string
	for _, c := range got.Copies {
		names = append(names, c.Name)
	}
	if want := []string{"fleet-etcd-0", "eleven", "fleet-etcd-1"}; code != 4 || !got.Attention || got.Loss.LastRevision != 100 || len(got.Gone) != 3 || !slices.Equal(names, want) || !got.Copies[0].Recommended || *got.Copies[0].RevisionsLost != 10 || got.Copies[2].RevisionsLost != nil {
		t.Errorf("it exits with %d: %+v", code, got)
	}
	if text, code := run(t, host(t, fleet()), "fleet", "-o", "table"); code != 2 {
		t.Errorf("it exits with %d: %s", code, text)
	}
	if text, code := run(t, host(t, fleet()), "west"); code != 2 {
		t.Errorf("it exits with %d: %s", code, text)
	}
}

// TestForbidden says what could not be seen, and plans all the same.
func TestForbidden(t *testing.T) {
	env := host(t, fleet(known(0), newest("eleven", 80)), saved("ten", 60, 2*time.Hour), pod("fleet-etcd-0", "etcd", "node-1"))
	for resource, verb := range map[string]string{"clusterregistrybackups": "list", "nodes": "get"} {
		env.Objects.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
		})
	}
	text, code := run(t, env, "fleet")
	for _, want := range []string{"Copy: backup eleven, up to revision 80", `"name":"eleven","acceptDataLossUpTo":20`, "Not known here: which other backups there are, and whether they fit: list the ClusterRegistryBackups: ", "Not known here: whether node node-1 answers: ", "Recommended: member fleet-etcd-0, which runs"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if code != 4 || strings.Contains(text, "there is no ClusterRegistryBackup") {
		t.Errorf("it exits with %d:\n%s", code, text)
	}
	env = host(t, fleet())
	env.Objects.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	})
	if text, _ := run(t, env, "fleet"); !strings.Contains(text, "Not known here: whether a pod is in the way: list the pods: ") {
		t.Errorf("it says:\n%s", text)
	}
}
