package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation/keychange"
)

// keys reads an EncryptionConfiguration of providers, each a line of YAML.
func keys(t *testing.T, providers ...string) encryption.Keys {
	t.Helper()
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	encryptionConfig(t, path, providers...)
	out, err := encryption.Parse(read(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCompacted asks a real etcd whether anyone can read what it had before a revision.
func TestCompacted(t *testing.T) {
	t.Parallel()
	store := framework.StartEtcd(t, 1)
	var last int64
	for i := range 5 {
		answer, err := store.Client.Put(t.Context(), "k", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		last = answer.Header.Revision
	}
	at := last - 2
	if _, err := store.Client.Compact(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[int64]bool{0: true, 1: true, at - 1: true, at: true, at + 1: false, last: false} {
		if got, err := accessTo(store).Compacted(t.Context(), revision); got != want || err != nil {
			t.Errorf("compacted at %d of %d: before %d, nothing can be read: %t, %v", at, last, revision, got, err)
		}
	}
}

// TestKeyChange brings real servers and a real etcd from clear text to a key, to another one,
// and back, by the steps of encryption.State: two servers, replaced one after the other, read
// every cluster after each replacement, and what etcd holds is under the key that it should be.
func TestKeyChange(t *testing.T) {
	t.Parallel()
	store := framework.StartEtcd(t, 1)
	const prefix, all = "/registry/clusterregistry.k8s.io/clusters/", 7
	var running [2]*framework.Registry
	start := func(i int, keys encryption.Keys) clustersv1alpha1.ClusterInterface {
		path := filepath.Join(t.TempDir(), "configuration.json")
		if err := os.WriteFile(path, keys.Configuration(), 0o600); err != nil {
			t.Fatal(err)
		}
		registry, _, config := independentOn(t, store, "--encryption-provider-config="+path)
		if running[i] != nil { // the one that it replaces
			running[i].Signal(t, syscall.SIGKILL)
		}
		running[i] = registry
		return clustersOf(t, config)
	}
	state := encryption.State{InUse: encryption.Keys{encryption.Identity}, Loaded: true}
	servers := []clustersv1alpha1.ClusterInterface{start(0, state.InUse), start(1, state.InUse)}
	for i := range all {
		if err := write(t.Context(), servers[i%2], fmt.Sprintf("cluster-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	under := func() map[string]int {
		out := map[string]int{}
		if _, err := accessTo(store).Stored(t.Context(), prefix, "", func(name string, content []byte) error {
			id := encryption.Under(content)
			if clear := strings.Contains(string(content), name+".example"); clear != (id == "identity") {
				t.Errorf("%s is under %s, and can be read in etcd: %t", name, id, clear)
			}
			reader, err := state.InUse.Reader()
			if err != nil {
				return err
			}
			plain, err := reader.Read(t.Context(), prefix+name, content)
			if err == nil {
				_, err = etcd.StoredVersion(plain)
			}
			out[id]++
			return err
		}); err != nil {
			t.Error(err)
		}
		return out
	}
	look := func(when string) {
		t.Helper()
		for i, server := range servers {
			list, err := server.List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != all {
				t.Fatalf("%s: server %d: %v", when, i, err)
			}
			for _, cluster := range list.Items { // not from its cache
				if _, err := server.Get(t.Context(), cluster.Name, metav1.GetOptions{}); err != nil {
					t.Fatalf("%s: server %d: %v", when, i, err)
				}
			}
		}
	}
	first, second := provider("aescbc", "first"), provider("secretbox", "second")
	for _, desired := range []encryption.Keys{keys(t, first), keys(t, second, first), keys(t, second), keys(t, provider("aesgcm", "third")), {encryption.Identity}} {
		state.Desired, state.Stored = desired, nil
		var kinds []encryption.Kind
		for len(kinds) < 10 {
			step := state.Next()
			kinds = append(kinds, step.Kind)
			when := fmt.Sprintf("to %v, %s %v", desired, step.Kind, step.About)
			if step.Kind == encryption.Done {
				break
			}
			if step.Kind == encryption.Count {
				storage := keychange.Storage{Over: func() bool { return false },
					Read: func(ctx context.Context, after string, each func(string, []byte) error) (etcd.Stored, error) {
						return accessTo(store).Stored(ctx, prefix, after, each)
					},
					Rewrite: func(ctx context.Context, name string) error { return write(ctx, servers[len(name)%2], name) }}
				var err error
				if _, state.Stored, _, err = (keychange.Walk{}).Continue(t.Context(), state.InUse, storage); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				continue
			}
			state.InUse = step.Keys
			for i := range servers {
				servers[i] = start(i, state.InUse)
				if err := write(t.Context(), servers[i], fmt.Sprintf("cluster-%d", i)); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				look(when)
			}
			if step.Kind != encryption.Remove {
				state.Stored = nil
			}
		}
		if stored := under(); stored[desired[0].ID()] != all || len(state.InUse) != len(desired) {
			t.Errorf("to %v by %v: in use are %v, stored is %v", desired, kinds, state.InUse, stored)
		}
	}
}
