package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	clustersv1beta1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// locks is where requests that give an id to a cluster hold each other off.
const locks = "/registry/clusterregistry.k8s.io/clusterids/"

// identified returns a cluster with an id.
func identified(name, id string) *v1beta1.Cluster {
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.ClusterSpec{ID: id}}
}

// TestIdentity gives ids to clusters through two servers of one registry.
func TestIdentity(t *testing.T) {
	t.Parallel()
	etcd := framework.StartEtcd(t, 1)
	var servers []clustersv1beta1.ClusterInterface
	for range 2 {
		_, _, config := independentOn(t, etcd)
		servers = append(servers, betaOf(t, config))
	}
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	taken := etcd.Client.Watch(watching, locks, clientv3.WithPrefix(), clientv3.WithFilterDelete())

	t.Run("once set, for good", func(t *testing.T) { testIdentityIsForGood(t, servers[0]) })
	t.Run("unique", func(t *testing.T) { testIdentityIsUnique(t, servers) })
	t.Run("races", func(t *testing.T) { testIdentityRaces(t, servers) })
	t.Run("dead owners", func(t *testing.T) { testIdentityOfTheDead(t, etcd, servers[1]) })

	noLocks(t, etcd)
	for _, event := range (<-taken).Events {
		if event.Kv.Lease == 0 {
			t.Errorf("the lock %s would outlive its server", event.Kv.Key)
		}
	}
}

func testIdentityIsForGood(t *testing.T, clusters clustersv1beta1.ClusterInterface) {
	ctx := t.Context()
	made, err := clusters.Create(ctx, identified("constant", ""), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ id, want string }{
		{"Not.A.Name", "spec.id: Invalid value"}, {"one", ""}, {"one", ""}, {"two", "spec.id: Invalid value"}, {"", "may be set once"},
	} {
		made.Spec.ID = step.id
		updated, err := clusters.Update(ctx, made, metav1.UpdateOptions{})
		if step.want != "" {
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), step.want) {
				t.Errorf("id %q: %v", step.id, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("id %q: %v", step.id, err)
		}
		made = updated
	}
}

func testIdentityIsUnique(t *testing.T, servers []clustersv1beta1.ClusterInterface) {
	ctx := t.Context()
	if _, err := servers[0].Create(ctx, identified("first", "unique"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"second", "third"} {
		if _, err := servers[0].Create(ctx, identified(name, ""), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for reason, do := range map[string]func(clustersv1beta1.ClusterInterface) error{
		"create": func(c clustersv1beta1.ClusterInterface) error {
			_, err := c.Create(ctx, identified("other", "unique"), metav1.CreateOptions{})
			return err
		},
		"create in a dry run": func(c clustersv1beta1.ClusterInterface) error {
			_, err := c.Create(ctx, identified("other", "unique"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		},
		"create by update": func(c clustersv1beta1.ClusterInterface) error {
			_, err := c.Update(ctx, identified("other", "unique"), metav1.UpdateOptions{})
			return err
		},
		"patch": func(c clustersv1beta1.ClusterInterface) error {
			_, err := c.Patch(ctx, "second", types.MergePatchType, []byte(`{"spec":{"id":"unique"}}`), metav1.PatchOptions{})
			return err
		},
		"apply": func(c clustersv1beta1.ClusterInterface) error {
			_, err := c.Patch(ctx, "third", types.ApplyPatchType, []byte(`{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","spec":{"id":"unique"}}`), metav1.PatchOptions{FieldManager: "test"})
			return err
		},
	} {
		for i, server := range servers {
			if err := do(server); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "another cluster has it; kubectl get crc --field-selector=spec.id=unique") {
				t.Errorf("%s through server %d: %v", reason, i, err)
			}
		}
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := servers[0].Create(ctx, identified("dry", "dry"), dry); err != nil {
		t.Error(err)
	}
	if _, err := servers[1].Create(ctx, identified("wet", "dry"), metav1.CreateOptions{}); err != nil {
		t.Errorf("a dry run took the id: %v", err)
	}
	list, err := servers[1].List(ctx, metav1.ListOptions{FieldSelector: "spec.id=unique"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "first" {
		t.Errorf("by its id: %v, %v", err, list)
	}
}

// testIdentityRaces lets many clients of both servers give the same id to
// different clusters at once, to new ones and to those that are there.
func testIdentityRaces(t *testing.T, servers []clustersv1beta1.ClusterInterface) {
	const clients, rounds = 8, 10
	ctx := t.Context()
	for round := range rounds {
		id := fmt.Sprintf("race-%d", round)
		name := func(i int) string { return fmt.Sprintf("%s-%d", id, i) }
		exists := func(i int) bool { return i%4 < 2 }
		for i := range clients {
			if !exists(i) {
				continue
			}
			if _, err := servers[0].Create(ctx, identified(name(i), ""), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		errs := make([]error, clients)
		for i := range clients {
			all.Go(func() {
				server := servers[i%len(servers)]
				if exists(i) {
					_, errs[i] = server.Patch(ctx, name(i), types.MergePatchType, []byte(`{"spec":{"id":"`+id+`"}}`), metav1.PatchOptions{})
				} else {
					_, errs[i] = server.Create(ctx, identified(name(i), id), metav1.CreateOptions{})
				}
			})
		}
		all.Wait()
		won := 0
		for i, err := range errs {
			switch {
			case err == nil:
				won++
			case !apierrors.IsInvalid(err) && !apierrors.IsConflict(err):
				t.Errorf("client %d: %v", i, err)
			}
		}
		list, err := servers[round%len(servers)].List(ctx, metav1.ListOptions{FieldSelector: "spec.id=" + id})
		if err != nil || won != 1 || len(list.Items) != 1 {
			t.Errorf("round %d: %d clients won, and %d clusters have the id: %v", round, won, len(list.Items), err)
		}
	}
}

// testIdentityOfTheDead takes the id of a cluster that a replica of v0.1.0
// deleted, and one that a server was about to give when it died.
func testIdentityOfTheDead(t *testing.T, etcd *framework.Etcd, clusters clustersv1beta1.ClusterInterface) {
	ctx := t.Context()
	if _, err := clusters.Create(ctx, identified("gone", "again"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Client.Delete(ctx, key("gone")); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "the id to be free", func(ctx context.Context) error {
		_, err := clusters.Create(ctx, identified("next", "again"), metav1.CreateOptions{})
		return err
	})

	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	lock := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "held", UID: "of-a-dead-server"}}
	lock.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	var data bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(lock, &data); err != nil {
		t.Fatal(err)
	}
	lease, err := etcd.Client.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Client.Put(ctx, locks+"held", data.String(), clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := clusters.Create(ctx, identified("waiting", "held"), metav1.CreateOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "another request is giving its spec.id") {
		t.Errorf("while another's lock is there: %v", err)
	}
	if _, err := etcd.Client.Revoke(ctx, lease.ID); err != nil { // as when it expires
		t.Fatal(err)
	}
	framework.Eventually(t, "the dead server's lock to go", func(ctx context.Context) error {
		_, err := clusters.Create(ctx, identified("waiting", "held"), metav1.CreateOptions{})
		return err
	})
}

// TestIdentityOfLostLocks takes every lock away as soon as it is taken, as its
// lease does from a server that stands still for long. Of two clusters that are
// given one id at the same time, one at most may be told that it has it, and no
// two have it in the end.
func TestIdentityOfLostLocks(t *testing.T) {
	t.Parallel()
	var servers []clustersv1beta1.ClusterInterface
	for _, config := range thoseWhoLoseLocks(t) {
		servers = append(servers, betaOf(t, config))
	}
	won, lost := 0, 0
	for round := range 40 {
		id := fmt.Sprintf("lost-%d", round)
		// The second one has its cluster already, and gives it the id.
		late, err := servers[1].Create(t.Context(), identified(id+"-b", ""), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		late.Spec.ID = id
		var both sync.WaitGroup
		results := make([]error, 2)
		both.Go(func() {
			_, results[0] = servers[0].Create(t.Context(), identified(id+"-a", id), metav1.CreateOptions{})
		})
		both.Go(func() { _, results[1] = servers[1].Update(t.Context(), late, metav1.UpdateOptions{}) })
		both.Wait()
		told := 0
		for _, err := range results {
			switch {
			case err == nil:
				told++
			case !apierrors.IsInvalid(err) && !apierrors.IsConflict(err):
				t.Errorf("%s: %v", id, err)
			}
		}
		list, err := servers[0].List(t.Context(), metav1.ListOptions{FieldSelector: "spec.id=" + id})
		if err != nil {
			t.Fatal(err)
		}
		if told > 1 || len(list.Items) != told {
			t.Errorf("%s: %d were told that they have it, and %d have it: %v", id, told, len(list.Items), results)
		}
		won, lost = won+told, lost+2-told
	}
	t.Logf("%d got their id, %d were refused", won, lost)
	if won == 0 {
		t.Error("no cluster ever got its id")
	}
}

// thoseWhoLoseLocks returns administrators of two servers of one registry, each lock of
// which is taken away as soon as it is taken.
func thoseWhoLoseLocks(t *testing.T) []*rest.Config {
	t.Helper()
	etcd := framework.StartEtcd(t, 1)
	var servers []*rest.Config
	for range 2 {
		// Far from etcd, so that there is time between looking for the id and writing.
		flags := append([]string{"--etcd-servers=" + distant(t, etcd.Endpoints[0])}, etcd.Flags()[1:]...)
		clients := framework.NewAuthority(t, "clients")
		registry := framework.StartRegistry(t, append(flags, "--mode=independent", "--client-ca-file="+clients.File)...)
		registry.WaitReady(t)
		servers = append(servers, registry.Config(clients.Issue("root", admins)))
	}
	var taken atomic.Int64
	t.Cleanup(func() {
		if taken.Load() == 0 {
			t.Error("no lock was taken away: the servers take none, or not under " + locks)
		}
	})
	made := etcd.Client.Watch(t.Context(), locks, clientv3.WithPrefix(), clientv3.WithFilterDelete())
	go func() {
		for response := range made {
			for _, event := range response.Events {
				answer, err := etcd.Client.Delete(t.Context(), string(event.Kv.Key))
				switch {
				case err == nil:
					taken.Add(answer.Deleted)
				case t.Context().Err() == nil:
					t.Error(err)
				}
			}
		}
	}()
	return servers
}

// distant returns another address of a server, from which everything takes a
// while to it and back.
func distant(t *testing.T, address string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	carry := func(from, to net.Conn) {
		defer func() { _, _ = from.Close(), to.Close() }()
		data := make([]byte, 64<<10)
		for {
			n, err := from.Read(data)
			time.Sleep(10 * time.Millisecond)
			if _, failed := to.Write(data[:n]); err != nil || failed != nil {
				return
			}
		}
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "https://"))
			if err != nil {
				_ = near.Close()
				continue
			}
			go carry(near, far)
			go carry(far, near)
		}
	}()
	return "https://" + listener.Addr().String()
}
