package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// labelProcess is on each namespace that tests make, with the process that made it. What is
// of a process that has ended was left by a run that was killed.
const labelProcess = "e2e.clusterregistry.io/process"

// thisProcess is how labelProcess names this process.
func thisProcess() string { return strconv.Itoa(os.Getpid()) + "-" + startOf(os.Getpid()) }

// runs reports whether a process that labelProcess names has not ended. Its number may be that
// of another one by now, which was started later.
func runs(name string) bool {
	number, start, _ := strings.Cut(name, "-")
	pid, err := strconv.Atoi(number)
	return err == nil && start != "" && startOf(pid) == start
}

// startOf returns when a process was started, in the kernel's ticks, and nothing when it has
// ended.
func startOf(pid int) string {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The name of the program, in parentheses, may have spaces.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	const start = 22 - 3 // proc(5) counts from 1, and the first here is the third
	return fields[start]
}

// removeLeftovers removes what runs have left that were killed: their namespaces, with the
// registries there, which the operator lets go of; what is named after these namespaces, and is
// in none; and nodes that take no pods.
func removeLeftovers(ctx context.Context, c client.Client) error {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces, client.HasLabels{labelProcess}); err != nil {
		return err
	}
	var left []*corev1.Namespace
	for i := range namespaces.Items {
		if namespace := &namespaces.Items[i]; !runs(namespace.Labels[labelProcess]) {
			left = append(left, namespace)
		}
	}
	if len(left) == 0 {
		return nil
	}
	var errs []error
	for _, namespace := range left {
		errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, namespace)), removeNamedAfter(ctx, c, namespace.Name))
	}
	errs = append(errs, uncordon(ctx, c))
	for _, namespace := range left {
		if err := await(ctx, func(ctx context.Context) error { return namespaceGone(ctx, c, namespace) }); err != nil {
			errs = append(errs, fmt.Errorf("namespace %s, which a run has left that was killed, does not go %w", namespace.Name, err))
		}
	}
	return errors.Join(errs...)
}

// removeNamedAfter deletes what tests make outside of their namespace, and name after it.
func removeNamedAfter(ctx context.Context, c client.Client, namespace string) error {
	var errs []error
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &storagev1.StorageClassList{}} {
		if err := c.List(ctx, list); err != nil {
			errs = append(errs, err)
			continue
		}
		objects, err := meta.ExtractList(list)
		errs = append(errs, err)
		for _, object := range objects {
			if o, is := object.(client.Object); is && strings.HasPrefix(o.GetName(), namespace) {
				errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, o)))
			}
		}
	}
	return errors.Join(errs...)
}

// uncordon lets pods onto all nodes.
func uncordon(ctx context.Context, c client.Client) error {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return err
	}
	var errs []error
	for i := range nodes.Items {
		if nodes.Items[i].Spec.Unschedulable {
			errs = append(errs, c.Patch(ctx, &nodes.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":false}}`))))
		}
	}
	return errors.Join(errs...)
}
