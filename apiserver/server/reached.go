package server

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/rest"
)

// etcdReached is the check that the server has reached etcd since it started, or that a member
// answers it although there is no majority, as when a whole cluster starts again and half of it
// does not come back. What etcd does later is for the checks of the groups etcd and
// etcd-readiness: a probe that excludes these keeps a server among the backends of the host
// cluster's APIService, which needs discovery, and one whose way to etcd is wrong never gets
// there.
func etcdReached(all []healthz.HealthChecker, way storagebackend.TransportConfig) healthz.HealthChecker {
	var ofEtcd []healthz.HealthChecker
	for _, check := range all {
		if strings.HasPrefix(check.Name(), "etcd") {
			ofEtcd = append(ofEtcd, check)
		}
	}
	var reached atomic.Bool
	return healthz.NamedCheck("reached-etcd", func(r *http.Request) error {
		if reached.Load() {
			return nil
		}
		for _, check := range ofEtcd {
			if err := check.Check(r); err != nil && !memberAnswers(r.Context(), way) {
				return err
			}
		}
		reached.Store(true)
		return nil
	})
}

// memberTimeout is how long a member may take to say which version it is.
const memberTimeout = time.Second

// memberAnswers reports whether a member says which version it is, which needs no majority.
func memberAnswers(ctx context.Context, way storagebackend.TransportConfig) bool {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	tls, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: way.CertFile, KeyFile: way.KeyFile, CAFile: way.TrustedCAFile}})
	if err != nil {
		return false
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}}
	answers := make(chan bool, len(way.ServerList))
	for _, server := range way.ServerList {
		go func() { answers <- saysVersion(ctx, client, server) }()
	}
	for range way.ServerList {
		if <-answers {
			return true
		}
	}
	return false
}

// saysVersion reports whether the member at a URL says which version it is.
func saysVersion(ctx context.Context, client *http.Client, server string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/version", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}
