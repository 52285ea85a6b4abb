package feed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	informer "github.com/clusterregistry/operator/client/informers/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/verify"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// connections is how many there are at once.
	connections = 512
	// look is the time between two looks at whether answers are complete.
	look = 10 * time.Second
)

// Config is what a [Server] needs.
type Config struct {
	Settings
	// Informer has what the registry holds.
	Informer informer.ClusterInformer
	// Probe asks one API server: of what it has not reached, no address is published.
	Probe func(context.Context, probe.Target) probe.Result
	// Unwatched returns why clusters can't be watched for a while; nil when they can.
	Unwatched func() error
	// Tokens and Reviews are of the host cluster.
	Tokens  authenticationv1client.TokenReviewInterface
	Reviews authorizationv1client.SubjectAccessReviewInterface
	// Audience is whom tokens are for: the URL of the server.
	Audience string
	// Hides says that the registry shows callers the clusters of their ClusterSets alone.
	Hides bool
	// Say is told how the function is, with a sentence unless it runs.
	Say     func(state contract.FunctionState, message string)
	Clock   clock.WithTicker
	Metrics *Metrics
}

// New returns a server that follows the informer, which the caller starts.
func New(config Config) (*Server, error) {
	s, err := newServer(config, config.Informer.Lister())
	if err != nil {
		return nil, err
	}
	if err := config.Informer.Informer().SetTransform(trim); err != nil {
		return nil, err
	}
	noted, err := config.Informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: s.changed, UpdateFunc: func(_, now any) { s.changed(now) }, DeleteFunc: s.changed,
	})
	if err != nil {
		return nil, err
	}
	s.fleet.synced = noted.HasSynced
	return s, nil
}

// newServer returns a server that follows no one yet.
func newServer(config Config, clusters lister.ClusterLister) (*Server, error) {
	identity, err := newIdentity(config.Audience, config.Tokens, config.Clock)
	if err != nil {
		return nil, err
	}
	f := &fleet{Settings: config.Settings, clusters: clusters, unwatched: config.Unwatched, clock: config.Clock, entries: map[string]*entry{}, gone: map[string]time.Time{}}
	verifier := verify.New(verify.Config{
		Clusters: clusters, Probe: config.Probe, Clock: config.Clock, Found: f.changed,
		// Only the leader knows that of the host cluster itself, and all replicas answer the same.
		Own:    func(string, v1beta1.Endpoint) bool { return false },
		Wanted: func(cluster *v1beta1.Cluster) bool { _, _, reason := config.offer(cluster); return reason == "" },
	})
	f.known = verifier.Known
	return &Server{
		Config: config, fleet: f, identity: identity, verifier: verifier, permissions: newPermissions(config.Reviews, config.Hides, config.Clock),
		answers: newAnswers(), load: load{callers: map[string]int{}},
	}, nil
}

// changed has a cluster looked at, and its endpoint asked.
func (s *Server) changed(object any) {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return // no object of this informer
	}
	s.fleet.changed(name)
	s.verifier.Queue.Add(name)
}

// trim drops what no answer has before a cluster is kept in memory.
func trim(object any) (any, error) {
	if cluster, ok := object.(*v1beta1.Cluster); ok {
		cluster.Annotations, cluster.ManagedFields = nil, nil
		if cluster.Status != nil {
			cluster.Status = &v1beta1.ClusterStatus{Conditions: cluster.Status.Conditions}
		}
	}
	return object, nil
}

// Serve answers at an address until ctx ends, with the certificate in two files, of which changes are
// followed.
func (s *Server) Serve(ctx context.Context, address, certificate, key string) error {
	watcher, err := certwatcher.New(certificate, key)
	if err != nil {
		return fmt.Errorf("read the certificate of the feed: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for requests of the feed: %w", err)
	}
	server := s.httpServer()
	// One connection has one request at a time: what is bounded per connection is per request.
	tlsListener := tls.NewListener(netutil.LimitListener(listener, connections), &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watcher.GetCertificate, NextProtos: []string{"http/1.1"}})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	failed := make(chan error, 2)
	running.Go(func() { s.verifier.Run(ctx) })
	running.Go(func() { s.report(ctx) })
	running.Go(func() { failed <- watcher.Start(ctx) })
	running.Go(func() { failed <- server.Serve(tlsListener) })
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), look)
	defer end()
	cancel()
	if closing := server.Shutdown(ending); err == nil {
		err = closing
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// httpServer returns a server that waits for no client for long.
func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      waiting + time.Minute,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    maxToken + 16<<10,
		ErrorLog:          log.New(io.Discard, "", 0), // anyone who connects would fill the log
	}
}

// report says how the function is, until ctx ends.
func (s *Server) report(ctx context.Context) {
	ticker := s.Clock.NewTicker(look)
	defer ticker.Stop()
	for {
		_, err := s.fleet.complete()
		s.Metrics.judged(s.fleet, err)
		switch {
		case err == nil:
			s.Say(contract.FunctionRunning, "")
		case !s.fleet.started():
			s.Say(contract.FunctionStarting, fmt.Sprintf("Requests are answered with 503: %v.", err))
		default:
			s.Say(contract.FunctionFailing, fmt.Sprintf("Requests are answered with 503: %v.", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}
