package feed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	informer "github.com/clusterregistry/operator/client/informers/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/verify"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// connections is how many there are at once, and connectionsOf how many of them are from one
	// address.
	connections, connectionsOf = 512, 32
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
	Say func(state contract.FunctionState, message string)
	// Record is where it is kept what was last answered.
	Record  Record
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
	f := &fleet{Settings: config.Settings, clusters: clusters, unwatched: config.Unwatched, clock: config.Clock, remedy: config.Record.remedy(), entries: map[string]*entry{}, gone: map[string]time.Time{}}
	verifier := verify.New(verify.Config{
		Clusters: clusters, Probe: config.Probe, Clock: config.Clock, Found: f.changed,
		// Only the leader knows that of the host cluster itself, and all replicas answer the same.
		Own:    func(string, v1beta1.Endpoint) bool { return false },
		Wanted: func(cluster *v1beta1.Cluster) bool { _, _, reason := config.offer(cluster); return reason == "" },
	})
	f.known = verifier.Known
	return &Server{
		Config: config, fleet: f, identity: identity, verifier: verifier, permissions: newPermissions(config.Reviews, config.Hides, config.Clock),
		answers: newAnswers(), load: load{callers: map[string]*share{}},
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
// followed. What is wrong with these is no reason to end: it is said, and tried again.
func (s *Server) Serve(ctx context.Context, address, certificate, key string) {
	s.shown = &shown{certificate: certificate, key: key, clock: s.Clock}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.verifier.Run(ctx) })
	running.Go(func() { s.report(ctx) })
	for ctx.Err() == nil {
		err := s.listen(ctx, address)
		s.shown.fail(err)
		select {
		case <-ctx.Done():
		case <-s.Clock.After(look):
		}
	}
}

// listen answers at an address until ctx ends.
func (s *Server) listen(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for requests: %w", err)
	}
	s.shown.fail(nil)
	// One connection has one request at a time: what is bounded per connection is per request.
	listener = &bounded{Listener: netutil.LimitListener(listener, connections), of: map[string]int{}}
	server := s.httpServer()
	failed := make(chan error, 1)
	go func() {
		failed <- server.Serve(tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: s.shown.handshake,
		}))
	}()
	select {
	case <-ctx.Done():
	case err := <-failed:
		return err
	}
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), look)
	defer end()
	if server.Shutdown(ending) != nil {
		_ = server.Close() // who reads slowly asks again
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// httpServer returns a server that waits for no client for long.
func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      waiting + time.Minute,
		IdleTimeout:       10 * time.Second,
		MaxHeaderBytes:    maxToken + 16<<10,
		ErrorLog:          log.New(panics{}, "", 0),
	}
}

// report says how the function is, until ctx ends.
func (s *Server) report(ctx context.Context) {
	ticker := s.Clock.NewTicker(look)
	defer ticker.Stop()
	for {
		err := s.recall(ctx)
		s.Metrics.judged(s.fleet, err)
		if err == nil || errors.Is(err, errNoClusters) {
			_, err = s.shown.get()
		}
		switch {
		case err == nil:
			s.Say(contract.FunctionRunning, "")
		case !s.fleet.started():
			s.Say(contract.FunctionStarting, fmt.Sprintf("Requests are not answered: %v.", err))
		default:
			s.Say(contract.FunctionFailing, fmt.Sprintf("Requests are not answered: %v.", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}
