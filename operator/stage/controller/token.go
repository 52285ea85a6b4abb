package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/tokens"
	"github.com/clusterregistry/operator/operator/verdict"
)

// renewTokens replaces one replica whose token the host cluster refuses, and is complete
// when there is none. In both modes the Lease takes a token.
func (s *Stage) renewTokens(ctx context.Context, deployment *appsv1.Deployment, pods []corev1.Pod) verdict.Verdict {
	if s.found.Rolling != "" {
		return done // they are replaced anyway
	}
	rolling, v := tokens.Holders{Objects: s.Objects, What: "controller", Account: contract.ControllerSuffix, Deployment: deployment, Pods: pods, Replaced: func(pod, why string) {
		s.Event(corev1.EventTypeNormal, "ControllerReplaced", operatorv1alpha1.ConditionControllerReady, "pod %s is replaced by another: %s", pod, why)
	}}.Renew(ctx)
	s.found.Rolling = rolling
	return v
}
