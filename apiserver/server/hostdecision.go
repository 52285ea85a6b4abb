package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericserver "k8s.io/apiserver/pkg/server"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// HostDecision is how far the server goes by what the host cluster has decided on a request
// before it forwarded it.
type HostDecision string

const (
	// HostDecisionAuto lets a request pass that the host has authorized, unless the host may
	// leave a part of the decision to the server.
	HostDecisionAuto HostDecision = "Auto"
	// HostDecisionNever asks the host again.
	HostDecisionNever HostDecision = "Never"
)

const (
	// lastDeciding is the newest version of Kubernetes whose kube-apiserver is known to forward
	// nothing but what it has decided on. A later one may forward what is allowed on conditions
	// that the server has to ask for (KEP-5681).
	lastDeciding = "1.37"
	// hostRecheck is how often the host is asked for its version.
	hostRecheck = 30 * time.Second
	// hostKnown is how long its answer counts.
	hostKnown = 2 * time.Minute
)

var hostDecides = metrics.NewGaugeVec(&metrics.GaugeOpts{
	Name:           "clusterregistry_host_decision_counts",
	Help:           "1 while a request that the host cluster has authorized and forwarded is not reviewed again, 0 while it is.",
	StabilityLevel: metrics.ALPHA,
}, nil)

func init() { legacyregistry.MustRegister(hostDecides) }

// apiVerbs are those of requests for resources that a host decides on as such.
var apiVerbs = objectVerbs.Union(sets.New("list", "watch", "create", "deletecollection"))

// hostFirst returns an authorizer that lets a request pass that the host has authorized, if
// the host decides. It goes for the request's own attributes alone: everything else that is
// asked for it, such as the permission to create what an update does not find, is not what
// the host was asked about.
func hostFirst(decides func() bool, otherwise authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
		info, ok := request.RequestInfoFrom(ctx)
		if ok && info.APIGroup == clusterregistry.GroupName && apiVerbs.Has(info.Verb) && isForwarded(attributes, info) && decides() {
			return authorizer.DecisionAllow, "the host cluster has authorized the request", nil
		}
		return otherwise.Authorize(ctx, attributes)
	})
}

// decidingHost knows whether the host decides on all that it forwards.
type decidingHost struct {
	version func(context.Context) (string, error)
	until   atomic.Pointer[time.Time]
}

// decides reports whether the host is known to decide.
func (h *decidingHost) decides() bool {
	until := h.until.Load()
	return until != nil && time.Now().Before(*until)
}

// follow asks the host for its version until one may leave decisions to others. From then on
// nothing is trusted: in an upgrade, some servers of a host are newer than others.
func (h *decidingHost) follow(ctx context.Context) {
	hostDecides.WithLabelValues().Set(0)
	for h.ask(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(hostRecheck):
		}
	}
}

// ask asks for the version, and returns whether it is worth it to ask again.
func (h *decidingHost) ask(ctx context.Context) bool {
	found, err := h.version(ctx)
	var parsed *version.Version
	if err == nil {
		parsed, err = version.ParseGeneric(found)
	}
	switch {
	case err != nil:
		klog.V(2).InfoS("The version of the host cluster is not known", "err", err)
	case version.MustParseGeneric(lastDeciding).LessThan(version.MajorMinor(parsed.Major(), parsed.Minor())):
		h.until.Store(nil)
		hostDecides.WithLabelValues().Set(0)
		klog.InfoS("Requests that the host cluster forwards are authorized by a review of their own: it may forward what it has allowed on conditions", "version", found, "lastKnown", lastDeciding)
		return false
	default:
		h.until.Store(new(time.Now().Add(hostKnown)))
	}
	counts := 0.0
	if h.decides() {
		counts = 1
	}
	hostDecides.WithLabelValues().Set(counts)
	return true
}

// hostVersion returns what asks a host for its version, on a connection of its own each time:
// not always the same one of its servers.
func hostVersion(config *restclient.Config) (func(context.Context) (string, error), error) {
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := restclient.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, hostRecheck)
		defer cancel()
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
		if err != nil {
			return "", err
		}
		ask.Close = true
		answer, err := client.Do(ask)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s: %s", ask.URL, answer.Status)
		}
		var info apiversion.Info
		err = json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&info)
		return info.GitVersion, err
	}, nil
}

// hostDecision makes the handlers of requests go by what the host has decided.
func (o *Options) hostDecision(c *Config) error {
	if o.HostDecision == HostDecisionNever {
		hostDecides.WithLabelValues().Set(0)
		return nil
	}
	ask, err := hostVersion(c.generic.ClientConfig)
	if err != nil {
		return fmt.Errorf("ask the host cluster for its version: %w", err)
	}
	host := &decidingHost{version: ask}
	authorizeRequests(&c.generic.Config, func(exact authorizer.Authorizer) authorizer.Authorizer { return hostFirst(host.decides, exact) })
	c.extend = func(server *genericserver.GenericAPIServer) error {
		return server.AddPostStartHook("host-version", func(hook genericserver.PostStartHookContext) error {
			go host.follow(hook.Context)
			return nil
		})
	}
	return nil
}
