package clusterregistry

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/available"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/stage/backups"
	"github.com/clusterregistry/operator/operator/stage/certificates"
	"github.com/clusterregistry/operator/operator/stage/controller"
	"github.com/clusterregistry/operator/operator/stage/endpoint"
	"github.com/clusterregistry/operator/operator/stage/members"
	"github.com/clusterregistry/operator/operator/stage/restoring"
	"github.com/clusterregistry/operator/operator/stage/server"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// stages bring up one part of a registry each, by their conditions, and say what it waits
// for. What each is given of the ones before it, and what it leaves, is here.
var stages = map[string]func(*Reconciler, context.Context, *scope) verdict.Verdict{
	operatorv1alpha1.ConditionCertificatesReady: (*Reconciler).certificates,
	operatorv1alpha1.ConditionEtcdReady:         (*Reconciler).etcd,
	operatorv1alpha1.ConditionServerReady:       (*Reconciler).server,
	operatorv1alpha1.ConditionAPIServiceReady:   (*Reconciler).apiService,
	operatorv1alpha1.ConditionEndpointReady:     (*Reconciler).endpoint,
}

func (r *Reconciler) certificates(ctx context.Context, s *scope) verdict.Verdict {
	cas := r.rotation(s)
	if err := cas.TakeBack(ctx); err != nil {
		return verdict.Failed(err)
	}
	stage := certificates.Stage{Objects: s.Objects, CertManager: &r.certManager, Authorities: s.Authorities}
	v := stage.Run(ctx)
	if err := cas.KeepCopy(ctx); err != nil && v.Err == nil && v.State != verdict.ReadOnly {
		return verdict.Failed(fmt.Errorf("keep a copy of which CAs are in use: %w", err))
	}
	return v
}

func (r *Reconciler) etcd(ctx context.Context, s *scope) verdict.Verdict {
	stage := members.Stage{Objects: s.Objects, Ask: r.AskEtcd, Dial: r.DialEtcd, Authorities: s.Authorities, Identity: s.Identity, Volumes: s.Volumes, Release: s.Release.Members.Release,
		Remembered: r.revisions.Newest(client.ObjectKeyFromObject(s.Registry).String())}
	stage.Disarm = func(ctx context.Context, access etcd.Access, state etcd.State) error {
		return access.DisarmNoSpace(ctx, state)
	}
	stage.Mark = func(ctx context.Context, access etcd.Access, seen etcd.Position) (etcd.Position, error) {
		return access.Mark(ctx, seen)
	}
	stage.Ownership = members.Ownership{Owned: etcd.Access.Owned, Own: etcd.Access.Own, Watches: r.Watches}
	stage.Begin = s.restore.Begin
	s.Members = stage.Run(ctx)
	restoring.ReportServed(s.Pass)
	recovery.Report(s.Pass)
	s.Members.Verdict = r.recovery(s).Decide(ctx)
	return s.Members.Verdict
}

func (r *Reconciler) server(ctx context.Context, s *scope) verdict.Verdict {
	// A version of the API that the servers to come lack is unregistered before they come.
	if v := apiservice.Unregister(ctx, s.Objects, s.Release.Version); !v.Complete() {
		return v
	}
	held, replacing := s.withheld(), s.Members.Replacing
	if s.Recovering() != nil {
		held, replacing = done, false // they are stopped
	}
	stage := server.Stage{Access: r.access(s), Serving: s.Authorities.Serving.Bundle(), Identity: s.Identity, Upgrading: s.upgrade != nil, MembersReplacing: replacing, Held: held}
	s.Servers = stage.Run(ctx)
	return s.Servers.Verdict
}

// withheld says what of the spec the servers don't get: what keeps them from being made first,
// and what they do without last.
func (s *scope) withheld() verdict.Verdict {
	switch {
	case s.Keys.Held.State == verdict.Blocked || s.audit.Held.Complete() && !s.Keys.Held.Complete():
		return s.Keys.Held
	case !s.audit.Held.Complete():
		return s.audit.Held
	}
	return s.visibility.Held
}

func (r *Reconciler) apiService(ctx context.Context, s *scope) verdict.Verdict {
	s.registration = r.registering(s).Run(ctx)
	return s.registration.Verdict
}

// left looks after the registration of a registry whose reconcile has ended before that stage, and
// after its controller where another one has its place.
func (r *Reconciler) left(ctx context.Context, s *scope) verdict.Verdict {
	if s == nil {
		return done
	}
	if _, reached := s.found.Verdict(operatorv1alpha1.ConditionAPIServiceReady); reached {
		return done // and nothing keeps the registry from being observed
	}
	s.Aggregation = r.Aggregation(s.Pass)
	found := r.registering(s).Left(ctx, s.Pass)
	if !found.Complete() {
		s.found[operatorv1alpha1.ConditionAPIServiceReady] = found.Verdict
	}
	if v := controller.Left(ctx, s.Objects, found.TakenBy); !v.Complete() {
		s.found[operatorv1alpha1.ConditionControllerReady] = v
	}
	return found.Verdict
}

// registering is the stage that registers a registry, and releases it.
func (r *Reconciler) registering(s *scope) *apiservice.Stage {
	return &apiservice.Stage{Objects: s.Objects, Discovery: r.Discovery, HostCA: r.HostCA, MayAggregate: r.MayAggregate, Servers: s.Servers, Replaced: s.Authorities.Serving.Replaced()}
}

func (r *Reconciler) endpoint(ctx context.Context, s *scope) verdict.Verdict {
	issued, _ := s.Verdict(operatorv1alpha1.ConditionCertificatesReady)
	stage := endpoint.Stage{Access: r.access(s), Addresses: s.addresses, Serving: s.Authorities.Serving.Bundle(), Certificates: issued,
		Meet: r.Dial.Meet, Silences: &r.silences}
	return stage.Run(ctx)
}

// controller runs what acts on the content of the registry, where the spec asks for it.
// Whatever becomes of it, the registry is driven further.
func (r *Reconciler) controller(ctx context.Context, s *scope) {
	if len(s.Registry.Spec.Controllers.Functions()) == 0 {
		return // what there was of it is pruned
	}
	stage := controller.Stage{Objects: s.Objects, CertManager: &r.certManager, Authorities: s.Authorities, Release: s.Release,
		NotAllowed: render.ControllerNotAllowed(s.Registry.Namespace, r.Environment), TakenBy: s.registration.TakenBy, Unreached: s.reach.Refused}
	s.controller = stage.Run(ctx)
	if err := s.controller.Err; err != nil {
		logf.FromContext(ctx).Error(err, "run the controller of the registry; the operator will retry")
	}
	s.found[operatorv1alpha1.ConditionControllerReady] = s.controller.Verdict
}

// restoring is the stage that looks up a backup to begin with, with what is known by now.
func (r *Reconciler) restoring(s *scope) *restoring.Stage {
	return &restoring.Stage{Pass: s.Pass, Watches: r.Watches, Releases: r.Releases, Found: s.restore}
}

// saving is the stage of backups, with what is known by now.
func (s *scope) saving() *backups.Stage { return &backups.Stage{Pass: s.Pass, Found: s.backups} }

// backUp takes backups, where the spec asks for any. Whatever becomes of it, the registry is
// driven further.
func (s *scope) backUp(ctx context.Context) {
	if s.backups = s.saving().Run(ctx); s.Registry.Spec.Backup != nil {
		s.found[operatorv1alpha1.ConditionBackupReady] = s.backups.Verdict
	}
}

// available reads from the registry as clients do, however far the stages have got.
func (r *Reconciler) available(ctx context.Context, s *scope) available.Found {
	host, reached := s.said(operatorv1alpha1.ConditionAPIServiceReady)
	check := available.Check{Access: r.access(s), Outages: &r.outages, Awaits: s.firstUnusable(), Verified: reached && host.Complete(),
		Servers: s.Servers, Serving: s.Authorities.Serving.Bundle(), Versions: s.reliable(r.Releases), Known: version.Served(r.Releases)}
	return check.Run(ctx)
}

// access is the way to the API servers.
func (r *Reconciler) access(s *scope) servers.Access {
	return servers.Access{Objects: s.Objects, Host: r.Host, Ask: r.AskServer, Dial: r.Dial, Handshake: r.Handshake}
}

// firstUnusable returns the first part that a registry which was never complete still
// needs before clients can be served, nothing when there is none.
func (s *scope) firstUnusable() string {
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		if v, reached := s.said(kind); !reached || !v.Usable() {
			return kind
		}
	}
	return ""
}

// reliable are the versions of the API that clients can rely on now: in an upgrade
// those of both releases. There are none where it is not known which release runs.
func (s *scope) reliable(releases []version.Release) []string {
	if s.upgrade != nil {
		return version.ServesBoth(s.upgrade.From, s.upgrade.To)
	}
	if len(s.Release.Serves) > 0 {
		return s.Release.Serves
	}
	if s.Registry.Status.Operation != nil {
		return nil // an upgrade of another operator may have taken a version away
	}
	running, _ := version.Find(releases, s.Registry.Status.Version)
	return running.Serves
}
