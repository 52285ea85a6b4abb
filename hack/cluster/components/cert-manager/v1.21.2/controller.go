package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	certificatesmetrics "github.com/cert-manager/cert-manager/pkg/controller/certificates/metrics"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	"github.com/cert-manager/cert-manager/pkg/healthz"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// controllers are the ones behind selfSigned and CA issuers; ACME, Vault and
// Venafi need services that no local cluster has.
var controllers = []string{
	approver.ControllerName,
	ca.CRControllerName,
	selfsigned.CRControllerName,
	issuing.ControllerName,
	keymanager.ControllerName,
	certificatesmetrics.ControllerName,
	readiness.ControllerName,
	requestmanager.ControllerName,
	revisionmanager.ControllerName,
	trigger.ControllerName,
	issuers.ControllerName,
	clusterissuers.ControllerName,
}

func runController(ctx context.Context, args []string) error {
	fs := tolerant("controller")
	clusterResourceNamespace := fs.String("cluster-resource-namespace", "kube-system", "namespace of the Secrets that ClusterIssuers name")
	if err := fs.Parse(args); err != nil {
		return err
	}
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		KubernetesAPIQPS:   100,
		KubernetesAPIBurst: 200,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: *clusterResourceNamespace},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return err
	}
	root, err := factory.Build()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if err := serve(ctx, group, root); err != nil {
		return err
	}
	for _, name := range controllers {
		c, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("set up %s: %w", name, err)
		}
		group.Go(func() error { return c.Run(5, ctx) })
	}
	root.SharedInformerFactory.Start(ctx.Done())
	root.KubeSharedInformerFactory.Start(ctx.Done())
	root.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

// serve answers /metrics on 9402 and /livez on 9403, where the chart's probe
// and scrape annotations expect them.
func serve(ctx context.Context, group *errgroup.Group, root *controller.Context) error {
	metricsListener, err := net.Listen("tcp", ":9402")
	if err != nil {
		return err
	}
	metricsServer := root.Metrics.NewServer(metricsListener)
	group.Go(func() error {
		if err := metricsServer.Serve(metricsListener); err != http.ErrServerClosed {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return metricsServer.Close()
	})
	healthListener, err := net.Listen("tcp", ":9403")
	if err != nil {
		return err
	}
	group.Go(func() error { return healthz.NewServer(20*time.Second).Start(ctx, healthListener) })
	return nil
}
