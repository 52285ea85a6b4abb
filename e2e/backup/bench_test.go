package backup

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// bench is a registry of three members whose backups are measured, with more and more clusters.
type bench struct {
	t        *testing.T
	e        *framework.Env
	store    *store
	registry *operatorv1alpha1.ClusterRegistry
	clients  versioned.Interface
	// rounds is how often a backup is taken of each number of clusters.
	rounds int

	// newest is the last backup of it, and written what was written while it was taken.
	newest  *operatorv1alpha1.ClusterRegistryBackup
	written []write
}

// figure is a row of the table: what was measured, how long it took each time, and what there is
// to say about it.
type figure struct {
	what  string
	took  []time.Duration
	notes string
}

// print prints the row for a number of clusters.
func (f figure) print(clusters int) {
	took := slices.Sorted(slices.Values(f.took))
	fmt.Printf("| %d | %s | %.1f s | %.1f s | %s |\n", clusters, f.what, took[len(took)/2].Seconds(), took[len(took)-1].Seconds(), f.notes)
}

// TestBench prints how long a backup, its verification and a restore of it take, and how old
// what is in it is by then: what is lost with a registry, and when it is back. It also prints
// how long the recovery from a lost quorum takes. BENCH_CLUSTERS
// says of how many clusters, of 1 KB each, ascending; BENCH_ROUNDS how often each is backed up.
func TestBench(t *testing.T) {
	numbers := func(name, otherwise string) []int {
		var out []int
		for text := range strings.SplitSeq(cmp.Or(os.Getenv(name), otherwise), ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				t.Fatalf("%s: give numbers, with commas between", name)
			}
			out = append(out, n)
		}
		return out
	}
	sizes, rounds := numbers("BENCH_CLUSTERS", "1000,10000,100000"), numbers("BENCH_ROUNDS", "3")[0]
	e := framework.New(t).WithOperator()
	b := &bench{t: t, e: e, store: startStore(t, e), rounds: rounds}
	b.registry = registryWith(e, b.store, 3, never)
	e.Install(b.registry)
	e.WaitReady(b.registry)
	e.WaitCondition(b.registry, operatorv1alpha1.ConditionBackupReady, metav1.ConditionTrue, operatorv1alpha1.ReasonBackedUp) // the first one is taken at once
	b.clients = unlimited(t, e, b.registry)
	fmt.Printf("| clusters | what | median | longest | |\n|---|---|---|---|---|\n")
	for i, clusters := range sizes {
		first := 0
		if i > 0 {
			first = sizes[i-1]
		}
		b.populate(first, clusters)
		for _, measure := range []func() []figure{b.backUp, b.restore, b.recover} {
			for _, f := range measure() {
				f.print(clusters)
			}
		}
	}
}

// backUp takes backups while clients write.
func (b *bench) backUp() []figure {
	b.t.Helper()
	saving, verifying, age := figure{what: "backup, until it is in its store"}, figure{what: "verification"}, figure{what: "age of the newest write in it by then"}
	for range b.rounds {
		b.idle()
		stop := b.write()
		asked := time.Now()
		c := request(b.e, b.registry, fmt.Sprintf("bench-%d", asked.UnixMilli()), operatorv1alpha1.BackupDeletionPolicyRetain)
		stored, verified, used := b.follow(c)
		b.written, b.newest = stop(), c
		saving.took, verifying.took = append(saving.took, stored.Sub(asked)), append(verifying.took, verified.Sub(stored))
		age.took = append(age.took, stored.Sub(b.last(c.Status.Revision)))
		saving.notes, verifying.notes = fmt.Sprintf("%.1f MiB; the Job: %s", float64(c.Status.Bytes)/(1<<20), used["save "+c.Name]), "the Job: "+used["verify "+c.Name]
	}
	age.notes = "beside the period of the schedule, what is lost at most"
	return []figure{saving, verifying, age}
}

// last returns when the last write was acknowledged that is in a backup of a revision.
func (b *bench) last(revision int64) time.Time {
	b.t.Helper()
	for _, w := range slices.Backward(b.written) {
		if w.revision <= revision {
			return w.acknowledged
		}
	}
	b.t.Fatalf("nothing that was written while the backup was taken is in it: %+v", b.written)
	return time.Time{}
}

// idle waits until nothing is done about backups: old ones are removed after each.
func (b *bench) idle() {
	b.t.Helper()
	b.e.Eventually("old backups to be removed", func(ctx context.Context) error {
		if err := b.e.Client.Get(ctx, client.ObjectKeyFromObject(b.registry), b.registry); err != nil {
			return err
		}
		if is := b.registry.Status.Backup; is == nil || is.LastSuccess == nil || is.Pruned != is.LastSuccess.Name {
			return fmt.Errorf("the status has %+v", is)
		}
		return nil
	})
}

// follow waits until a backup is completed. It returns when it was in its store and when it was
// verified, and what the Jobs of its steps have used.
func (b *bench) follow(c *operatorv1alpha1.ClusterRegistryBackup) (stored, verified time.Time, used map[string]string) {
	b.t.Helper()
	used = map[string]string{}
	b.e.Eventually("backup "+c.Name+" to be completed", func(ctx context.Context) error {
		if err := b.e.Client.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		phase, now := c.Status.Phase, time.Now()
		if stored.IsZero() && (phase == operatorv1alpha1.BackupVerifying || phase == operatorv1alpha1.BackupCompleted) {
			stored = now
		}
		if verified.IsZero() && phase == operatorv1alpha1.BackupCompleted {
			verified = now
		}
		if err := jobsUsed(ctx, b.e, used); err != nil {
			return err
		}
		if verified.IsZero() || used["save "+c.Name] == "" || used["verify "+c.Name] == "" {
			return fmt.Errorf("it is %q: %s; its Jobs have used %v", phase, c.Status.Message, used)
		}
		return nil
	})
	return stored, verified, used
}

// restore restores the newest backup into another registry of three members, and compares it
// with what was acknowledged: what was written before the backup is there, and nothing since.
func (b *bench) restore() []figure {
	b.t.Helper()
	spec := b.store.spec()
	registry := elsewhere(b.e, b.store, "restored-"+strconv.FormatInt(b.newest.Status.Revision, 10), 3, operatorv1alpha1.RestoreFrom{Store: &spec, Lineage: b.newest.Status.Lineage, Name: b.newest.Name})
	registry.Spec.Backup, registry.Spec.DeletionPolicy = nil, operatorv1alpha1.DeletionPolicyDelete
	begun := time.Now()
	b.e.Install(registry)
	available, ready := b.wait(registry, func() bool { return true })
	b.compare(registry)
	b.e.Remove(registry)
	return []figure{
		{"restore, until clients are served (Available)", []time.Duration{available.Sub(begun)}, "by one member"},
		{"restore, until Ready", []time.Duration{ready.Sub(begun)}, "3 members"},
	}
}

// wait waits until a registry is Ready and done. It returns when clients were served, and when
// it was so.
func (b *bench) wait(registry *operatorv1alpha1.ClusterRegistry, done func() bool) (available, ready time.Time) {
	b.t.Helper()
	b.e.Eventually(registry.Name+" to be ready", func(ctx context.Context) error {
		if err := b.e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		if available.IsZero() && meta.IsStatusConditionTrue(registry.Status.Conditions, operatorv1alpha1.ConditionAvailable) {
			available = time.Now()
		}
		if !meta.IsStatusConditionTrue(registry.Status.Conditions, operatorv1alpha1.ConditionReady) || !done() {
			return fmt.Errorf("its conditions are %+v", registry.Status.Conditions)
		}
		ready = time.Now()
		return nil
	})
	return available, ready
}

// compare holds a restored registry to what the backup has to have.
func (b *bench) compare(registry *operatorv1alpha1.ClusterRegistry) {
	b.t.Helper()
	names := b.names(registry)
	kept, lost := 0, 0
	for _, w := range b.written {
		before := w.revision <= b.newest.Status.Revision
		if before != names[w.name] {
			b.t.Errorf("%s was written at revision %d, the backup is of %d, and that it was restored is %t", w.name, w.revision, b.newest.Status.Revision, names[w.name])
		}
		if before {
			kept++
		} else {
			lost++
		}
	}
	saved := slices.IndexFunc(b.newest.Status.Keys, func(k operatorv1alpha1.ResourceKeys) bool { return k.Resource == "clusters" })
	if saved < 0 || int64(len(names)) != b.newest.Status.Keys[saved].Count || kept == 0 || lost == 0 {
		b.t.Errorf("restored are %d clusters of %+v, with %d writes from before the backup and without %d from after it", len(names), b.newest.Status.Keys, kept, lost)
	}
	b.t.Logf("restored are %d clusters: with %d that were written while the backup was taken, without %d from after its revision", len(names), kept, lost)
}

// names returns the names of all clusters of a registry.
func (b *bench) names(registry *operatorv1alpha1.ClusterRegistry) map[string]bool {
	b.t.Helper()
	names := map[string]bool{}
	options := metav1.ListOptions{Limit: 5000}
	clients := unlimited(b.t, b.e, registry)
	for {
		list, err := clients.ClusterregistryV1beta1().Clusters().List(b.t.Context(), options)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, cluster := range list.Items {
			names[cluster.Name] = true
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return names
		}
	}
}
