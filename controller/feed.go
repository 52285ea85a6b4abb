package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/controller/feed"
	"github.com/clusterregistry/operator/internal/contract"
)

// The values of --feed-visibility, which are those of spec.server.authorization.visibility.
const (
	visibleAll  = "All"
	visibleSets = "ClusterSets"
)

// feedOptions are those of the function that answers programs which ask for clusters.
type feedOptions struct {
	file, address    string
	certificate, key string
	visibility       string

	// settings are what the file says, once it is validated.
	settings feed.Settings
}

func (o *feedOptions) on() bool { return o.file != "" }

func (o *feedOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.file, "feed-file", "", "File with what programs that request clusters over HTTPS get of each: an object in JSON, as spec.controllers.feed of a ClusterRegistry has it. It is read at start. Default: off.")
	fs.StringVar(&o.address, "feed-bind-address", ":9443", "Where each replica answers requests for clusters (--feed-file). They need a token of the host cluster with the audience https://NAME-controller.NAMESPACE.svc, for --registry-name and --namespace.")
	fs.StringVar(&o.certificate, "feed-tls-cert-file", "", "File with the certificate for --feed-bind-address, in PEM. Changes are followed.")
	fs.StringVar(&o.key, "feed-tls-private-key-file", "", "File with its private key.")
	fs.StringVar(&o.visibility, "feed-visibility", visibleSets, "Which clusters callers see who may list clusters: All, or those of the ClusterSets that they may see, as with --visibility=ClusterSets of the servers.")
}

// validate completes the options, or says what is wrong with them.
func (o *feedOptions) validate(all *options) error {
	switch {
	case !o.on():
		return nil
	case all.registryName == "" || all.namespace == "":
		return fmt.Errorf("--feed-file needs --registry-name and --namespace (or POD_NAMESPACE), which are the name and the namespace of the registry: tokens of callers are for them")
	case o.certificate == "" || o.key == "":
		return fmt.Errorf("--feed-file needs --feed-tls-cert-file and --feed-tls-private-key-file")
	case o.visibility != visibleAll && o.visibility != visibleSets:
		return fmt.Errorf("--feed-visibility is %q: set %s or %s", o.visibility, visibleAll, visibleSets)
	}
	content, err := os.ReadFile(o.file)
	if err != nil {
		return fmt.Errorf("--feed-file: %w", err)
	}
	if o.settings, err = feed.ParseSettings(content); err != nil {
		return fmt.Errorf("--feed-file: %s: %w", o.file, err)
	}
	return nil
}

// everywhere runs in each replica, whether it leads or not.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// runFeed answers programs that ask for clusters. What is wrong with it ends no other function.
func (p *program) runFeed(ctx context.Context) error {
	say := p.speaker(contract.FeedFunction)
	say(contract.FunctionStarting, "Requests are answered with 503: waiting for the clusters of the registry.")
	if err := p.answer(ctx, say); err != nil {
		say(contract.FunctionFailing, fmt.Sprintf("Requests are not answered: %v.", err))
	}
	return nil
}

// answer answers until ctx ends.
func (p *program) answer(ctx context.Context, say func(contract.FunctionState, string)) error {
	// Reviews of permissions, of which there may be many, do not keep those of tokens waiting.
	tokens, err := kubernetes.NewForConfig(p.hostClients())
	if err != nil {
		return err
	}
	host, err := kubernetes.NewForConfig(p.hostClients())
	if err != nil {
		return err
	}
	prober := p.prober(ctx, say)
	if prober == nil {
		return nil
	}
	factory, clusters, err := p.watch(say)
	if err != nil {
		return err
	}
	config := feed.Config{
		Settings: p.feed.settings, Informer: clusters, Probe: prober.Probe, Unwatched: p.trouble.Lasting,
		Tokens: tokens.AuthenticationV1().TokenReviews(), Reviews: host.AuthorizationV1().SubjectAccessReviews(),
		Audience: "https://" + p.registryName + contract.ControllerSuffix + "." + p.namespace + ".svc", Hides: p.feed.visibility == visibleSets,
		Say: say, Clock: clock.RealClock{}, Metrics: p.metrics.feed,
	}
	if p.leaderElect {
		config.Record = feed.Record{Leases: p.host.CoordinationV1().Leases(p.namespace), Namespace: p.namespace, Name: p.lease}
	}
	server, err := feed.New(config)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	server.Serve(ctx, p.feed.address, p.feed.certificate, p.feed.key)
	return nil
}
