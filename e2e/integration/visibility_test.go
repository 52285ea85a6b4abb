package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// quickly has servers notice changes at once. With E2E_FULL=1 they go by their own periods.
func quickly() []string {
	flags := []string{"--visibility=ClusterSets"}
	if !framework.Full() {
		flags = append(flags, "--visibility-cache-ttl=0s", "--visibility-recheck-period=200ms")
	}
	return flags
}

// TestVisibility shows people the clusters of their sets, in both modes: each as an authorizer
// that a registry really has decides.
func TestVisibility(t *testing.T) {
	t.Parallel()
	t.Run("independent", func(t *testing.T) {
		etcd := framework.StartEtcd(t, 1)
		registry, clients, admin := independentOn(t, etcd, quickly()...)
		other := framework.StartRegistry(t, slices.Concat(etcd.Flags(), []string{"--mode=independent", "--client-ca-file=" + clients.File}, quickly())...)
		other.WaitReady(t)
		testVisibility(t, admin, func(user string) []*rest.Config {
			pair := clients.Issue(user, nil)
			return []*rest.Config{registry.Config(pair), other.Config(pair)}
		}, func(d *district) { t.Run("unreadable", func(*testing.T) { d.testUnreadable(etcd) }) })
	})
	t.Run("aggregated", func(t *testing.T) {
		flags := quickly()
		if !framework.Full() {
			flags = append(flags, "--authorization-webhook-cache-authorized-ttl=1ms", "--authorization-webhook-cache-unauthorized-ttl=1ms")
		}
		host, common := framework.StartReadyHost(t, newest)
		flags = slices.Concat(common, []string{"--etcd-servers=" + host.Etcd}, flags)
		registry, other := framework.StartRegistry(t, flags...), framework.StartRegistry(t, flags...)
		registry.WaitReady(t)
		other.WaitReady(t)
		host.AggregateRegistry(t, registry)
		framework.Create(t, framework.HostClient(t, host.Config), shippedRoles(t)...)
		// The host is connected to one server alone; the other is asked around the host.
		testVisibility(t, host.Config, func(user string) []*rest.Config {
			config := userConfig(t, host, user)
			return []*rest.Config{config, direct(config, other)}
		})
	})
}

// district is a registry with the people who see a part of it.
type district struct {
	t        *testing.T
	admin    sets
	rbac     kubernetes.Interface
	servers  map[string][]sets       // by user
	configs  map[string]*rest.Config // of the first of them
	clusters map[string]string       // the set of each
	granted  map[string]bool         // "user/set/verb"
}

func testVisibility(t *testing.T, admin *rest.Config, as func(string) []*rest.Config, more ...func(*district)) {
	d := &district{t: t, admin: setsOf(t, admin), rbac: clientset(t, admin), servers: map[string][]sets{}, configs: map[string]*rest.Config{}, clusters: map[string]string{}, granted: map[string]bool{}}
	d.admin.make(t, "blue", "green", "red")
	for name, set := range map[string]string{"b1": "blue", "b2": "blue", "g1": "green", "none": ""} {
		if _, err := d.admin.put(t.Context(), name, set); err != nil {
			t.Fatal(err)
		}
		d.clusters[name] = set
	}
	for user, gate := range map[string]string{"ann": "viewer", "bob": "editor", "eve": "editor"} {
		configs := as(user)
		for _, config := range configs {
			d.servers[user] = append(d.servers[user], setsOf(t, config))
		}
		d.configs[user] = configs[0]
		d.bind(user+"-gate", "clusterregistry:"+gate, user)
	}
	for _, verb := range []string{"get", "create", "update", "patch", "delete", "deletecollection"} {
		d.grant("bob", "green", verb)
	}
	// Bob may create clusters in red that he does not see then.
	d.grant("bob", "red", "create")
	join := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "join-red"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{v1beta1.GroupName}, Resources: []string{"clustersets/join"}, ResourceNames: []string{"red"}}}}
	if _, err := d.rbac.RbacV1().ClusterRoles().Create(t.Context(), join, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.bind(join.Name, join.Name, "bob")
	d.bind("eve-all", "clusterregistry:all-clusters", "eve")
	d.granted["eve//get"] = true
	d.grant("ann", "blue", "get") // last, since lists show this role: then servers know all of them
	d.settled("at the start")
	t.Run("answers", func(*testing.T) { d.testAnswers() })
	t.Run("put", func(*testing.T) { d.testPut() })
	t.Run("encodings", func(*testing.T) { d.testEncodings() })
	t.Run("pages", func(*testing.T) { d.testPages() })
	t.Run("rounds", func(*testing.T) { d.testRounds() })
	for _, test := range more {
		test(d)
	}
}

func (d *district) bind(name, role, user string) {
	d.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	if _, err := d.rbac.RbacV1().ClusterRoleBindings().Create(d.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// grant gives someone a verb on the clusters of a set.
func (d *district) grant(user, set, verb string) {
	d.t.Helper()
	name := user + "-" + set + "-" + verb
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{verb}, APIGroups: []string{v1beta1.GroupName}, Resources: []string{"clustersets/clusters"}, ResourceNames: []string{set}}}}
	if _, err := d.rbac.RbacV1().ClusterRoles().Create(d.t.Context(), role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		d.t.Fatal(err)
	}
	d.bind(name, name, user)
	d.granted[user+"/"+set+"/"+verb] = true
}

// revoke takes it away.
func (d *district) revoke(user, set, verb string) {
	d.t.Helper()
	if err := d.rbac.RbacV1().ClusterRoleBindings().Delete(d.t.Context(), user+"-"+set+"-"+verb, metav1.DeleteOptions{}); err != nil {
		d.t.Fatal(err)
	}
	delete(d.granted, user+"/"+set+"/"+verb)
}

// seen is what someone must see.
func (d *district) seen(user string) []string {
	out := []string{}
	for name, set := range d.clusters {
		if d.granted[user+"//get"] || set != "" && d.granted[user+"/"+set+"/get"] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// settled waits until everyone sees at every server what they must.
func (d *district) settled(when string) {
	d.t.Helper()
	for user, servers := range d.servers {
		for i, server := range servers {
			framework.Eventually(d.t, fmt.Sprintf("%s to see the right clusters at server %d, %s", user, i, when), func(ctx context.Context) error {
				list, err := server.Clusters().List(ctx, metav1.ListOptions{})
				if err != nil {
					return err
				}
				if got, want := shownIn(list), d.seen(user); !slices.Equal(got, want) {
					return fmt.Errorf("sees %q, want %q", got, want)
				}
				return nil
			})
		}
	}
}

func shownIn(list *v1beta1.ClusterList) []string {
	out := []string{}
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	slices.Sort(out)
	return out
}

// testAnswers compares what is said of a cluster that is not seen and of one that is absent.
func (d *district) testAnswers() {
	ctx, ann, bob := d.t.Context(), d.servers["ann"][0], d.servers["bob"][0]
	label := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	for what, do := range map[string]func(name string) error{
		"get": func(name string) error { _, err := bob.Clusters().Get(ctx, name, metav1.GetOptions{}); return err },
		"patch": func(name string) error {
			_, err := bob.Clusters().Patch(ctx, name, types.MergePatchType, label, metav1.PatchOptions{})
			return err
		},
		"delete": func(name string) error { return bob.Clusters().Delete(ctx, name, metav1.DeleteOptions{}) },
	} {
		hidden, absent := do("b1"), do("xyz")
		if !apierrors.IsNotFound(hidden) || strings.ReplaceAll(hidden.Error(), "b1", "xyz") != absent.Error() {
			d.t.Errorf("%s: %v, and of an absent one %v", what, hidden, absent)
		}
	}
	if _, err := bob.Clusters().Patch(ctx, "g1", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		d.t.Errorf("bob patches what he may: %v", err)
	}
	d.grant("bob", "blue", "get")
	d.settled("after bob may read blue")
	_, err := bob.Clusters().Patch(ctx, "b1", types.MergePatchType, label, metav1.PatchOptions{})
	if want := `cannot patch resource "clustersets/clusters" in API group "clusterregistry.k8s.io" for the name "blue"`; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		d.t.Errorf("bob patches what he reads: %v", err)
	}
	if err := bob.Clusters().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		d.t.Errorf("bob deletes what he reads: %v", err)
	}
	d.revoke("bob", "blue", "get")
	d.settled("after bob may not")
	for name, set := range map[string]string{"none": "green", "new": "blue"} {
		_, err := bob.put(ctx, name, set)
		if set == "blue" && !apierrors.IsForbidden(err) || set == "green" && !apierrors.IsForbidden(err) && !apierrors.IsAlreadyExists(err) {
			d.t.Errorf("bob creates %s in %s: %v", name, set, err)
		}
	}
	// An id that is taken says no more than that.
	if _, err := d.admin.Clusters().Patch(ctx, "b1", types.MergePatchType, []byte(`{"spec":{"id":"of-one"}}`), metav1.PatchOptions{}); err != nil {
		d.t.Fatal(err)
	}
	_, err = bob.Clusters().Create(ctx, &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "twin"}, Spec: v1beta1.ClusterSpec{ClusterSet: "red", ID: "of-one"}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "another cluster has it") || strings.Contains(err.Error(), "b1") || strings.Contains(err.Error(), "blue") {
		d.t.Errorf("bob creates a cluster with an id of another one: %v", err)
	}
	if list, err := bob.Clusters().List(ctx, metav1.ListOptions{FieldSelector: "spec.id=of-one"}); err != nil || len(list.Items) > 0 {
		d.t.Errorf("bob selects its id: %v, %v", list, err)
	}
	if list, err := ann.Clusters().List(ctx, metav1.ListOptions{FieldSelector: "spec.clusterSet=green"}); err != nil || len(list.Items) > 0 {
		d.t.Errorf("ann selects green: %v, %v", list, err)
	}
}

// testPut puts a cluster as a client does whose types have no spec.clusterSet: that takes it
// out of its set, and needs the permission for that.
func (d *district) testPut() {
	ctx, bob := d.t.Context(), d.servers["bob"][0]
	put := func(client sets) error {
		c, err := bob.Clusters().Get(ctx, "g1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		c.Spec.ClusterSet = ""
		_, err = client.Clusters().Update(ctx, c, metav1.UpdateOptions{})
		return err
	}
	if err := put(bob); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot create resource "clustersets/join" in API group "clusterregistry.k8s.io" for the name "green"`) {
		d.t.Errorf("bob puts a cluster without its set: %v", err)
	}
	if c, err := bob.Clusters().Get(ctx, "g1", metav1.GetOptions{}); err != nil || c.Spec.ClusterSet != "green" {
		d.t.Fatalf("after that: %v, %v", c, err)
	}
	// Whoever may move it does so, and is told.
	d.admin.warned.take()
	if err := put(d.admin); err != nil {
		d.t.Fatal(err)
	}
	if told, want := d.admin.warned.take(), `spec.clusterSet was "green" and is unset now`; !strings.Contains(told, want) {
		d.t.Errorf("the administrator is told %q, want %q", told, want)
	}
	if _, err := d.admin.move(ctx, "g1", "green"); err != nil {
		d.t.Fatal(err)
	}
	d.settled("after g1 is back")
}

// testPages reads page by page, from server to server, with a change in between.
func (d *district) testPages() {
	ctx, servers := d.t.Context(), d.servers["ann"]
	page, err := servers[0].Clusters().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || page.Continue == "" || page.RemainingItemCount != nil {
		d.t.Fatalf("the first page: %v, %+v", err, page)
	}
	last := servers[len(servers)-1]
	second, err := last.Clusters().List(ctx, metav1.ListOptions{Limit: 1, Continue: page.Continue})
	if err != nil || second.Continue != "" || len(second.Items) != 1 || second.Items[0].Name != "b2" {
		d.t.Errorf("the second page: %v, %+v", err, second)
	}
	d.grant("ann", "red", "get")
	framework.Eventually(d.t, "the page of before to be refused", func(ctx context.Context) error {
		if _, err := last.Clusters().List(ctx, metav1.ListOptions{Limit: 1, Continue: page.Continue}); !apierrors.IsResourceExpired(err) {
			return fmt.Errorf("answered %w", err)
		}
		return nil
	})
	events, err := servers[0].Clusters().Watch(ctx, metav1.ListOptions{ResourceVersion: page.ResourceVersion})
	if err != nil {
		d.t.Fatal(err)
	}
	defer events.Stop()
	if event := <-events.ResultChan(); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		d.t.Errorf("a watch from before: %v", event)
	}
	d.revoke("ann", "red", "get")
}

// testRounds has client-go's informers, which change between the servers, know what their
// users see, while clusters move and permissions come and go.
func (d *district) testRounds() {
	ctx, stop := context.WithCancel(d.t.Context())
	defer stop()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	d.t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test's choices
	stores := map[string]cache.Store{}
	for user, servers := range d.servers {
		pick := func() sets { return servers[rand.IntN(len(servers))] } //nolint:gosec // a test's choices
		seconds := int64(2)
		stores[user] = cache.NewStore(cache.MetaNamespaceKeyFunc)
		reflector := cache.NewReflectorWithOptions(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return pick().Clusters().List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.TimeoutSeconds = &seconds // and then at another server
				return pick().Clusters().Watch(ctx, options)
			},
		}, &v1beta1.Cluster{}, stores[user], cache.ReflectorOptions{})
		go reflector.RunWithContext(ctx)
	}
	names := []string{"blue", "green", "red"}
	rounds := 3 // each takes seconds: clients begin again after 410 only after a while
	if framework.Full() {
		rounds = 20
	}
	for round := range rounds {
		for range 3 {
			d.change(random, names)
		}
		d.settled(fmt.Sprintf("in round %d", round))
		for user, store := range stores {
			framework.Eventually(d.t, fmt.Sprintf("the informer of %s in round %d", user, round), func(context.Context) error {
				known := store.ListKeys()
				slices.Sort(known)
				if want := d.seen(user); !slices.Equal(known, want) {
					return fmt.Errorf("knows %q, want %q", known, want)
				}
				return nil
			})
		}
	}
}

// change moves a cluster, or gives or takes a permission.
func (d *district) change(random *rand.Rand, names []string) {
	if random.IntN(2) == 0 {
		name := slices.Sorted(maps.Keys(d.clusters))[random.IntN(len(d.clusters))]
		set := append([]string{""}, names...)[random.IntN(len(names)+1)]
		if _, err := d.admin.move(d.t.Context(), name, set); err != nil {
			d.t.Fatal(err)
		}
		d.clusters[name] = set
		return
	}
	user, set := []string{"ann", "bob"}[random.IntN(2)], names[random.IntN(len(names))]
	if d.granted[user+"/"+set+"/get"] {
		d.revoke(user, set, "get")
	} else {
		d.grant(user, set, "get")
	}
}
