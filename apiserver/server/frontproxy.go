package server

import (
	"context"
	"crypto/x509"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

var frontProxyRefused = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Name:           "clusterregistry_front_proxy_refused",
	Help:           "1 while the server rejects the front proxy configuration of the host cluster and keeps using the last good one.",
	StabilityLevel: metrics.ALPHA,
}, nil)

func init() { legacyregistry.MustRegister(frontProxyRefused) }

// resync is how often the host's word is judged again, and what is refused of it
// said again.
const resync = 10 * time.Minute

// frontProxy is by what the server knows the host's front proxy. It follows the
// host's ConfigMap, and each content is judged as the first one was at the start:
// what would let others pass for the front proxy is not adopted, and what was
// said before stays in force. So no one gets in by a change of that ConfigMap,
// and the host's API continues to work for as long as its front proxy keeps its certificate.
type frontProxy struct {
	host    kubernetes.Interface
	options *genericoptions.DelegatingAuthenticationOptions
	current atomic.Pointer[adopted]

	mu        sync.Mutex
	listeners []dynamiccertificates.Listener
}

var (
	_ dynamiccertificates.CAContentProvider = &frontProxy{}
	_ dynamiccertificates.ControllerRunner  = &frontProxy{}
)

// adopted is what the server goes by.
type adopted struct {
	trust
	authority dynamiccertificates.CAContentProvider
}

// followFrontProxy returns how the front proxy is known, from what was read at
// the start on.
func followFrontProxy(host kubernetes.Interface, options *genericoptions.DelegatingAuthenticationOptions, first trust) (*authenticatorfactory.RequestHeaderConfig, error) {
	f := &frontProxy{host: host, options: options}
	if err := f.adopt(first); err != nil {
		return nil, err
	}
	of := func(values func(trust) []string) headerrequest.StringSliceProvider {
		return headerrequest.StringSliceProviderFunc(func() []string { return values(f.current.Load().trust) })
	}
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   f,
		AllowedClientNames:  of(func(t trust) []string { return t.allowedNames }),
		UsernameHeaders:     of(func(t trust) []string { return t.userHeaders }),
		UIDHeaders:          of(func(t trust) []string { return t.uidHeaders }),
		GroupHeaders:        of(func(t trust) []string { return t.groupHeaders }),
		ExtraHeaderPrefixes: of(func(t trust) []string { return t.extraPrefixes }),
	}, nil
}

// adopt goes by t from now on, if it can.
func (f *frontProxy) adopt(t trust) error {
	if err := t.check(); err != nil {
		return err
	}
	authority, err := dynamiccertificates.NewStaticCAContent("requestheader CA of the host cluster", []byte(t.frontProxyCA))
	if err != nil {
		return err
	}
	last := f.current.Swap(&adopted{t, authority})
	if last == nil || last.frontProxyCA == t.frontProxyCA {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, listener := range f.listeners {
		listener.Enqueue()
	}
	return nil
}

// follow judges a content of the host's ConfigMap.
func (f *frontProxy) follow(config *corev1.ConfigMap) {
	t, err := trustOf(config, f.options)
	if err == nil {
		err = f.adopt(t)
	}
	if err != nil {
		frontProxyRefused.WithLabelValues().Set(1)
		klog.ErrorS(err, "The changed front proxy configuration of the host cluster is not used; the last good one stays in force. A server that starts now would refuse to", "from", authenticationConfig)
		return
	}
	frontProxyRefused.Reset()
}

// RunOnce does nothing: what was read at the start is in force already.
func (*frontProxy) RunOnce(context.Context) error { return nil }

// Run follows the ConfigMap until ctx ends.
func (f *frontProxy) Run(ctx context.Context, _ int) {
	informer := coreinformers.NewFilteredConfigMapInformer(f.host, trustNamespace, resync, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, trustName).String()
	})
	follow := func(object any) {
		if config, ok := object.(*corev1.ConfigMap); ok && config.Name == trustName {
			f.follow(config)
		}
	}
	// When it is deleted, what it said last stays in force.
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: follow, UpdateFunc: func(_, object any) { follow(object) }}); err != nil {
		klog.ErrorS(err, "Changes of the front proxy configuration are not reloaded")
		return
	}
	informer.RunWithContext(ctx)
}

// Name says what this is.
func (*frontProxy) Name() string { return "the front proxy's CA, from " + authenticationConfig }

// AddListener adds who is to learn of another CA.
func (f *frontProxy) AddListener(listener dynamiccertificates.Listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, listener)
}

// CurrentCABundleContent returns the CA in PEM.
func (f *frontProxy) CurrentCABundleContent() []byte {
	return f.current.Load().authority.CurrentCABundleContent()
}

// VerifyOptions returns how the front proxy's certificate is verified.
func (f *frontProxy) VerifyOptions() (x509.VerifyOptions, bool) {
	return f.current.Load().authority.VerifyOptions()
}
