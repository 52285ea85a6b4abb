package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/storage"
)

// TestListOfSeveralSets: clusters of a few sets are read by the index of each, and are those
// of one moment whatever moves meanwhile.
func TestListOfSeveralSets(t *testing.T) {
	o := small(t, quick)
	o.makeSets("red")
	o.put("a1", "red")
	o.put("hidden", "")
	for _, set := range []string{"blue", "green", "red"} {
		o.grants.set(true, "cid", set, "get")
	}
	if got := o.read(0, "cid", "v1beta1/clusters", plain).names(); len(got) != 4 { // the record of what cid sees is written
		t.Fatalf("cid sees %v", got)
	}
	// lists are those of clusters: the set of each that has an index, or "all".
	var lists []string
	meanwhile := func() {}
	o.stored.listing = func(key string, of storage.SelectionPredicate) {
		if strings.Trim(key, "/") != "clusters" {
			return
		}
		if set, exact := of.Field.RequiresExactMatch("spec.clusterSet"); exact {
			lists = append(lists, set)
		} else {
			lists = append(lists, "all")
		}
		if len(lists) == 2 {
			meanwhile()
		}
	}
	expect := func(reason, path string, names, read []string) list {
		t.Helper()
		lists = nil
		got := o.read(0, "cid", path, plain)
		var order []string
		for _, item := range got.Items {
			order = append(order, item.Name)
		}
		if !slices.Equal(order, names) || !slices.Equal(lists, read) {
			t.Errorf("%s: %v by reading %v; want %v by reading %v", reason, order, lists, names, read)
		}
		return got
	}
	each := []string{"blue", "green", "red"}
	expect("all", "v1beta1/clusters", []string{"a1", "b1", "b2", "g1"}, each)
	expect("of any version", "v1beta1/clusters?resourceVersion=0", []string{"a1", "b1", "b2", "g1"}, each)
	expect("with a label", "v1beta1/clusters?labelSelector=clusterregistry.k8s.io/clusterset+notin+(red)", []string{"b1", "b2", "g1"}, each)
	expect("of one set", "v1beta1/clusters?fieldSelector=spec.clusterSet%3Dblue", []string{"b1", "b2"}, []string{"blue"})
	expect("by another index", "v1beta1/clusters?fieldSelector=spec.id%3Done", nil, []string{"all"})
	first := expect("the first page", "v1beta1/clusters?limit=3", []string{"a1", "b1", "b2"}, each)
	second := expect("the second page", "v1beta1/clusters?limit=3&continue="+first.Metadata.Continue, []string{"g1"}, []string{"all"})
	if second.Metadata.Continue != "" {
		t.Error("there is a third page")
	}
	last := expect("a page that has all", "v1beta1/clusters?limit=4", []string{"a1", "b1", "b2", "g1"}, each)
	if last.Metadata.Continue != "" {
		t.Error("there is a page after all")
	}
	expect("of one version", "v1beta1/clusters?resourceVersionMatch=Exact&resourceVersion="+last.Metadata.ResourceVersion, []string{"a1", "b1", "b2", "g1"}, []string{"all"})
	for i, move := range []struct{ cluster, to string }{{"b1", "red"}, {"b1", "blue"}, {"a1", ""}} {
		meanwhile = func() {
			meanwhile = func() {}
			o.move(move.cluster, move.to)
		}
		want := []string{"a1", "b1", "b2", "g1"}
		if move.to == "" {
			want = want[1:]
		}
		lists = nil
		got := o.read(0, "cid", "v1beta1/clusters", plain)
		if names := got.names(); !slices.Equal(names, want) || !slices.Contains(lists, "all") {
			t.Errorf("%d: while %s moved to %q: %v by reading %v, want %v", i, move.cluster, move.to, names, lists, want)
		}
	}
}

// TestListOfManySets: so many sets are not read one by one.
func TestListOfManySets(t *testing.T) {
	o := newOffice(t, quick)
	for i := range 33 {
		set := fmt.Sprintf("set-%02d", i)
		o.makeSets(set)
		o.put(fmt.Sprintf("cluster-%02d", i), set)
		o.grants.set(true, "cid", set, "get")
	}
	o.read(0, "cid", "v1beta1/clusters", plain)
	lists := 0
	o.stored.listing = func(key string, _ storage.SelectionPredicate) {
		if strings.Trim(key, "/") == "clusters" {
			lists++
		}
	}
	if got := o.read(0, "cid", "v1beta1/clusters", plain).names(); len(got) != 33 || lists != 1 {
		t.Errorf("%d clusters by %d lists", len(got), lists)
	}
}
