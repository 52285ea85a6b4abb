package simulation

import (
	"context"
	"errors"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// part writes a part of an object.
type part struct {
	writer
	name string
}

// Get implements client.SubResourceReader.
func (p part) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errors.New("the operator reads no " + p.name)
}

// Create implements client.SubResourceWriter.
func (p part) Create(_ context.Context, object, sub client.Object, _ ...client.SubResourceCreateOption) error {
	eviction, is := sub.(*policyv1.Eviction)
	if !is {
		return apierrors.NewBadRequest(p.name + " can't be created")
	}
	tree, err := treeOf(object)
	if err != nil {
		return err
	}
	return p.w.write("evict", idOf(tree), func() error { return p.w.host.evict(idOf(tree), eviction.DeleteOptions.Preconditions.UID) })
}

// Update implements client.SubResourceWriter.
func (p part) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errors.New("the operator updates no " + p.name)
}

// Patch implements client.SubResourceWriter.
func (p part) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return p.patch(object, patch, p.name)
}

// Apply implements client.SubResourceWriter.
func (p part) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errors.New("the operator applies no " + p.name)
}
