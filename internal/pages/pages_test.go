package pages_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterregistry/operator/internal/pages"
	"github.com/clusterregistry/operator/internal/pages/pagestest"
)

// pods are so many of namespace team, of which every one has an annotation that the others lack,
// and one of another namespace.
func pods(many int) []client.Object {
	out := []client.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "p"}}}
	for i := range many {
		out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprintf("p%03d", i), Annotations: map[string]string{fmt.Sprint(i): ""}}})
	}
	return out
}

// TestEach visits each object once, as it is, in pages of what was asked for, and none when it is
// not to go on.
func TestEach(t *testing.T) {
	for _, test := range []struct {
		many, until int
		options     []client.ListOption
		want        []int
	}{
		{many: 0, want: []int{0}},
		{many: pages.Size, want: []int{pages.Size}},
		{many: 2*pages.Size + 1, want: []int{pages.Size, pages.Size, 1}},
		{many: 2*pages.Size + 1, until: pages.Size + 1, want: []int{pages.Size, pages.Size}},
		{many: 5, options: []client.ListOption{client.Limit(2)}, want: []int{2, 2, 1}},
	} {
		host := pagestest.Reader(t, fake.NewClientBuilder().WithObjects(pods(test.many)...).Build())
		var got []int
		names := map[string]bool{}
		err := pages.Each(t.Context(), host, &corev1.PodList{}, func(page *corev1.PodList) bool {
			got = append(got, len(page.Items))
			for i := range page.Items {
				names[page.Items[i].Name] = true
				if len(page.Items[i].Annotations) != 1 {
					t.Errorf("pod %s has annotations of others: %v", page.Items[i].Name, page.Items[i].Annotations)
				}
			}
			return test.until == 0 || len(names) < test.until
		}, append(test.options, client.InNamespace("team"))...)
		visited := 0
		for _, many := range got {
			visited += many
		}
		if err != nil || !slices.Equal(got, test.want) || len(names) != visited {
			t.Errorf("%d pods: %d in pages of %v, want %v, error %v", test.many, len(names), got, test.want, err)
		}
	}
}

// TestEachFails has what a later page fails with be the error: whoever lists must not take what it
// has seen for everything.
func TestEachFails(t *testing.T) {
	expired := errors.New("the continue token has expired")
	host := interceptor.NewClient(fake.NewClientBuilder().WithObjects(pods(pages.Size+1)...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked := client.ListOptions{}
			if asked.ApplyOptions(options); asked.Continue != "" {
				return expired
			}
			return errors.Join(c.List(ctx, list, options...), pagestest.Cut(list, options...))
		}})
	visited := 0
	err := pages.Each(t.Context(), host, &corev1.PodList{}, func(page *corev1.PodList) bool {
		visited += len(page.Items)
		return true
	}, client.InNamespace("team"))
	if !errors.Is(err, expired) || visited != pages.Size {
		t.Errorf("visited %d pods, error %v", visited, err)
	}
}

// TestCut has a test's host cluster refuse what would be the end of an operator.
func TestCut(t *testing.T) {
	for name, test := range map[string]struct {
		list    client.ObjectList
		limit   int64
		refused bool
	}{
		"everything":       {&corev1.PodList{}, 0, true},
		"too large a page": {&corev1.PodList{}, pages.Size + 1, true},
		"a page":           {&corev1.PodList{}, pages.Size, false},
		"metadata of all":  {&metav1.PartialObjectMetadataList{}, 0, true},
		"all nodes":        {&corev1.NodeList{}, 0, true},
		"a page of nodes":  {&corev1.NodeList{}, pagestest.MostNodes, false},
	} {
		if err := pagestest.Cut(test.list, client.Limit(test.limit)); (err != nil) != test.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
