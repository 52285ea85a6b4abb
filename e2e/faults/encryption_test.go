package faults

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/encryption"
)

// TestMatrixEncryption has a registry with clusters in it encrypt them, exchanges the key while
// the operator is killed and the Secret with the keys is deleted, deletes the copy that the
// servers have, and has everything stored in clear again, while clients write. No request fails,
// each cluster stays what it was, and etcd never holds anything under another key than the one
// in the status once a change is complete.
func TestMatrixEncryption(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := independent(e, 1)
	registry.Spec.Server.Replicas = 2
	e.Install(registry)
	e.WaitReady(registry)
	before := populate(t, e, registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	under(t, e, registry, "identity")

	load.Mark("encrypted")
	secret := func(name, letter string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "keys"}, StringData: map[string]string{"encryption.yaml": configuration(name, letter)}}
	}
	keys := secret("first", "a")
	e.Create(keys)
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Server.Encryption = &operatorv1alpha1.Encryption{SecretRef: operatorv1alpha1.EncryptionSecretSelector{Name: "keys"}}
	})
	changed(e, registry, "secretbox/first")
	under(t, e, registry, "secretbox/first")
	same(t, e, registry, before)

	load.Mark("another key")
	e.Update(keys, func() { keys.Data, keys.StringData = nil, secret("second", "b").StringData })
	for _, phase := range []operatorv1alpha1.OperationPhase{operatorv1alpha1.PhaseKeyAddition, operatorv1alpha1.PhaseKeyActivation} {
		reached(e, registry, phase)
		if err := e.KillOperator(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Client.Delete(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	e.WaitCondition(registry, operatorv1alpha1.ConditionServerReady, metav1.ConditionFalse, operatorv1alpha1.ReasonEncryptionInvalid, "Secret keys with the keys to encrypt with", "the servers keep the keys that they have", "secretbox/second")
	same(t, e, registry, before)
	keys = secret("second", "b")
	e.Create(keys)
	changed(e, registry, "secretbox/second")
	under(t, e, registry, "secretbox/second")
	same(t, e, registry, before)

	load.Mark("the copy is deleted")
	var copies []corev1.Secret
	e.Eventually("there to be one copy of the keys", func(context.Context) error {
		if copies = copied(t, e, registry); len(copies) != 1 {
			return fmt.Errorf("there are %d", len(copies))
		}
		return nil
	})
	for i := range copies {
		if err := e.Client.Delete(t.Context(), &copies[i]); err != nil {
			t.Fatal(err)
		}
		e.Eventually("Secret "+copies[i].Name+" to be made again", func(ctx context.Context) error {
			again := &corev1.Secret{}
			if err := e.Get(ctx, copies[i].Name, again); err != nil {
				return err
			}
			if again.UID == copies[i].UID || !reflect.DeepEqual(again.Data, copies[i].Data) {
				return errors.New("it is not the same")
			}
			return nil
		})
	}

	load.Mark("in clear")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Server.Encryption = nil })
	changed(e, registry, "")
	under(t, e, registry, "identity")
	same(t, e, registry, before)
	e.Eventually("the copies of the keys to go", func(context.Context) error {
		if left := copied(t, e, registry); len(left) > 0 {
			return fmt.Errorf("there is %s", left[0].Name)
		}
		return nil
	})
	load.Settle(t)
	report := load.Stop()
	t.Logf("clusters were encrypted, under two keys, and in clear again: %s", report)
	e.Unharmed(registry, report)
}

// configuration returns an EncryptionConfiguration with one key of 32 letters.
func configuration(name, letter string) string {
	return fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [%s]\n  providers:\n  - secretbox: {keys: [{name: %s, secret: %s}]}\n",
		encryption.Resource, name, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32))))
}

// populate creates clusters, and returns them.
func populate(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) []clustersv1alpha1.Cluster {
	t.Helper()
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		cluster := &clustersv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kept-%d", i), Labels: map[string]string{"kept": "yes"}, Annotations: map[string]string{"note": strings.Repeat("plain", 20)}}}
		cluster.Spec.KubernetesAPIEndpoints.ServerEndpoints = []clustersv1alpha1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: fmt.Sprintf("https://kept-%d.example:6443", i)}}
		if _, err := clients.ClusterregistryV1alpha1().Clusters().Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return kept(t, e, registry)
}

// kept returns the clusters of populate, without what changes when they are stored again.
func kept(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) []clustersv1alpha1.Cluster {
	t.Helper()
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		t.Fatal(err)
	}
	list, err := clients.ClusterregistryV1alpha1().Clusters().List(t.Context(), metav1.ListOptions{LabelSelector: "kept=yes"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		list.Items[i].ResourceVersion = ""
	}
	return list.Items
}

// same fails the test when the clusters are not those of before.
func same(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, before []clustersv1alpha1.Cluster) {
	t.Helper()
	if now := kept(t, e, registry); !reflect.DeepEqual(now, before) {
		t.Errorf("clusters are not as before:\n%+v\n%+v", now, before)
	}
}

// reached waits until a change of keys has come to a phase.
func reached(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, phase operatorv1alpha1.OperationPhase) {
	order := []operatorv1alpha1.OperationPhase{operatorv1alpha1.PhasePreflight, operatorv1alpha1.PhaseKeyAddition, operatorv1alpha1.PhaseKeyActivation, operatorv1alpha1.PhaseStorageMigration, operatorv1alpha1.PhaseKeyRemoval}
	e.Eventually("the change of keys to come to "+string(phase), func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		operation := registry.Status.Operation
		if operation == nil || operation.Type != operatorv1alpha1.OperationEncryption || slices.Index(order, operation.Phase) < slices.Index(order, phase) {
			return fmt.Errorf("the operation is %+v", operation)
		}
		return nil
	})
}

// changed waits until the servers have one key and no other, none for "".
func changed(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, id string) {
	e.Eventually("the servers to have no key but "+id, func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		var has []string
		if status := registry.Status.Encryption; status != nil {
			has = status.Reads
		}
		if operation := registry.Status.Operation; operation != nil && operation.Phase == operatorv1alpha1.PhaseKeyRemoval {
			if err := e.DropHistory(ctx, registry); err != nil {
				return err
			}
		}
		if registry.Status.Operation != nil || strings.Join(has, " ") != id {
			return fmt.Errorf("they have %q, and the operation is %+v", has, registry.Status.Operation)
		}
		return nil
	})
	e.WaitReady(registry)
}

// under fails the test when anything in etcd is not under a key, or can be read there though it
// is under one.
func under(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, id string) {
	t.Helper()
	out, err := e.Etcdctl(t.Context(), registry.Status.Etcd.Members[0].Name, "get", "--prefix", "/registry/clusterregistry.k8s.io/clusters/", "--write-out=json")
	if err != nil {
		t.Fatal(err)
	}
	var stored struct{ Kvs []struct{ Key, Value []byte } }
	if err := json.Unmarshal([]byte(out), &stored); err != nil {
		t.Fatal(err)
	}
	if len(stored.Kvs) < 20 {
		t.Errorf("etcd has %d clusters", len(stored.Kvs))
	}
	for _, kv := range stored.Kvs {
		plain := strings.Contains(string(kv.Value), "https://") || strings.Contains(string(kv.Value), "plain")
		if got := encryption.Under(kv.Value); got != id || id != encryption.Identity.ID() && plain {
			t.Errorf("%s is stored under %s, not %s, and can be read: %t", kv.Key, got, id, plain)
		}
	}
}

// copied returns the operator's own Secrets with the keys of servers.
func copied(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) []corev1.Secret {
	t.Helper()
	var list corev1.SecretList
	if err := e.Client.List(t.Context(), &list, client.InNamespace(e.Namespace)); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(s corev1.Secret) bool { return !strings.HasPrefix(s.Name, registry.Name+"-encryption-") })
}
