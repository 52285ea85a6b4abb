// Package table shows objects to people, in the columns that kubectl get prints.
package table

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// None stands for an empty cell.
const None = "<none>"

// Convertor shows objects of type T, which is a pointer, as rows.
type Convertor[T runtime.Object] struct {
	// Columns are the columns; those of priority 1 are shown by "kubectl get -o wide".
	Columns []metav1.TableColumnDefinition
	// Row returns the cells of an object whose name and age are given. An empty
	// string is shown as None.
	Row func(object T, name, age string) []any
}

var _ rest.TableConvertor = Convertor[runtime.Object]{}

// ConvertToTable shows an object or a list of objects.
func (c Convertor[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		out.ColumnDefinitions = c.Columns
	}
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion, out.Continue, out.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(object); err == nil {
		out.ResourceVersion = single.GetResourceVersion()
	}
	var err error
	out.Rows, err = metatable.MetaToTableRow(object, func(object runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		cells := c.Row(object.(T), name, age)
		for i, cell := range cells {
			if cell == "" {
				cells[i] = None
			}
		}
		return cells, nil
	})
	return out, err
}
