// Package pagestest has host clusters of tests list in pages, as kube-apiserver does.
package pagestest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/clusterregistry/operator/internal/pages"
)

// MostNodes is how many nodes may be read at once: no one but administrators and kubelets
// writes these.
const MostNodes = 500

// Reader returns a reader of a host cluster that lists in pages. A list of everything, or in
// pages that are too large, fails the test.
func Reader(t *testing.T, host client.WithWatch) client.WithWatch {
	return interceptor.NewClient(host, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if err := c.List(ctx, list, options...); err != nil {
			return err
		}
		err := Cut(list, options...)
		if err != nil {
			t.Error(err)
		}
		return err
	}})
}

// Cut leaves of a list of all objects the page that is asked for.
func Cut(list client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	most := int64(pages.Size)
	if _, are := list.(*corev1.NodeList); are {
		most = MostNodes
	}
	if asked.Limit < 1 || asked.Limit > most {
		return fmt.Errorf("a %T is read %d objects at a time, where 0 is all of them, and anyone may make many: want up to %d, see internal/pages", list, asked.Limit, most)
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b runtime.Object) int { return cmp.Compare(key(a), key(b)) })
	page := slices.DeleteFunc(all, func(o runtime.Object) bool { return key(o) <= asked.Continue })
	if int64(len(page)) > asked.Limit {
		page = page[:asked.Limit]
		list.SetContinue(key(page[len(page)-1]))
	}
	return meta.SetList(list, page)
}

// key orders objects as etcd does.
func key(object runtime.Object) string {
	o := object.(client.Object)
	return o.GetNamespace() + "/" + o.GetName()
}
