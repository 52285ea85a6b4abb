package keychange

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/encryption/encryptiontest"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// known is what is known of a registry, with its backups.
type known struct {
	*passtest.Known
	backups []*operatorv1alpha1.ClusterRegistryBackup
	unread  bool
	walks   Walks
}

// drive returns what is done about the keys, by what is known now.
func (s *known) drive() Drive {
	return Drive{Pass: s.Pass, Backups: s.backups, Unread: s.unread, Walks: &s.walks}
}

// step has the loop of operations come to the change of keys.
func (s *known) step(t *testing.T) verdict.Verdict {
	t.Helper()
	return operation.Run{Pass: s.Pass}.Step(t.Context(), s.drive().Operation())
}

// encrypting returns a complete registry that is ready, with keys, in a host cluster with the
// given objects.
func encrypting(t *testing.T, inUse, desired encryption.Keys, objects ...client.Object) *known {
	t.Helper()
	s := &known{Known: passtest.New(t, "{spec: {version: v0.1.0, mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.1.0"+operandtest.Complete+"}}", objects...)}
	s.Ready()
	s.Identity.Record = &etcd.Record{InitialClusterState: "existing", Replicas: 1, Names: []string{"fleet-etcd-0"}}
	if inUse != nil {
		s.Identity.Record = keyring.Record(*s.Identity.Record, inUse)
	}
	s.Keys = keyring.Found{InUse: inUse, Desired: desired}
	return s
}

// TestKeysBegin is about when a change of keys begins, and what is said where it does not.
func TestKeysBegin(t *testing.T) {
	plain, a, b := encryption.Keys{encryption.Identity}, encryptiontest.Key(t, "a"), encryptiontest.Key(t, "b")
	both := slices.Concat(b, a)
	nothing := func(*known) {}
	for _, test := range []struct {
		reason         string
		inUse, desired encryption.Keys
		change         func(*known)
		begins, says   string
	}{
		{"nothing is asked for", plain, plain, nothing, "", ""},
		{"switched on", plain, a, nothing, "identity to secretbox/a", ""},
		{"another key", a, both, nothing, "secretbox/a to secretbox/b", ""},
		{"switched off", a, plain, nothing, "secretbox/a to identity", ""},
		{"stored, as is known", a, a, func(s *known) { s.Identity.Record.StoredUnder = "secretbox/a" }, "", ""},
		{"stored, or not: a change was interrupted", a, a, nothing, "secretbox/a to secretbox/a", ""},
		{"it is not known what is desired", a, nil, nothing, "", ""},
		{"it is not known what is in use", nil, a, nothing, "", ""},
		{"it is paused", plain, a, func(s *known) { s.Freeze("spec.paused is false") }, "", "the keys to encrypt with are changed when spec.paused is false"},
		{"servers are being replaced", plain, a, func(s *known) { s.Servers.Rolling = "servers: 1 of 2 updated" }, "", "when this is resolved: servers: 1 of 2 updated"},
		{"etcd is not ready", plain, a, func(s *known) {
			s.Verdicts[operatorv1alpha1.ConditionEtcdReady] = verdict.Waiting("MembersNotReady", "2 of 3").DegradedIf(true)
		}, "", "when this is resolved: EtcdReady: 2 of 3"},
	} {
		s := encrypting(t, test.inUse, test.desired)
		test.change(s)
		v := s.step(t)
		notes := s.drive().Notes()
		begins := ""
		if o := s.Registry.Status.Operation; o != nil {
			begins = o.From + " to " + o.To
		}
		if begins != test.begins || (begins != "") == v.Complete() {
			t.Errorf("%s: begins %q, %+v", test.reason, begins, v)
		}
		if noted := test.says != ""; noted != (len(notes) == 1) || noted && (notes[0].Condition != operatorv1alpha1.ConditionServerReady || notes[0].Reason != operatorv1alpha1.ReasonEncryptionPending || !strings.Contains(notes[0].Message, test.says)) {
			t.Errorf("%s: noted is %+v", test.reason, notes)
		}
	}
}

// TestKeysOfBackups keeps the keys of backups, and all where these can't be read.
func TestKeysOfBackups(t *testing.T) {
	inUse := slices.Concat(encryptiontest.Key(t, "b"), encryptiontest.Key(t, "a"), encryptiontest.Key(t, "c"))
	taken := &operatorv1alpha1.ClusterRegistryBackup{Status: operatorv1alpha1.ClusterRegistryBackupStatus{Phase: operatorv1alpha1.BackupCompleted, Lineage: "l", Location: "s3://b", EncryptionKeys: []string{"secretbox/a"}}}
	for reason, test := range map[string]struct {
		lineage string
		unread  bool
		want    []string
	}{
		"one is of a backup":                {"l", false, []string{"secretbox/c"}},
		"the backup is of other data":       {"m", false, []string{"secretbox/a", "secretbox/c"}},
		"no backup was ever taken":          {"", true, []string{"secretbox/a", "secretbox/c"}},
		"it is not known what backups need": {"l", true, nil},
	} {
		s := encrypting(t, inUse, encryptiontest.Key(t, "b"))
		s.Identity.Record.Lineage = test.lineage
		s.backups, s.unread = []*operatorv1alpha1.ClusterRegistryBackup{taken}, test.unread
		if got := s.drive().state().Former().IDs(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v may be removed, want %v", reason, got, test.want)
		}
	}
	s := encrypting(t, nil, nil)
	s.Registry.Status.Encryption = &operatorv1alpha1.EncryptionStatus{Writes: "secretbox/a", Reads: []string{"secretbox/a", "identity"}}
	if got := s.KeyIDs(); !slices.Equal(got, []string{"secretbox/a", "identity"}) {
		t.Errorf("while the keys in use are not known, a backup is noted to need %v", got)
	}
}

// TestKeysUnknown takes no change of keys further while it is not known which keys the servers
// have, in whatever phase it is, and ends none.
func TestKeysUnknown(t *testing.T) {
	for _, phase := range []operatorv1alpha1.OperationPhase{operatorv1alpha1.PhaseKeyAddition, operatorv1alpha1.PhaseKeyActivation, operatorv1alpha1.PhaseStorageMigration, operatorv1alpha1.PhaseKeyRemoval} {
		for _, recorded := range []bool{true, false} {
			s := encrypting(t, nil, nil)
			if !recorded {
				s.Identity.Record = nil
			}
			s.Keys.Held = verdict.Waiting("EncryptionInvalid", "Secret fleet-encryption-x does not exist")
			s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationEncryption, Phase: phase, From: "identity", To: "secretbox/a"}
			v := s.step(t)
			if o := s.Registry.Status.Operation; o == nil || o.Phase != phase || v.Complete() || !strings.Contains(v.Message, "Secret fleet-encryption-x does not exist") {
				t.Errorf("%s, recorded %t: %+v, %+v", phase, recorded, o, v)
			}
		}
	}
}

// TestWithoutKeys is about servers that have other keys than those in use: also one that is
// terminating still writes.
func TestWithoutKeys(t *testing.T) {
	a := encryptiontest.Key(t, "a")
	pod := func(name, digest string, change ...func(*corev1.Pod)) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: operand.ComponentServer}}}
		if digest != "" {
			p.Annotations = map[string]string{operatorv1alpha1.AnnotationEncryption: digest}
		}
		for _, modify := range change {
			modify(p)
		}
		return p
	}
	terminating := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"kubelet/here"}
	}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	last := []client.Object{pod("y", "b")}
	for i := range pages.Size {
		last = append(last, pod(fmt.Sprintf("x-%d", i), a.Digest()))
	}
	for _, test := range []struct {
		reason string
		inUse  encryption.Keys
		pods   []client.Object
		says   string
	}{
		{"all have them", a, []client.Object{pod("x", a.Digest()), pod("y", a.Digest())}, ""},
		{"all have none", encryption.Keys{encryption.Identity}, []client.Object{pod("x", "")}, ""},
		{"one has none", a, []client.Object{pod("x", a.Digest()), pod("y", "")}, "pod y still has the keys of before"},
		{"one that ends has others", a, []client.Object{pod("x", a.Digest()), pod("y", "b", terminating)}, "pod y still has the keys of before"},
		{"one that has ended had others", a, []client.Object{pod("x", a.Digest()), pod("y", "b", ended)}, ""},
		{"the last of many has others", a, last, "pod y still has the keys of before"},
		{"there is none", a, nil, "there are no servers"},
	} {
		s := encrypting(t, test.inUse, nil, test.pods...)
		if got, err := s.drive().withoutKeys(t.Context()); got != test.says || err != nil {
			t.Errorf("%s: %q, %v", test.reason, got, err)
		}
	}
	s := encrypting(t, a, nil, pod("x", a.Digest()))
	s.Verdicts[operatorv1alpha1.ConditionServerReady] = verdict.Waiting("ReplicasNotReady", "1 of 2")
	if got, err := s.drive().withoutKeys(t.Context()); got != "ServerReady: 1 of 2" || err != nil {
		t.Errorf("while servers are not ready: %q, %v", got, err)
	}
}
