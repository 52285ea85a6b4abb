package main

import (
	"context"

	"github.com/cert-manager/cert-manager/internal/webhook"
	"github.com/cert-manager/cert-manager/pkg/webhook/options"
	"k8s.io/klog/v2"
)

func runWebhook(ctx context.Context, args []string) error {
	config, err := options.NewWebhookConfiguration()
	if err != nil {
		return err
	}
	fs := tolerant("webhook")
	options.AddConfigFlags(fs, config)
	if err := fs.Parse(args); err != nil {
		return err
	}
	server, err := webhook.NewCertManagerWebhookServer(klog.Background(), *config)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
