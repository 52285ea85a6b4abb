package integration

import (
	"context"
	"slices"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// reader reads clusters in one version and encoding.
type reader struct {
	version, encoding string
	list              func(context.Context) (runtime.Object, error)
	get               func(context.Context, string) (runtime.Object, error)
	watch             func(context.Context, string) (watch.Interface, error)
}

func (r reader) String() string { return r.version + " as " + r.encoding }

// readers returns those of both versions, in JSON and in protobuf, in turn.
func readers(t *testing.T, config *rest.Config) (out []reader) {
	t.Helper()
	for _, encoding := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		encoded := rest.CopyConfig(config)
		encoded.ContentType, encoded.AcceptContentTypes = encoding, encoding
		clients, err := versioned.NewForConfig(encoded)
		if err != nil {
			t.Fatal(err)
		}
		alpha, beta := clients.ClusterregistryV1alpha1().Clusters(), clients.ClusterregistryV1beta1().Clusters()
		out = append(out, reader{"v1alpha1", encoding,
			func(ctx context.Context) (runtime.Object, error) { return alpha.List(ctx, metav1.ListOptions{}) },
			func(ctx context.Context, name string) (runtime.Object, error) {
				return alpha.Get(ctx, name, metav1.GetOptions{})
			},
			func(ctx context.Context, version string) (watch.Interface, error) {
				return alpha.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
			},
		}, reader{"v1beta1", encoding,
			func(ctx context.Context) (runtime.Object, error) { return beta.List(ctx, metav1.ListOptions{}) },
			func(ctx context.Context, name string) (runtime.Object, error) {
				return beta.Get(ctx, name, metav1.GetOptions{})
			},
			func(ctx context.Context, version string) (watch.Interface, error) {
				return beta.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
			},
		})
	}
	return out
}

// testEncodings has clients of both versions see the same in protobuf as in JSON: in lists, in
// gets, and in watches from before a cluster was moved.
func (d *district) testEncodings() {
	ctx, stop := context.WithTimeout(d.t.Context(), framework.Patience)
	defer stop()
	type watcher struct {
		reader
		user, from string
		answers    map[string]any
	}
	var watchers []watcher
	for user, config := range d.configs {
		answers := map[string]any{} // in JSON, by version and what was read
		for _, r := range readers(d.t, config) {
			list, err := r.list(ctx)
			if err != nil {
				d.t.Fatalf("%s lists %s: %v", user, r, err)
			}
			objects, err := meta.ExtractList(list)
			if err != nil {
				d.t.Fatal(err)
			}
			names := []string{}
			for _, object := range objects {
				names = append(names, object.(metav1.Object).GetName())
			}
			slices.Sort(names)
			if want := d.seen(user); !slices.Equal(names, want) {
				d.t.Errorf("%s lists %s: %q, want %q", user, r, names, want)
			}
			same(d.t, answers, user, r, "a list", objects)
			for _, name := range []string{"b1", "g1"} {
				got, err := r.get(ctx, name)
				if seen := slices.Contains(names, name); seen && err != nil || !seen && !apierrors.IsNotFound(err) {
					d.t.Errorf("%s gets %s in %s: %v", user, name, r, err)
				} else if seen {
					same(d.t, answers, user, r, name, got)
				}
			}
			accessor, err := meta.ListAccessor(list)
			if err != nil {
				d.t.Fatal(err)
			}
			watchers = append(watchers, watcher{r, user, accessor.GetResourceVersion(), answers})
		}
	}
	if _, err := d.admin.move(ctx, "b1", "green"); err != nil {
		d.t.Fatal(err)
	}
	for _, w := range watchers {
		// One at a time: what they see is looked at again and again.
		events, err := w.watch(ctx, w.from)
		if err != nil {
			d.t.Fatalf("%s watches %s: %v", w.user, w, err)
		}
		want := map[string]watch.EventType{"ann": watch.Deleted, "bob": watch.Added, "eve": watch.Modified}[w.user]
		event := <-events.ResultChan()
		events.Stop()
		if c, is := event.Object.(metav1.Object); event.Type != want || !is || c.GetName() != "b1" {
			d.t.Errorf("%s watches %s: %v, want %s", w.user, w, event, want)
			continue
		}
		same(d.t, w.answers, w.user, w.reader, "an event", event.Object)
	}
	if _, err := d.admin.move(ctx, "b1", d.clusters["b1"]); err != nil {
		d.t.Fatal(err)
	}
	d.settled("after b1 is back")
}

// same compares what was read with what the reader of JSON of the same version has read, which
// comes first.
func same(t *testing.T, answers map[string]any, user string, r reader, what string, got any) {
	t.Helper()
	key := r.version + " " + what
	first, known := answers[key]
	if !known {
		answers[key] = got
		return
	}
	if !apiequality.Semantic.DeepEqual(got, first) {
		t.Errorf("%s reads %s in %s:\n%+v\nand in JSON:\n%+v", user, what, r, got, first)
	}
}
