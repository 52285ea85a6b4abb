package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/hack/cluster/addons"
)

// patience bounds the wait for the registry.
const patience = 10 * time.Minute

// untilReady waits until the registry is Ready, and prints each condition when
// it changes.
func untilReady(ctx context.Context, c client.Client, out io.Writer) error {
	fmt.Fprintf(out, "its conditions, as they change, for %s at most:\n", patience)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	var registry operatorv1alpha1.ClusterRegistry
	seen := progress{}
	err := addons.Wait(ctx, "ClusterRegistry default/fleet to be Ready", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "fleet"}, &registry); err != nil {
			return err
		}
		for _, line := range seen.changes(time.Since(start), parts(registry.Status.Conditions)) {
			fmt.Fprintln(out, line)
		}
		return ready(&registry)
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, failure(time.Since(start), registry.Status.Conditions))
	}
	return nil
}

// ready returns nil when a registry is as its spec says; the error says what is
// amiss.
func ready(registry *operatorv1alpha1.ClusterRegistry) error {
	condition := meta.FindStatusCondition(registry.Status.Conditions, operatorv1alpha1.ConditionReady)
	switch {
	case condition == nil:
		return errors.New("the operator has not reported on it yet")
	case registry.Status.ObservedGeneration != registry.Generation:
		return errors.New("the operator has not seen its newest spec yet")
	case condition.Status != metav1.ConditionTrue:
		return fmt.Errorf("condition Ready is %s: %s: %s", condition.Status, condition.Reason, condition.Message)
	}
	return nil
}

// parts leaves out the conditions that sum the others up, until they have
// something of their own to say.
func parts(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
		sum := c.Type == operatorv1alpha1.ConditionAvailable || c.Type == operatorv1alpha1.ConditionReady
		return c.Type == operatorv1alpha1.ConditionProgressing || sum && c.Status != metav1.ConditionTrue
	})
}

// progress is what was last told of each condition, by its type.
type progress map[string]metav1.Condition

// changes returns a line for each condition that is new or not as it was last
// told, in the order of the list. since is the time since the start.
func (p progress) changes(since time.Duration, conditions []metav1.Condition) []string {
	var lines []string
	for _, now := range conditions {
		told, known := p[now.Type]
		if known && told.Status == now.Status && told.Reason == now.Reason && told.Message == now.Message {
			continue
		}
		p[now.Type] = now
		message := strings.Join(strings.Fields(now.Message), " ")
		lines = append(lines, fmt.Sprintf("%6s  %-18s  %-7s  %-22s  %s", since.Round(time.Second), now.Type, now.Status, now.Reason, message))
	}
	return lines
}

// failure returns all conditions of a registry that did not become Ready, and
// what to look at.
func failure(since time.Duration, conditions []metav1.Condition) string {
	lines := []string{"its conditions:"}
	if len(conditions) == 0 {
		lines = append(lines, "  none: the operator has not acted on it")
	}
	lines = append(lines, progress{}.changes(since, conditions)...)
	return strings.Join(append(lines,
		"look at",
		"  kubectl describe creg fleet",
		"  kubectl get pods,pvc,certificates,events",
		"  kubectl --namespace=clusterregistry-system logs deployment/clusterregistry-operator --all-pods"), "\n")
}
