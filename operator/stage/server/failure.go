package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/internal/diagnose"
)

// crashes is how often a new server may fail until it is given up.
const crashes = 3

// failure returns why the servers that are rendered will not come up, as far as can be
// told; nil as long as they may.
func (s *Stage) failure(ctx context.Context, deployment *appsv1.Deployment, pods []corev1.Pod) error {
	image := deployment.Spec.Template.Spec.Containers[0].Image
	wanted := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Spec.Containers[0].Image != image
	})
	for _, pod := range wanted {
		for _, status := range pod.Status.ContainerStatuses {
			// One that has failed and is not restarted yet has one more crash than restarts.
			if status.RestartCount+1 >= crashes && diagnose.Failure(status) != nil {
				return fmt.Errorf("pod %s: %s", pod.Name, diagnose.Container(status))
			}
		}
	}
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return nil
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "ProgressDeadlineExceeded" {
			return errors.New(strings.Join(append([]string{condition.Message}, s.Diagnoser().Pods(ctx, wanted)...), "; "))
		}
	}
	return nil
}
