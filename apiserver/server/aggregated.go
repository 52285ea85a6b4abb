package server

import (
	"context"
	"fmt"

	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// aggregated lets the host cluster decide who asks, what they may, and what is
// admitted.
func (o *Options) aggregated(ctx context.Context, c *Config) error {
	config, options := c.generic, o.Recommended
	if err := options.CoreAPI.ApplyTo(config); err != nil {
		return fmt.Errorf("connect to the host cluster: %w; outside of a pod, set --kubeconfig", err)
	}
	client, err := kubernetes.NewForConfig(config.ClientConfig)
	if err != nil {
		return err
	}
	trusted, err := o.askHost(ctx, client)
	if err != nil {
		return err
	}
	if err := delegateAuthentication(options.Authentication, config, trusted); err != nil {
		return err
	}
	answerPlain(&config.Config)
	options.Authorization.CustomRoundTripperFn = askPatiently
	if err := options.Authorization.ApplyTo(&config.Authorization); err != nil {
		return err
	}
	if err := o.hostDecision(c); err != nil {
		return err
	}
	reviewOnce(&config.Config)
	if err := options.Features.ApplyTo(&config.Config, client, config.SharedInformerFactory); err != nil {
		return err
	}
	queueFairly(&config.Config)
	return o.admission(config, client)
}

// askHost checks that the host can be trusted with authentication, returns what
// it is trusted by, and fits admission to what it serves.
func (o *Options) askHost(ctx context.Context, client kubernetes.Interface) (trust, error) {
	trusted, err := readTrust(ctx, o.Recommended.Authentication, client)
	if err != nil {
		return trusted, err
	}
	if err := trusted.check(); err != nil {
		return trusted, err
	}
	off, err := probeHost(ctx, client, o.TolerateMissingPermissions)
	if err != nil {
		return trusted, err
	}
	for _, plugin := range off {
		if plugin == fairness {
			// Queues by user take its place.
			o.Recommended.Features.EnablePriorityAndFairness = false
			continue
		}
		o.Recommended.Admission.DefaultOffPlugins.Insert(plugin)
	}
	return trusted, nil
}

func (o *Options) admission(config *genericserver.RecommendedConfig, client kubernetes.Interface) error {
	dynamicClient, err := dynamic.NewForConfig(config.ClientConfig)
	if err != nil {
		return err
	}
	initializers, err := o.Recommended.ExtraAdmissionInitializers(config)
	if err != nil {
		return err
	}
	return o.Recommended.Admission.ApplyTo(&config.Config, config.SharedInformerFactory, client, dynamicClient, o.Recommended.FeatureGate, config.EffectiveVersion, initializers...)
}
