// Package server is the registry's API server: options from flags, completed
// into a configuration that can't be forged, completed into a server that runs.
package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/storage/cluster"
	"github.com/clusterregistry/operator/apiserver/visibility"
	"github.com/clusterregistry/operator/internal/contract"
)

// Mode is how the server learns who asks and what they may.
type Mode string

const (
	// Aggregated asks the host cluster, behind whose aggregator the server stands.
	Aggregated Mode = "aggregated"
	// Independent asks no one: the registry has its own users and roles.
	Independent Mode = "independent"
)

const (
	// shutdownDelay is how long a server that was told to stop keeps serving,
	// so that those who route to it learn of it before it is gone.
	shutdownDelay = 15 * time.Second
	// watchTermination is how long watches may take to end after that. Without
	// it they would hold the server up until its last timeout, a minute later.
	watchTermination = 10 * time.Second
	// visibilityCache is how long a review that lets clusters be seen is kept, and
	// visibilityRecheck how often one is repeated for an open watch.
	visibilityCache   = 10 * time.Second
	visibilityRecheck = 30 * time.Second
	// reconcileInterval is how soon the bootstrap roles are tried again.
	reconcileInterval = time.Second
)

// Options are what the command line says.
type Options struct {
	// Mode has no default: what a registry trusts is decided, not assumed.
	Mode Mode
	// Run holds timeouts, limits and graceful shutdown. RecommendedOptions lack it.
	Run *genericoptions.ServerRunOptions
	// Recommended holds the rest.
	Recommended *genericoptions.RecommendedOptions
	// TolerateMissingPermissions turns an admission plugin off, loudly, when the
	// server may not read what it needs. By default the server refuses to start.
	TolerateMissingPermissions bool
	// AuthenticationConfig is the file that names the issuers of tokens, in
	// independent mode. Empty means that there are none.
	AuthenticationConfig string
	// AuthorizationWebhook is the kubeconfig of the server that decides on
	// requests in independent mode. Empty means RBAC.
	AuthorizationWebhook string

	// StorageVersion is the version of the API that clusters are written to etcd in: every
	// release reads that of the one before it.
	StorageVersion string

	// HostDecision is how far the host's own decision on a request counts, in aggregated mode.
	HostDecision HostDecision
	// GuardedFields is what becomes of a write that changes guarded fields of a
	// cluster without the permission for that.
	GuardedFields cluster.GuardedFields
	// Visibility is which clusters a caller sees, and VisibilityPeriods how long what it
	// goes by is relied on.
	Visibility        visibility.Visibility
	VisibilityPeriods visibility.Periods

	// only holds the flags that mean something in one mode alone.
	only map[Mode]*pflag.FlagSet
}

// NewOptions returns the defaults.
func NewOptions() (*Options, error) {
	if err := registerKubeVersion(); err != nil {
		return nil, err
	}
	o := &Options{
		StorageVersion:    v1beta1.SchemeGroupVersion.Version,
		HostDecision:      HostDecisionAuto,
		GuardedFields:     cluster.GuardedFieldsOff,
		Visibility:        visibility.All,
		VisibilityPeriods: visibility.Periods{Cache: visibilityCache, Recheck: visibilityRecheck},
		Run:               genericoptions.NewServerRunOptions(),
		Recommended:       genericoptions.NewRecommendedOptions(contract.KeyPrefix(clusterregistry.GroupName), codecs.LegacyCodec(v1beta1.SchemeGroupVersion)),
	}
	o.Run.ShutdownDelayDuration = shutdownDelay
	o.Run.ShutdownWatchTerminationGracePeriod = watchTermination
	// The aggregator can't replay a request's body after a GOAWAY
	// (kubernetes#135285); over HTTP/1.1 a draining connection loses none.
	o.Recommended.SecureServing.DisableHTTP2Serving = true
	o.Recommended.SecureServing.MinTLSVersion = "VersionTLS12"
	return o, nil
}

// registerKubeVersion tells the libraries which Kubernetes they are of. They
// would take it from the program's stamp, which is the registry's own version.
func registerKubeVersion() error {
	compatibility.DefaultComponentGlobalsRegistry.Reset()
	version := basecompatibility.NewEffectiveVersionFromString(baseversion.DefaultKubeBinaryVersion, "", "")
	return compatibility.DefaultComponentGlobalsRegistry.Register(basecompatibility.DefaultKubeComponent, version, utilfeature.DefaultMutableFeatureGate)
}

// AddFlags adds all flags to fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar((*string)(&o.Mode), "mode", "", "How the server authenticates and authorizes requests: \"aggregated\" asks the host cluster that it is registered with; \"independent\" uses client certificates, tokens and roles of its own. Required.")
	fs.StringVar(&o.StorageVersion, "storage-version", o.StorageVersion, "The version of clusterregistry.k8s.io that clusters are written to etcd in: v1alpha1 or v1beta1. Both are read. ClusterSets are written in v1beta1, which alone has them.")
	fs.StringVar((*string)(&o.GuardedFields), "guarded-fields", string(o.GuardedFields), "What happens to a write that changes endpoints or access of a cluster without permission to update clusters/endpoints, or its id, manager or sourceRef without permission to update clusters/identity: \"Off\" asks for no permission, \"Warn\" accepts it with a warning, \"Enforce\" refuses it.")
	fs.StringVar((*string)(&o.Visibility), "visibility", string(o.Visibility), "Which clusters callers with permissions on clusters see and may change: \"All\" all of them, \"ClusterSets\" those in the ClusterSets that it has permissions on clustersets/clusters for.")
	fs.DurationVar(&o.VisibilityPeriods.Cache, "visibility-cache-ttl", o.VisibilityPeriods.Cache, "How long --visibility=ClusterSets keeps a review of clustersets/clusters that allows something; one that denies is kept for six times as long. 0 keeps none.")
	fs.DurationVar(&o.VisibilityPeriods.Recheck, "visibility-recheck-period", o.VisibilityPeriods.Recheck, "How often --visibility=ClusterSets checks whether the caller of an open watch still sees the same ClusterSets; up to a fifth is added at random.")
	o.Run.AddUniversalFlags(fs)
	o.Recommended.Etcd.AddFlags(fs)
	o.Recommended.SecureServing.AddFlags(fs)
	o.Recommended.Audit.AddFlags(fs)
	o.Recommended.Features.AddFlags(fs)
	o.Recommended.EgressSelector.AddFlags(fs)
	o.Recommended.Traces.AddFlags(fs)

	aggregated := pflag.NewFlagSet(string(Aggregated), pflag.ContinueOnError)
	aggregated.BoolVar(&o.TolerateMissingPermissions, "tolerate-missing-admission-permissions", false, "Turn an admission plugin off, instead of refusing to start, when the server lacks the permission to read what it needs.")
	aggregated.StringVar((*string)(&o.HostDecision), "host-decision", string(o.HostDecision), "What the decision of the host cluster on a request counts for that it forwards: \"Auto\" lets the request pass, unless the host cluster is of a version that may forward what it has not decided on; \"Never\" asks the host cluster again.")
	o.Recommended.Authentication.AddFlags(aggregated)
	o.Recommended.Authorization.AddFlags(aggregated)
	o.Recommended.CoreAPI.AddFlags(aggregated)
	o.Recommended.Admission.AddFlags(aggregated)
	aggregated.AddFlag(fs.Lookup("enable-priority-and-fairness")) // it reads its rules of the host
	aggregated.AddFlag(fs.Lookup("enable-garbage-collector"))     // the collector is the host's

	independent := pflag.NewFlagSet(string(Independent), pflag.ContinueOnError)
	independent.StringVar(&o.AuthenticationConfig, "authentication-config", "", "File with an AuthenticationConfiguration (apiserver.config.k8s.io) that names the issuers of JSON web tokens. Changes are reloaded automatically.")
	independent.StringVar(&o.AuthorizationWebhook, "authorization-webhook-config-file", "", "File in kubeconfig format of the server that decides on requests, in place of the registry's own ClusterRoles and ClusterRoleBindings.")

	o.only = map[Mode]*pflag.FlagSet{Aggregated: aggregated, Independent: independent}
	for _, flags := range o.only {
		fs.AddFlagSet(flags)
	}
}

// inBoth are flags that come with those of aggregated mode and serve both.
var inBoth = sets.New("client-ca-file", "authorization-webhook-cache-authorized-ttl", "authorization-webhook-cache-unauthorized-ttl")

// Validate returns everything that is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	switch o.Mode {
	case Aggregated, Independent:
	case "":
		errs = append(errs, fmt.Errorf("--mode is required: \"aggregated\" behind a host cluster's aggregator, \"independent\" on its own"))
	default:
		errs = append(errs, fmt.Errorf("--mode=%s is unknown; use --mode=aggregated or --mode=independent", o.Mode))
	}
	if versions := []string{v1alpha1.SchemeGroupVersion.Version, v1beta1.SchemeGroupVersion.Version}; !slices.Contains(versions, o.StorageVersion) {
		errs = append(errs, fmt.Errorf("--storage-version=%s is unknown; use --storage-version=%s", o.StorageVersion, strings.Join(versions, " or ")))
	}
	switch o.GuardedFields {
	case cluster.GuardedFieldsOff, cluster.GuardedFieldsWarn, cluster.GuardedFieldsEnforce:
	default:
		errs = append(errs, fmt.Errorf("--guarded-fields=%s is unknown; use --guarded-fields=Off, Warn or Enforce", o.GuardedFields))
	}
	switch o.HostDecision {
	case HostDecisionAuto, HostDecisionNever:
	default:
		errs = append(errs, fmt.Errorf("--host-decision=%s is unknown; use --host-decision=Auto or Never", o.HostDecision))
	}
	switch o.Visibility {
	case visibility.All, visibility.ClusterSets:
	default:
		errs = append(errs, fmt.Errorf("--visibility=%s is unknown; use --visibility=All or ClusterSets", o.Visibility))
	}
	if o.VisibilityPeriods.Cache < 0 || o.VisibilityPeriods.Recheck <= 0 {
		errs = append(errs, fmt.Errorf("--visibility-cache-ttl=%s and --visibility-recheck-period=%s: neither can be negative, nor the second 0", o.VisibilityPeriods.Cache, o.VisibilityPeriods.Recheck))
	}
	if overrides := o.Recommended.Etcd.EtcdServersOverrides; len(overrides) > 0 {
		errs = append(errs, fmt.Errorf("--etcd-servers-overrides=%s: all that a registry stores has to be in one etcd, since revisions of clusters, locks and views are compared; name it in --etcd-servers alone", strings.Join(overrides, ",")))
	}
	if o.Mode == Independent && o.Recommended.Authentication.ClientCert.ClientCA == "" && o.AuthenticationConfig == "" {
		errs = append(errs, fmt.Errorf("no one could be authenticated: --mode=independent needs --client-ca-file, --authentication-config, or both"))
	}
	for mode, flags := range o.only {
		flags.VisitAll(func(flag *pflag.Flag) {
			if flag.Changed && mode != o.Mode && o.Mode != "" && !inBoth.Has(flag.Name) {
				errs = append(errs, fmt.Errorf("--%s has no effect in --mode=%s; it belongs to --mode=%s", flag.Name, o.Mode, mode))
			}
		})
	}
	errs = append(errs, o.Run.Validate()...)
	errs = append(errs, o.Recommended.Validate()...)
	return utilerrors.NewAggregate(errs)
}
