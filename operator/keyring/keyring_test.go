package keyring

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// parsed returns keys of secretbox with the given names, or Identity.
func parsed(t *testing.T, names ...string) encryption.Keys {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [clusters.clusterregistry.k8s.io]\n  providers:\n"
	for _, name := range names {
		if name == "identity" {
			text += "  - identity: {}\n"
			continue
		}
		text += fmt.Sprintf("  - secretbox: {keys: [{name: %s, secret: %s}]}\n", name, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32)))
	}
	keys, err := encryption.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func secret(name, key string, content []byte) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Data: map[string][]byte{key: content}}
}

// copied is the operator's own Secret with keys.
func copied(keys encryption.Keys) client.Object {
	return secret("fleet-encryption-"+keys.Digest(), configuration, keys.Configuration())
}

// TestRead is about the keys that servers get, by what there is of the Secrets and the record:
// keys in use are not lost, and where it is not known which these are, no server is changed.
func TestRead(t *testing.T) {
	const on, off = `{spec: {mode: Aggregated, etcd: {replicas: 1}, server: {encryption: {secretRef: {name: keys}}}}%s}`, `{spec: {mode: Aggregated, etcd: {replicas: 1}}%s}`
	both, one, first := parsed(t, "a", "b"), parsed(t, "b"), parsed(t, "a")
	otherwise := append([]byte("\n"), both.Configuration()...)
	var many encryption.Keys
	for i := range 3 {
		var names []string
		for j := range 15 {
			names = append(names, fmt.Sprintf("k%d-%d", i, j))
		}
		many = append(many, parsed(t, names...)...)
	}
	recorded := Record(etcd.Record{}, both)
	users := func(keys encryption.Keys) client.Object {
		return secret("keys", "encryption.yaml", keys.Configuration())
	}
	for _, test := range []struct {
		reason         string
		spec, status   string
		record         *etcd.Record
		objects        []client.Object
		inUse, desired []string
		state          verdict.State
		says           string
	}{
		{"nothing is encrypted", off, "", &etcd.Record{}, nil, []string{"identity"}, []string{"identity"}, verdict.Done, ""},
		{"to be switched on", on, "", &etcd.Record{}, []client.Object{users(both)}, []string{"identity"}, both.IDs(), verdict.Done, ""},
		{"in use, and another is desired", on, "", recorded, []client.Object{users(one), copied(both)}, both.IDs(), one.IDs(), verdict.Done, ""},
		{"to be switched off", off, "", recorded, []client.Object{copied(both)}, both.IDs(), []string{"identity"}, verdict.Done, ""},
		{"the user's Secret was deleted", on, "", recorded, []client.Object{copied(both)}, both.IDs(), nil, verdict.Degraded, "Secret keys with the keys to encrypt with (spec.server.encryption.secretRef) does not exist; until then, the servers keep the keys that they have: secretbox/a, secretbox/b, which what is stored may need"},
		{"it does not exist yet", on, "", &etcd.Record{}, nil, []string{"identity"}, nil, verdict.Degraded, "does not exist; until then, the servers keep the keys that they have"},
		{"it was emptied", on, "", recorded, []client.Object{secret("keys", "encryption.yaml", []byte{}), copied(both)}, both.IDs(), nil, verdict.Degraded, "it is empty"},
		{"it has another key", on, "", recorded, []client.Object{secret("keys", "other", nil), copied(both)}, both.IDs(), nil, verdict.Degraded, "has no key encryption.yaml"},
		{"the copy was deleted, and the user has the keys", on, "", recorded, []client.Object{users(both)}, both.IDs(), both.IDs(), verdict.Done, ""},
		{"the copy was deleted, and the user has one of the keys", on, "", recorded, []client.Object{users(one)}, nil, one.IDs(), verdict.Blocked, "is gone, and no server is made or changed"},
		{"the copy is damaged", off, "", recorded, []client.Object{secret("fleet-encryption-"+both.Digest(), configuration, one.Configuration())}, nil, []string{"identity"}, verdict.Blocked, "(secretbox/a, secretbox/b) is damaged"},
		{"the record was deleted", on, `, status: {encryption: {writes: secretbox/a, reads: [secretbox/a, secretbox/b]}, inventory: [{kind: Secret, namespace: team, name: fleet-encryption-` + both.Digest() + `}]}`, nil, []client.Object{users(both), copied(both)}, both.IDs(), both.IDs(), verdict.Done, ""},
		{"the record was deleted, and made again without keys", off, `, status: {encryption: {writes: secretbox/a, reads: [secretbox/a, secretbox/b]}, inventory: [{kind: Secret, namespace: team, name: fleet-encryption-` + both.Digest() + `}]}`, &etcd.Record{}, []client.Object{copied(both)}, both.IDs(), []string{"identity"}, verdict.Done, ""},
		{"the record was deleted, and so was the copy", off, `, status: {encryption: {writes: secretbox/a, reads: [secretbox/a, secretbox/b]}}`, &etcd.Record{}, nil, nil, []string{"identity"}, verdict.Blocked, "the record of the keys in use (secretbox/a, secretbox/b) is gone"},
		{"an old record, from before anything was encrypted", on, `, status: {encryption: {writes: secretbox/a, reads: [secretbox/a]}}`, Record(etcd.Record{}, none), []client.Object{users(both), copied(both)}, nil, both.IDs(), verdict.Blocked, "the record of the keys in use, says identity, and what is stored may be under secretbox/a"},
		{"an old record, and the copy of its keys is still there", on, `, status: {encryption: {writes: secretbox/b, reads: [secretbox/b]}}`, Record(etcd.Record{}, first), []client.Object{users(one), copied(first), copied(one)}, nil, one.IDs(), verdict.Blocked, "says secretbox/a, and what is stored may be under secretbox/b"},
		{"an old record, and the user still has its keys", on, `, status: {encryption: {writes: secretbox/b, reads: [secretbox/b]}}`, Record(etcd.Record{}, first), []client.Object{users(both)}, nil, both.IDs(), verdict.Blocked, "says secretbox/a, and what is stored may be under secretbox/b"},
		{"a newer record than the status: a key was added", on, `, status: {encryption: {writes: secretbox/a, reads: [secretbox/a]}}`, recorded, []client.Object{users(both), copied(both)}, both.IDs(), both.IDs(), verdict.Done, ""},
		{"the digest was edited away", off, "", &etcd.Record{KeyIDs: both.IDs()}, []client.Object{copied(both)}, nil, []string{"identity"}, verdict.Blocked, "ConfigMap fleet-etcd-identity, the record of the keys in use, names secretbox/a, secretbox/b and has no digest of them"},
		{"the names were edited away", off, "", &etcd.Record{Keys: both.Digest()}, []client.Object{copied(both)}, both.IDs(), []string{"identity"}, verdict.Done, ""},
		{"the copy was written by a version that encodes keys otherwise", off, "", &etcd.Record{Keys: encryption.Digest(otherwise), KeyIDs: both.IDs()}, []client.Object{secret("fleet-encryption-"+encryption.Digest(otherwise), configuration, otherwise)}, both.IDs(), []string{"identity"}, verdict.Done, ""},
		{"more keys than a person may give", off, "", Record(etcd.Record{}, many), []client.Object{copied(many)}, many.IDs(), []string{"identity"}, verdict.Done, ""},
		{"switched off just now", off, `, status: {encryption: {writes: identity, reads: [identity, secretbox/a]}}`, Record(etcd.Record{}, none), nil, []string{"identity"}, []string{"identity"}, verdict.Done, ""},
	} {
		o := operandtest.New(t, fmt.Sprintf(test.spec, test.status), test.objects...)
		found := Read(t.Context(), o, test.record)
		if !slices.Equal(found.InUse.IDs(), test.inUse) || !slices.Equal(found.Desired.IDs(), test.desired) || found.Held.State != test.state || !strings.Contains(found.Held.Message, test.says) {
			t.Errorf("%s: in use %v, desired %v, %+v", test.reason, found.InUse, found.Desired, found.Held)
		}
		if !found.Held.Complete() && (found.Held.Reason != operatorv1alpha1.ReasonEncryptionInvalid || found.Held.Err != nil) {
			t.Errorf("%s: %+v", test.reason, found.Held)
		}
		if rendered := found.Render(); test.record != nil && test.record.Keys != "" && found.InUse != nil && rendered.Digest != test.record.Keys {
			t.Errorf("%s: the servers are given %s, and %s is recorded", test.reason, rendered.Digest, test.record.Keys)
		}
		if found.Unrecorded != strings.Contains(test.reason, "record was deleted") {
			t.Errorf("%s: unrecorded is %t", test.reason, found.Unrecorded)
		}
	}
}

// TestRecord writes what is in use into the ConfigMap with etcd's identity, and reads it from
// there, also that nothing is.
func TestRecord(t *testing.T) {
	for _, keys := range []encryption.Keys{parsed(t, "a", "identity", "b"), none} {
		record := Record(etcd.Record{InitialClusterState: "existing", Replicas: 1, Names: []string{"fleet-etcd-0"}, Keys: "former", KeyIDs: []string{"former"}}, keys)
		data := record.Data(nil)
		read, err := etcd.ParseRecord(data)
		if err != nil || read.Keys != record.Keys || !slices.Equal(read.KeyIDs, keys.IDs()) {
			t.Errorf("%v is read as %+v, %v", keys, read, err)
		}
		if (read.Keys == "") != keys.Equal(none) {
			t.Errorf("%v has the digest %q", keys, read.Keys)
		}
	}
}
