package server

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/tokens"
	"github.com/clusterregistry/operator/operator/turn"
	"github.com/clusterregistry/operator/operator/verdict"
)

// renewTokens replaces one server whose token the host cluster refuses, and is complete
// when there is none. Servers of an independent registry have no token. While servers are
// being rolled out, they are replaced anyway.
func (s *Stage) renewTokens(ctx context.Context, deployment *appsv1.Deployment, pods []corev1.Pod) verdict.Verdict {
	if s.Registry.Spec.Mode != operatorv1alpha1.ModeAggregated || turn.RollingOut(s.Objects, deployment) {
		return done
	}
	holders := tokens.Holders{Objects: s.Objects, What: "servers", Account: contract.ServerSuffix, Deployment: deployment, Pods: pods, Replaced: func(pod, why string) {
		s.Event(corev1.EventTypeNormal, "ServerReplaced", operatorv1alpha1.ConditionServerReady, "pod %s is replaced by another: %s", pod, why)
	}}
	if s.MembersReplacing {
		holders.Wait = "the etcd members are replaced"
	}
	rolling, v := holders.Renew(ctx)
	if rolling != "" {
		s.found.Rolling = rolling
	}
	return v
}
