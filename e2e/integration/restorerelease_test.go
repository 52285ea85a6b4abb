package integration

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/scheme"
	clustersv1beta1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestRestoreOfV030 saves what v0.3.0 has stored, has a server of this release verify the
// backup, restores it as a member's init container does, and serves it with this release: each
// cluster is what it was in both versions of the API, clients of before are told to list again,
// and what is written then is stored as this release stores it.
func TestRestoreOfV030(t *testing.T) {
	t.Parallel()
	const version = "v3.7.3" // that of v0.3.0
	etcd := framework.StartEtcdVersion(t, version, 1)
	var old v1alpha1.Cluster
	fixture(t, "v0.2.0", &old)
	encode := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	saved := map[string]v1beta1.Cluster{}
	before := int64(0)
	for i, name := range []string{"east", "north", "west"} {
		var stored v1beta1.Cluster
		fixture(t, "v0.3.0", &stored)
		stored.Name, stored.UID = name, types.UID(fmt.Sprintf("%s-%d", stored.UID[:34], i))
		stored.Spec.ID = name + ".example"
		content, err := runtime.Encode(encode, &stored)
		if err != nil {
			t.Fatal(err)
		}
		before, saved[name] = put(t, etcd, key(name), string(content)), stored
	}

	s3 := framework.StartS3(t)
	a := archive{t, etcd, version, s3.Flags(), "0b9c4b52"}
	if b := a.save("last", "uid", "--release=v0.3.0"); b.Release != "v0.3.0" || b.Keys["clusters"] != 3 || b.Revision < before {
		t.Errorf("saved is %+v", b)
	}
	var b contract.BackupReport
	a.run(&b, 0, "", "verify", append(a.verifyFlags("last"), "--server="+filepath.Join(framework.Root(t), "bin", "clusterregistry-apiserver"))...)
	if b.VerifiedTime == nil {
		t.Errorf("verified is %+v", b)
	}
	fetched := filepath.Join(t.TempDir(), "snapshot.db")
	a.run(&b, 0, "", "fetch", "--to="+fetched)

	restored := restoreMember(t, version, fetched)
	_, _, config := independentOn(t, restored)
	olds, news := clustersOf(t, config), betaOf(t, config)
	for name, was := range saved {
		v1beta1.SetObjectDefaults_Cluster(&was) // defaults are shown and not stored
		is, err := news.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if is.UID != was.UID || !is.CreationTimestamp.Equal(&was.CreationTimestamp) || !apiequality.Semantic.DeepEqual(is.Spec, was.Spec) || !apiequality.Semantic.DeepEqual(is.Status, was.Status) {
			t.Errorf("in v1beta1, %s was restored as\n%s", name, diff.Diff(was, is))
		}
		asOld, err := olds.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || asOld.UID != was.UID || !apiequality.Semantic.DeepEqual(asOld.Spec, old.Spec) || !apiequality.Semantic.DeepEqual(asOld.Status, old.Status) {
			t.Errorf("in v1alpha1, %s was restored as %v\n%s", name, err, diff.Diff(old, asOld))
		}
	}
	checkListsAgain(t, news, before)
	east, err := news.Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	east.Labels = map[string]string{"restored": "yes"}
	if east, err = news.Update(t.Context(), east, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	value, _ := raw(t, restored, "east")
	if at, err := strconv.ParseInt(east.ResourceVersion, 10, 64); err != nil || at <= before+contract.RevisionBump || envelope(t, value) != "clusterregistry.k8s.io/"+storedVersion {
		t.Errorf("written is %+v (%v), and clients had seen revision %d; it is stored as %q", east.ObjectMeta, err, before, value)
	}
}

// restoreMember starts an etcd of one member on a snapshot, which is restored as the init
// container of a member does that.
func restoreMember(t *testing.T, version, snapshot string) *framework.Etcd {
	t.Helper()
	const id = "7c1f64a0-6d0b-4f0e-9a51-2f0d7f0c9a12"
	etcd, identity := framework.StartEtcdVersion(t, version, 1), t.TempDir()
	list, err := etcd.Client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	etcd.Kill(0)
	dir := etcd.DataDirs[0]
	side := dir + "-side"
	content, err := os.ReadFile(snapshot)
	if err == nil {
		err = errors.Join(os.RemoveAll(dir), os.MkdirAll(side, 0o700), os.WriteFile(filepath.Join(side, "snapshot.db"), content, 0o600), os.WriteFile(filepath.Join(identity, contract.RecordRestore), []byte(id), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(framework.Root(t), "bin", "clusterregistry-helper"), "etcd-restore", "--restore="+id, "--member=m0", "--peer-url="+list.Members[0].PeerURLs[0],
		"--data-dir="+dir, "--side-dir="+side, fmt.Sprintf("--sha256=%x", sha256.Sum256(content)), "--identity-dir="+identity, "--etcdutl="+framework.Program(t, "etcd", version, "etcdutl"))
	cmd.Env = append(os.Environ(), "RECORDED_RESTORE="+id)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v; \"make build\" makes the program\n%s", err, out)
	}
	etcd.Start(0)
	etcd.WaitServing(0)
	return etcd
}

// checkListsAgain fails the test unless a client that has seen a revision of before is told to
// list again, whether it watches from there or lists what was there then.
func checkListsAgain(t *testing.T, clusters clustersv1beta1.ClusterInterface, revision int64) {
	t.Helper()
	at := strconv.FormatInt(revision, 10)
	watching, err := clusters.Watch(t.Context(), metav1.ListOptions{ResourceVersion: at})
	if err == nil {
		defer watching.Stop()
		event := <-watching.ResultChan()
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from revision %s of before: %v, want 410", at, err)
	}
	if list, err := clusters.List(t.Context(), metav1.ListOptions{ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a list at revision %s of before has %+v, %v, want 410", at, list, err)
	}
}
