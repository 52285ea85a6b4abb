package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// handover is what the first host cluster leaves for the second one, beside the objects of the
// store: all that whoever restores has to know, and what the registry had.
type handover struct {
	Lineage  string
	Backup   operatorv1alpha1.ClusterRegistryBackupStatus
	Revision int64
	Clusters map[string]v1beta1.Cluster
}

// handoverDirectory is where one host cluster leaves it for the other. Both tests run in one
// script, hack/second.sh, which takes the first cluster down between them.
func handoverDirectory(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("E2E_HANDOVER")
	if dir == "" {
		t.Fatal("set E2E_HANDOVER to a directory, as make e2e-second does")
	}
	return dir
}

// TestSecondClusterSave backs up a registry of the first host cluster, writes once more, and
// copies the store out of the cluster.
func TestSecondClusterSave(t *testing.T) {
	dir := handoverDirectory(t)
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	registry := registryWith(e, s, 3, never)
	e.Install(registry)
	e.WaitReady(registry)
	for i := range 200 {
		addCluster(t, e, registry, fmt.Sprintf("c-%03d", i))
	}
	var left handover
	var err error
	if left.Clusters, left.Revision, err = clusters(t.Context(), e, registry); err != nil || len(left.Clusters) < 200 {
		t.Fatalf("there are %d clusters, %v", len(left.Clusters), err)
	}
	b := request(e, registry, "last", operatorv1alpha1.BackupDeletionPolicyRetain)
	waitPhase(e, b, operatorv1alpha1.BackupCompleted)
	checkCompleted(t, s, *b)
	addCluster(t, e, registry, "after-the-backup")
	left.Lineage, left.Backup = b.Status.Lineage, b.Status
	content, err := json.Marshal(left)
	if err != nil {
		t.Fatal(err)
	}
	objects := s.copyOut(filepath.Join(dir, "objects"))
	if err := os.WriteFile(filepath.Join(dir, "handover.json"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("left are %d clusters, and %d objects of the store", len(left.Clusters), objects)
}

// TestSecondClusterRestore restores that in another host cluster, when the first one is gone: from
// a store with the same objects elsewhere, of another CA and other credentials' Secret. Clusters
// are equal object by object, clients of the old registry list again, and the old lineage stays
// as it is.
func TestSecondClusterRestore(t *testing.T) {
	dir := handoverDirectory(t)
	content, err := os.ReadFile(filepath.Join(dir, "handover.json"))
	if err != nil {
		t.Fatalf("the first cluster has left nothing: %v", err)
	}
	var left handover
	if err := json.Unmarshal(content, &left); err != nil {
		t.Fatal(err)
	}
	e := framework.New(t).WithOperator()
	s := startStore(t, e)
	s.copyIn(filepath.Join(dir, "objects"))
	before, err := read(s.keys(), left.Lineage)
	if err != nil || len(before.whole) == 0 {
		t.Fatalf("the copied store has %+v, %v", before, err)
	}
	spec := s.spec()
	restored := elsewhere(e, s, "fleet", 3, operatorv1alpha1.RestoreFrom{Store: &spec, Lineage: left.Lineage, Latest: new(true)})
	restored.Spec.Backup = nil
	e.Install(restored)
	e.WaitReady(restored)
	is := restored.Status.Restored
	if is == nil || is.Location != left.Backup.Location || is.Revision != left.Backup.Revision || is.CompletionTime == nil || is.VerifiedTime == nil || is.Lineage == left.Lineage {
		t.Errorf("the restored registry says %+v of backup %+v", is, left.Backup)
	}
	got, revision, err := clusters(t.Context(), e, restored)
	if err != nil {
		t.Fatal(err)
	}
	checkEqual(t, left.Clusters, got)
	if revision < left.Revision+raised {
		t.Errorf("the restored registry is at revision %d, and the old one was at %d", revision, left.Revision)
	}
	e.CheckOldWatch(restored, left.Revision)
	if after, err := read(s.keys(), left.Lineage); err != nil || len(after.whole) != len(before.whole) {
		t.Errorf("the old lineage has %+v of %+v, %v", after, before, err)
	}
}

// copyOut copies what is in the store below the prefix of backups to a directory, each object to a
// file, and returns how many there are.
func (s *store) copyOut(dir string) int {
	s.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	keys := s.keys()
	s.e.Eventually("the store to be copied", func(ctx context.Context) error {
		return s.use(ctx, func(c *s3.Client) error {
			for _, key := range keys {
				object, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(prefix + "/" + key)})
				if err != nil {
					return err
				}
				content, err := io.ReadAll(object.Body)
				if closed := object.Body.Close(); err == nil {
					err = closed
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, url.PathEscape(key)), content, 0o600)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	return len(keys)
}

// copyIn writes what copyOut has copied.
func (s *store) copyIn(dir string) {
	s.t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.e.Eventually("the store to have the copy", func(ctx context.Context) error {
		return s.use(ctx, func(c *s3.Client) error {
			for _, file := range files {
				key, err := url.PathUnescape(file.Name())
				if err != nil {
					return err
				}
				content, err := os.ReadFile(filepath.Join(dir, file.Name()))
				if err != nil {
					return err
				}
				if _, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(prefix + "/" + key), Body: bytes.NewReader(content)}); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
