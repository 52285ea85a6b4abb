package certificates

import (
	"context"
	"slices"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/kubeconfig"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Retire returns the servers' CA as it is to be published: without the previous one as
// soon as every server, and the feed, shows a certificate that the present one signed, if it is
// Retirable.
func Retire(ctx context.Context, s servers.Access, serving trust.Authority) (trust.Authority, error) {
	if !serving.Retirable() || serving.Current == nil {
		return serving, nil
	}
	pods, err := s.Pods(ctx, operand.ComponentServer)
	if err != nil {
		return serving, err
	}
	pods = operand.Running(pods)
	answers, err := s.AskPods(ctx, pods, s.ServerName(), serving.Current)
	if err != nil {
		return serving, err
	}
	failed := slices.ContainsFunc(answers, func(a servers.Answer) bool { return a.Err != nil })
	if failed || len(answers) == 0 || len(answers) < len(pods) {
		return serving, nil
	}
	if waits, err := trust.FeedShows(ctx, s.Objects, serving); err != nil || waits != "" {
		return serving, err
	}
	serving.Published = nil
	return serving, nil
}

// announce publishes the CAs that are new before the servers show a certificate
// that one of them signed.
func (s *Stage) announce(ctx context.Context) verdict.Verdict {
	if s.Authorities.Serving.Current == nil || s.Authorities.Serving.Announced() || len(s.Authorities.Serving.Published) == 0 || s.ReadOnly() {
		return done
	}
	if endpoint := s.Registry.Status.Endpoint; s.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent && endpoint != nil {
		endpoint.CABundle = s.Authorities.Serving.Bundle()
		// That it can't be written yet is for the last stage to report.
		if v := kubeconfig.Write(ctx, s.Objects, endpoint.URL, endpoint.CABundle); !v.Complete() && v.Err != nil {
			return v
		}
		return done
	}
	for _, service := range s.Rendered.Stages[render.StageEndpoint] {
		current := &apiregistrationv1.APIService{}
		err := s.Live.Get(ctx, client.ObjectKeyFromObject(service), current)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return verdict.Failed(err)
		case err != nil || !apply.Belongs(current, s.Owner()):
			continue // it is created, or found to be another's, when its turn comes
		}
		if err := s.Apply(ctx, service); err != nil {
			return verdict.Failed(err)
		}
	}
	return done
}
