package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// encryptionConfig writes the configuration of encryption with the given
// providers, the first of which encrypts; the file's path never changes.
func encryptionConfig(t *testing.T, path string, providers ...string) {
	t.Helper()
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [clusters.clusterregistry.k8s.io]\n  providers:\n"
	for _, provider := range providers {
		content += "  - " + provider + "\n"
	}
	// Replaced as a whole, so that the server never reads a part.
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// provider is a provider with a key of its own, a line of YAML.
func provider(kind, name string) string {
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32))
	return fmt.Sprintf("%s: {keys: [{name: %s, secret: %s}]}", kind, name, secret)
}

// TestEncryption turns encryption on for a registry that has clusters, and
// exchanges the key while the server runs.
func TestEncryption(t *testing.T) {
	t.Parallel() // the server looks for another key once a minute
	etcd := framework.StartEtcd(t, 1)
	start := func(more ...string) clustersv1alpha1.ClusterInterface {
		_, _, config := independentOn(t, etcd, more...)
		return clustersOf(t, config)
	}
	// stored returns why the raw value of a cluster isn't as it should be.
	stored := func(name, prefix string, readable bool) error {
		content, err := etcd.Client.Get(t.Context(), "/registry/clusterregistry.k8s.io/clusters/"+name)
		if err != nil || len(content.Kvs) != 1 {
			return fmt.Errorf("the raw value of %s: %w, %v", name, err, content)
		}
		value := content.Kvs[0].Value
		if !bytes.HasPrefix(value, []byte(prefix)) || bytes.Contains(value, []byte(name+".example")) != readable {
			return fmt.Errorf("%s is stored as %q, want prefix %q", name, value, prefix)
		}
		return nil
	}
	expect := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}

	plain := start()
	expect(write(t.Context(), plain, "old"))
	expect(stored("old", "k8s\x00", true))

	path := filepath.Join(t.TempDir(), "encryption.yaml")
	encryptionConfig(t, path, provider("aescbc", "first"), "identity: {}")
	encrypted := start("--encryption-provider-config="+path, "--encryption-provider-config-automatic-reload")
	for _, name := range []string{"new", "old"} {
		expect(write(t.Context(), encrypted, name))
		expect(stored(name, "k8s:enc:aescbc:v1:first:", false))
	}

	t.Log("another key, while the server runs")
	encryptionConfig(t, path, provider("secretbox", "second"), provider("aescbc", "first"))
	for _, name := range []string{"new", "old"} {
		framework.Eventually(t, name+" to be written with the second key", func(ctx context.Context) error {
			if err := write(ctx, encrypted, name); err != nil {
				return err
			}
			return stored(name, "k8s:enc:secretbox:v1:second:", false)
		})
	}

	t.Log("servers that have the second key only, and none")
	encryptionConfig(t, path, provider("secretbox", "second"))
	list, err := start("--encryption-provider-config="+path).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("with the second key only: %v, %+v", err, list)
	}
	if _, err := plain.Get(t.Context(), "new", metav1.GetOptions{}); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "encrypted data") {
		t.Errorf("without a key: %v", err)
	}
}

// write creates a cluster, or updates it without a change, which stores it anew
// when it is not stored with the current key.
func write(ctx context.Context, clusters clustersv1alpha1.ClusterInterface, name string) error {
	current, err := clusters.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = clusters.Create(ctx, cluster(name, nil), metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	_, err = clusters.Update(ctx, current, metav1.UpdateOptions{})
	return err
}
