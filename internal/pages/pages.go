// Package pages lists objects a page at a time.
package pages

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Size is how many objects are in a page, unless another client.Limit is asked for. Whoever may
// write to a namespace makes as many objects as fit into etcd, of 1.5 MiB each, which take several
// times that when they are decoded, with any labels: one page of them must fit into the
// operator's memory.
const Size = 10

// Each lists objects of a kind, of which it is given an empty list, and calls visit for each
// page, as long as that asks for more. Whatever visit keeps of a page stays in memory.
func Each[L client.ObjectList](ctx context.Context, reader client.Reader, kind L, visit func(page L) (more bool), options ...client.ListOption) error {
	asked := client.ListOptions{Limit: Size}
	asked.ApplyOptions(options)
	for {
		// What is decoded into a list that was used before may keep fields of its objects.
		page := kind.DeepCopyObject().(L)
		if err := reader.List(ctx, page, &asked); err != nil {
			return err
		}
		if !visit(page) || page.GetContinue() == "" {
			return nil
		}
		asked.Continue = page.GetContinue()
	}
}
