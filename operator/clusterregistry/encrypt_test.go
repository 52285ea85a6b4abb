package clusterregistry

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/stage/backups"
	"github.com/clusterregistry/operator/operator/verdict"
)

// aKey returns a key, alone.
func aKey(t *testing.T, name string) encryption.Keys {
	t.Helper()
	keys, err := encryption.Parse([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [clusters.clusterregistry.k8s.io]\n  providers:\n  - secretbox: {keys: [{name: " + name + ", secret: c2VjcmV0IGlzIHNlY3VyZSBhbmQgaXMgMzIgYnl0ZXM=}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// encrypting returns the scope of a complete registry that is ready, with keys.
func encrypting(t *testing.T, inUse, desired encryption.Keys) *scope {
	t.Helper()
	s := ready(t, "Aggregated")
	s.Identity = identity.New(s.Objects)
	s.Identity.Record = &etcd.Record{InitialClusterState: "existing", Replicas: 1, Names: []string{"fleet-etcd-0"}}
	if inUse != nil {
		s.Identity.Record = keyring.Record(*s.Identity.Record, inUse)
	}
	s.Keys = keyring.Found{InUse: inUse, Desired: desired}
	return s
}

// TestKeysBegin is about when a change of keys begins, and what is said where it does not.
func TestKeysBegin(t *testing.T) {
	plain, a, b := encryption.Keys{encryption.Identity}, aKey(t, "a"), aKey(t, "b")
	both := slices.Concat(b, a)
	nothing := func(*scope) {}
	for _, test := range []struct {
		reason         string
		inUse, desired encryption.Keys
		change         func(*scope)
		begins, says   string
	}{
		{"nothing is asked for", plain, plain, nothing, "", ""},
		{"switched on", plain, a, nothing, "identity to secretbox/a", ""},
		{"another key", a, both, nothing, "secretbox/a to secretbox/b", ""},
		{"switched off", a, plain, nothing, "secretbox/a to identity", ""},
		{"stored, as is known", a, a, func(s *scope) { s.Identity.Record.StoredUnder = "secretbox/a" }, "", ""},
		{"stored, or not: a change was interrupted", a, a, nothing, "secretbox/a to secretbox/a", ""},
		{"it is not known what is desired", a, nil, nothing, "", ""},
		{"it is not known what is in use", nil, a, nothing, "", ""},
		{"it is paused", plain, a, func(s *scope) { s.Freeze("spec.paused is false") }, "", "the keys to encrypt with are changed when spec.paused is false"},
		{"servers are being replaced", plain, a, func(s *scope) { s.Servers.Rolling = "servers: 1 of 2 updated" }, "", "when this is resolved: servers: 1 of 2 updated"},
		{"etcd is not ready", plain, a, func(s *scope) {
			s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting("MembersNotReady", "2 of 3").DegradedIf(true))
		}, "", "when this is resolved: EtcdReady: 2 of 3"},
	} {
		s := encrypting(t, test.inUse, test.desired)
		test.change(s)
		v := s.driver().Step(t.Context(), reading(t, s).keysOperation(s))
		s.noteKeys()
		begins := ""
		if o := s.Registry.Status.Operation; o != nil {
			begins = o.From + " to " + o.To
		}
		if begins != test.begins || (begins != "") == v.Complete() {
			t.Errorf("%s: begins %q, %+v", test.reason, begins, v)
		}
		if noted := s.verdicts[operatorv1alpha1.ConditionServerReady]; !strings.Contains(noted.Message, test.says) || (test.says != "") != (noted.Reason == operatorv1alpha1.ReasonEncryptionPending) {
			t.Errorf("%s: noted is %+v", test.reason, noted)
		}
	}
}

// TestKeysOfBackups keeps the keys of backups, and all where these can't be read.
func TestKeysOfBackups(t *testing.T) {
	inUse := slices.Concat(aKey(t, "b"), aKey(t, "a"), aKey(t, "c"))
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
		s := encrypting(t, inUse, aKey(t, "b"))
		s.Identity.Record.Lineage = test.lineage
		s.backups = backups.Found{All: []*operatorv1alpha1.ClusterRegistryBackup{taken}, Unread: test.unread}
		if got := s.keyState().Former().IDs(); !slices.Equal(got, test.want) {
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
			v := s.driver().Step(t.Context(), reading(t, s).keysOperation(s))
			if o := s.Registry.Status.Operation; o == nil || o.Phase != phase || v.Complete() || !strings.Contains(v.Message, "Secret fleet-encryption-x does not exist") {
				t.Errorf("%s, recorded %t: %+v, %+v", phase, recorded, o, v)
			}
		}
	}
}

// TestWithoutKeys is about servers that have other keys than those in use: also one that is
// terminating still writes.
func TestWithoutKeys(t *testing.T) {
	a := aKey(t, "a")
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
		{"there is none", a, nil, "there are no servers"},
	} {
		s := encrypting(t, test.inUse, nil)
		reading(t, s, test.pods...)
		if got, err := s.withoutKeys(t.Context()); got != test.says || err != nil {
			t.Errorf("%s: %q, %v", test.reason, got, err)
		}
	}
	s := encrypting(t, a, nil)
	reading(t, s, pod("x", a.Digest()))
	s.record(operatorv1alpha1.ConditionServerReady, verdict.Waiting("ReplicasNotReady", "1 of 2"))
	if got, err := s.withoutKeys(t.Context()); got != "ServerReady: 1 of 2" || err != nil {
		t.Errorf("while servers are not ready: %q, %v", got, err)
	}
}

// TestKeysStay deletes no Secret with keys, mounted or not, that what is stored may need: it is
// recorded which are in use, and that everything is stored under the one that writes.
func TestKeysStay(t *testing.T) {
	a := aKey(t, "a")
	stored := func(s *scope) { s.Identity.Record.StoredUnder = "secretbox/a" }
	for reason, test := range map[string]struct {
		inUse  encryption.Keys
		change func(*scope)
		stay   bool
	}{
		"they are not known":                       {nil, stored, true},
		"all is stored under the one in use":       {a, stored, false},
		"something may be under another one":       {a, func(s *scope) { s.Identity.Record.StoredUnder = "unknown" }, true},
		"it is not known under which":              {a, func(*scope) {}, true},
		"there is no record":                       {a, func(s *scope) { s.Identity.Record = nil }, true},
		"the record has no keys":                   {encryption.Keys{encryption.Identity}, func(s *scope) { s.Identity.Record.KeyIDs = nil }, true},
		"the record is to be written again":        {a, func(s *scope) { stored(s); s.Keys.Unrecorded = true }, true},
		"nothing is encrypted any more":            {encryption.Keys{encryption.Identity}, func(*scope) {}, false},
		"the record names it as that of those use": {a, func(s *scope) { stored(s); s.Identity.Record.Keys = "0123456789abcdef" }, true},
	} {
		s := encrypting(t, test.inUse, nil)
		test.change(s)
		s.Rendered = &render.Result{}
		former := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-encryption-0123456789abcdef"}
		s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{former}
		reading(t, s)
		keep, err := s.mounted(t.Context())
		if err != nil || slices.Contains(keep, former) != test.stay {
			t.Errorf("%s: %v are kept, %v", reason, keep, err)
		}
	}
}

// TestKeysAreRetained keeps the operator's copy of the keys with the data, and no longer.
func TestKeysAreRetained(t *testing.T) {
	for policy, retained := range map[string]bool{"Retain": true, "Delete": false} {
		s := look(t, "{spec: {mode: Independent, deletionPolicy: "+policy+", etcd: {replicas: 1}}}")
		copied := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-encryption-0123456789abcdef"}
		s.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{copied}
		if _, rest := s.toDelete(nil); slices.Contains(rest, copied) == retained {
			t.Errorf("with the policy %s, the keys are deleted: %t", policy, !retained)
		}
	}
}
