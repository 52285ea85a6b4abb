package server

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
	"github.com/clusterregistry/operator/apiserver/storage/clusterset"
	"github.com/clusterregistry/operator/apiserver/storage/heartbeat"
	storagevisible "github.com/clusterregistry/operator/apiserver/storage/visible"
	"github.com/clusterregistry/operator/apiserver/visibility"
)

// What reviews of visibility may cost another server: so many a second, and so many at once
// after a while without.
const (
	reviewsPerSecond = 50
	reviewsAtOnce    = 200
)

// visible is which clusters a server shows, and how it learns that.
type visible struct {
	visibility visibility.Visibility
	periods    visibility.Periods
	// remote says that another server reviews.
	remote bool
	// masters says that the group system:masters may do everything.
	masters bool
}

func (o *Options) visible() visible {
	return visible{o.Visibility, o.VisibilityPeriods, o.Mode == Aggregated || o.AuthorizationWebhook != "", o.Mode == Aggregated}
}

// resources returns clusters and their status, and their heartbeats, as callers see them. What
// the server itself reads of them, it reads of the storage beneath.
func (v visible) resources(options generic.RESTOptionsGetter, authorizer authorizer.UnconditionalAuthorizer, clusters *cluster.REST, status *cluster.StatusREST, sets *clusterset.REST, beats *heartbeat.REST) (resources, rest.Storage, error) {
	if v.visibility != visibility.ClusterSets {
		return resources{"clusters": clusters, "clusters/status": status}, beats, nil
	}
	records, err := visibility.NewRecords(options)
	if err != nil {
		return nil, nil, err
	}
	config := visibility.Config{Authorizer: authorizer, Sets: names(sets), Records: records, Periods: v.periods, Masters: v.masters}
	if v.remote {
		config.Limiter = flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewsAtOnce)
	}
	shown, shownStatus := storagevisible.New(clusters, status, visibility.New(config))
	return resources{"clusters": shown, "clusters/status": shownStatus}, shown.Heartbeats(beats), nil
}

// names returns what lists the names of all ClusterSets. A list without a version is as new
// as etcd, wherever it is served from.
func names(sets *clusterset.REST) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		object, err := sets.List(ctx, &internalversion.ListOptions{})
		if err != nil {
			return nil, err
		}
		var out []string
		for _, set := range object.(*clusterregistry.ClusterSetList).Items {
			out = append(out, set.Name)
		}
		return out, nil
	}
}
