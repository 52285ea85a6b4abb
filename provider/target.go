package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// target is how a cluster is reached, and by which plugin.
type target struct {
	cluster  *v1beta1.Cluster
	endpoint *v1beta1.Endpoint
	access   *v1beta1.Access
	plugin   int
	// url is that of the endpoint, and proxy that of its proxy; nil for none.
	url, proxy *url.URL
	// key is a hash over all of it by which one cluster, reached in one way, is told from
	// others. It changes with nothing else of the Cluster.
	key string
}

// target returns how a cluster is reached, or why it must not be: without that, it is not
// engaged, and doesn't stay so.
func (o *Options) target(c *v1beta1.Cluster) (*target, error) {
	if c.DeletionTimestamp != nil {
		return nil, errors.New("its Cluster is being deleted")
	}
	if verified := condition(c, v1beta1.ConditionIdentityVerified); verified != nil && verified.Status == metav1.ConditionFalse {
		return nil, fmt.Errorf("its condition IdentityVerified is False (%s: %s): another cluster may answer at its address", verified.Reason, verified.Message)
	}
	at := c.Spec.EndpointFor(o.ClientAddress)
	if at < 0 {
		return nil, errors.New("its Cluster has no endpoint for this client: add one whose clientCIDRs contain its address, or one without")
	}
	t := &target{cluster: c, endpoint: &c.Spec.Endpoints[at]}
	// The registry refuses what is not valid. It is refused again, because credentials are
	// sent there.
	var err error
	if t.url, err = o.parse(t.endpoint.URL, fmt.Sprintf("the https URL of its endpoint %s", t.endpoint.Name), "https"); err != nil {
		return nil, err
	}
	if t.endpoint.ProxyURL != "" {
		if t.proxy, err = o.parse(t.endpoint.ProxyURL, fmt.Sprintf("the http, https or socks5 URL in proxyURL of its endpoint %s", t.endpoint.Name), "https", "http", "socks5"); err != nil {
			return nil, err
		}
	}
	if t.plugin, t.access = o.plugin(c); t.access == nil {
		return nil, errors.New("its Cluster has no access with the audience Controller for which there is a plugin")
	}
	t.key, err = t.hash()
	return t, err
}

// plugin returns the plugin for a cluster, and the entry that it is for, or nil.
func (o *Options) plugin(c *v1beta1.Cluster) (int, *v1beta1.Access) {
	for i := range o.Plugins {
		for j := range c.Spec.Access {
			if o.Plugins[i].isFor(&c.Spec.Access[j]) {
				return i, &c.Spec.Access[j]
			}
		}
	}
	return 0, nil
}

func (t *target) hash() (string, error) {
	// Where else the endpoint is for doesn't matter to a client that has chosen it.
	endpoint := *t.endpoint
	endpoint.ClientCIDRs = nil
	content, err := json.Marshal(struct {
		ID       string
		Endpoint v1beta1.Endpoint
		Access   *v1beta1.Access
		Plugin   int
	}{t.cluster.Spec.ID, endpoint, t.access, t.plugin})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// available returns why a cluster is not to be engaged yet, by its condition Available. That
// counts only if it is of the spec as it is now: what was observed of another address says
// nothing of this one. A reporter that doesn't say what it has observed is believed.
func available(c *v1beta1.Cluster) error {
	switch is := condition(c, v1beta1.ConditionAvailable); {
	case is == nil:
		return errors.New("it has no condition Available yet: does a controller probe the clusters of this registry?")
	case is.Status != metav1.ConditionTrue:
		return fmt.Errorf("its condition Available is %s (%s: %s)", is.Status, is.Reason, is.Message)
	case is.ObservedGeneration > 0 && is.ObservedGeneration != c.Generation:
		return fmt.Errorf("its condition Available is of generation %d of its Cluster, which has %d: waiting for the next probe", is.ObservedGeneration, c.Generation)
	}
	return nil
}

func condition(c *v1beta1.Cluster, name string) *metav1.Condition {
	if c.Status == nil {
		return nil
	}
	return meta.FindStatusCondition(c.Status.Conditions, name)
}

// config returns the configuration of a client of the cluster, with credentials by the
// plugin.
func (t *target) config(ctx context.Context, o *Options) (*rest.Config, error) {
	config := &rest.Config{
		Host:            t.endpoint.URL,
		TLSClientConfig: rest.TLSClientConfig{CAData: t.endpoint.CABundle, ServerName: t.endpoint.TLSServerName},
		Dial:            o.Dial,
		QPS:             20, Burst: 30, // as controller-runtime's own
	}
	if t.proxy != nil {
		config.Proxy = http.ProxyURL(t.proxy)
	}
	plugin := &o.Plugins[t.plugin]
	if plugin.Authorize != nil {
		if err := plugin.Authorize(ctx, config, t.cluster, t.access); err != nil {
			return nil, fmt.Errorf("credentials by access %s: %w", t.access.Name, err)
		}
		t.limit(config, o)
		return config, nil
	}
	exec := plugin.Exec.DeepCopy()
	// A controller has no one to ask.
	exec.InteractiveMode, exec.StdinUnavailable = clientcmdapi.NeverExecInteractiveMode, true
	if exec.APIVersion == "" {
		exec.APIVersion = "client.authentication.k8s.io/v1"
	}
	if exec.ProvideClusterInfo {
		given, err := json.Marshal(t.access.PluginConfig(t.cluster.Name))
		if err != nil {
			return nil, err
		}
		exec.Config = &runtime.Unknown{Raw: given, ContentType: runtime.ContentTypeJSON}
	}
	config.ExecProvider = exec
	t.limit(config, o)
	return config, nil
}
