package clusterregistry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/diagnose"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// etcdPort is where each member's pod listens for clients.
const etcdPort = "2379"

// etcd is complete when every member is ready, as the one that it was recorded as,
// from an up-to-date pod.
func (r *Reconciler) etcd(ctx context.Context, s *scope) verdict.Verdict {
	if s.registry.Spec.Etcd.External != nil {
		return r.externalEtcd(ctx, s)
	}
	if s.identityErr != nil {
		return verdict.Failed(s.identityErr)
	}
	if s.identity == nil && s.readOnly {
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "ConfigMap %s, the record of etcd's identity, does not exist yet", s.registry.Name+contract.IdentitySuffix)
	}
	if replicas := s.registry.Spec.Etcd.Replicas; s.identity == nil && replicas < 1 {
		// Past the schema; it must not be recorded.
		return verdict.Waiting(operatorv1alpha1.ReasonReplicasDiffer, "spec.etcd.replicas is %d, and etcd needs members: set it to 1, 3 or 5", replicas).AsReadOnly()
	}
	if s.identity == nil {
		if err := r.writeIdentity(ctx, s, s.firstRecord()); err != nil {
			return verdict.Failed(err)
		}
	}
	if err := r.ownRecord(ctx, s); err != nil {
		return verdict.Failed(err)
	}
	if v := s.identityProblem(); !v.Complete() {
		return v
	}
	if v := r.reissue(ctx, s, s.etcdLeaves()); !v.Complete() {
		return v
	}
	if err := unlessReadOnly(r.apply(ctx, s, s.rendered.Stages[render.StageEtcd]...)); err != nil {
		return verdict.Failed(err)
	}
	return r.members(ctx, s)
}

// members observes the members and records who they are as soon as all are ready.
func (r *Reconciler) members(ctx context.Context, s *scope) verdict.Verdict {
	set := &appsv1.StatefulSet{}
	if v := r.applied(ctx, s, render.StageEtcd, set); !v.Complete() {
		s.membersRolling = true
		return v
	}
	pods, err := r.pods(ctx, s, componentEtcd)
	if err != nil {
		return verdict.Failed(err)
	}
	access, v := r.access(ctx, s)
	if !v.Complete() {
		return v
	}
	for _, member := range render.EtcdMembers(s.registry, s.members) {
		access.Endpoints[member.Name] = member.ClientURL()
	}
	for _, pod := range pods {
		if pod.Status.PodIP != "" {
			access.Addresses[pod.Name] = net.JoinHostPort(pod.Status.PodIP, etcdPort)
		}
	}
	state := r.AskEtcd(ctx, access)
	s.reportEtcd(state)
	s.etcdState, s.etcdAccess = state, access
	if err := state.Check(s.identity.Identity); err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "%s; nothing is changed until the members that were recorded are back", err).AsReadOnly()
	}
	outdated := outdatedPods(set, pods)
	learned, err := r.learn(ctx, s, currentPods(set, pods, outdated))
	if err != nil {
		return verdict.Failed(err)
	}
	id := s.identity
	if id.ClusterID != "" {
		// Of a restored etcd it is another one than before.
		s.registry.Status.Etcd.ClusterID = id.ClusterID
	}
	next := roll{access, state, id.Identity, pods, outdated}
	s.membersRolling = set.Status.ObservedGeneration < set.Generation || underWay(s, len(access.Endpoints)-state.Serving(), pods, outdated) || next.proceeds()
	if len(outdated) > 0 {
		s.rolling = fmt.Sprintf("etcd: %d of %d members updated", len(pods)-len(outdated), len(pods))
	}
	if v := r.rollStuck(ctx, s, pods, outdated); !v.Complete() {
		return v
	}
	serves := id.ClusterID != "" && state.Serves() == nil
	if refusal := diagnose.Guard(pods); refusal != "" {
		return verdict.Waiting(operatorv1alpha1.ReasonDataLost, "%s", refusal).DegradedIf(serves)
	}
	if v := s.etcdTrouble(); !v.Complete() {
		if failures := state.Failures(); failures != "" && v.Reason != operatorv1alpha1.ReasonCorrupt {
			v.Message += "; besides, " + r.membersProblem(ctx, state, set, pods)
		}
		return v.DegradedIf(serves)
	}
	if state.Serving() < len(access.Endpoints) || id.ClusterID == "" {
		if next.mends() {
			return r.rollMember(ctx, s, next)
		}
		return verdict.Waiting(s.orOutOfMemory(operatorv1alpha1.ReasonMembersNotReady, pods), "%d of %d etcd members ready: %s", state.Serving(), len(access.Endpoints), r.membersProblem(ctx, state, set, pods)).DegradedIf(serves)
	}
	if set.Status.ObservedGeneration < set.Generation {
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "StatefulSet %s has changed, and its controller has not observed the change yet", set.Name).In(verdict.Soon).DegradedIf(true)
	}
	if s.readOnly && state.Joined(id.Identity, id.Joining) {
		// A volume that is emptied from here on would not be noticed.
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "ConfigMap %s%s still lets etcd member %s start without data, and nothing may be changed now: remove its key joining, or the operator does when %s", s.registry.Name, contract.IdentitySuffix, id.Joining, s.frozenUntil()).DegradedIf(true)
	}
	if len(outdated) == 0 {
		return s.memoryNoted(s.volumesNoted(done), pods)
	}
	if learned {
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "%s; what the members run was recorded just now, and may change what they should run", s.rolling).In(verdict.AtOnce).DegradedIf(true)
	}
	return r.rollMember(ctx, s, next)
}

// membersProblem says what is wrong with members that are not ready: what their
// pods tell, or else what etcd does.
func (r *Reconciler) membersProblem(ctx context.Context, state etcd.State, set *appsv1.StatefulSet, pods []corev1.Pod) string {
	if len(pods) == 0 {
		return r.diagnoser().Replicas(ctx, set)
	}
	if problems := r.diagnoser().Pods(ctx, pods); len(problems) > 0 {
		return strings.Join(problems, "; ")
	}
	if failures := state.Failures(); failures != "" || state.ListErr == nil {
		return failures
	}
	return state.ListErr.Error()
}

func (r *Reconciler) externalEtcd(ctx context.Context, s *scope) verdict.Verdict {
	access, v := r.access(ctx, s)
	if !v.Complete() {
		return v.AsReadOnly() // the servers would be given what opens nothing
	}
	if len(s.registry.Spec.Etcd.External.Endpoints) == 0 {
		return verdict.Waiting(operatorv1alpha1.ReasonExternalUnreachable, "spec.etcd.external.endpoints is empty: name all members").AsReadOnly()
	}
	for _, endpoint := range s.registry.Spec.Etcd.External.Endpoints {
		access.Endpoints[strings.TrimPrefix(string(endpoint), "https://")] = string(endpoint)
	}
	state := r.AskEtcd(ctx, access)
	s.reportEtcd(state)
	s.etcdState, s.etcdAccess = state, access
	if err := state.Check(etcd.Identity{ClusterID: s.before.Etcd.ClusterID}); err != nil {
		s.registry.Status.Etcd.ClusterID = s.before.Etcd.ClusterID
		return verdict.Waiting(operatorv1alpha1.ReasonIdentityMismatch, "%s; nothing is changed until spec.etcd.external names the etcd with the registry's data", err).AsReadOnly()
	}
	trouble := s.etcdTrouble()
	if state.Serves() != nil {
		if !trouble.Complete() {
			return trouble.AsReadOnly()
		}
		// Servers that run may still be let in, other than by what the spec says now.
		return verdict.Waiting(operatorv1alpha1.ReasonExternalUnreachable, "%s", state.Failures()).AsReadOnly()
	}
	if err := unlessReadOnly(r.apply(ctx, s, s.rendered.Stages[render.StageEtcd]...)); err != nil {
		return verdict.Failed(err)
	}
	if !trouble.Complete() {
		return trouble.DegradedIf(true)
	}
	if failures := state.Failures(); failures != "" {
		return verdict.Waiting(operatorv1alpha1.ReasonExternalUnreachable, "%s", failures).DegradedIf(true)
	}
	return done
}

// access reads the key pair that opens etcd.
func (r *Reconciler) access(ctx context.Context, s *scope) (etcd.Access, verdict.Verdict) {
	name := render.EtcdClientSecret(s.registry)
	secret, err := r.secret(ctx, s.registry.Namespace, name)
	if err != nil {
		return etcd.Access{}, verdict.Failed(err)
	}
	if secret == nil {
		return etcd.Access{}, verdict.Waiting(operatorv1alpha1.ReasonSecretInvalid, "Secret %s with the etcd client certificate and key does not exist", name).In(verdict.Soon)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return etcd.Access{}, verdict.Waiting(operatorv1alpha1.ReasonSecretInvalid, "Secret %s: tls.crt and tls.key are not a valid PEM key pair: %s", name, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.trust.Etcd) {
		return etcd.Access{}, verdict.Waiting(operatorv1alpha1.ReasonSecretInvalid, "Secret %s: ca.crt contains no PEM CA certificate to verify etcd with", name)
	}
	return etcd.Access{Endpoints: map[string]string{}, Addresses: map[string]string{}, TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}}, done
}

// reportEtcd writes the status. What a member said before stays as long as it
// says nothing.
func (s *scope) reportEtcd(state etcd.State) {
	status := operatorv1alpha1.EtcdStatus{Ready: fmt.Sprintf("%d/%d", state.Serving(), len(state.Members)), ClusterID: s.before.Etcd.ClusterID}
	said := map[string]operatorv1alpha1.EtcdMember{}
	for _, member := range s.before.Etcd.Members {
		said[member.Name] = member
	}
	versions := map[string]bool{}
	for _, member := range state.Members {
		m := said[member.Name]
		m.Name, m.Ready = member.Name, member.Err == nil
		if member.ID != "" {
			m.ID, m.Version = member.ID, "v"+member.Version
		}
		if status.ClusterID == "" && member.Err == nil {
			status.ClusterID = member.ClusterID
		}
		versions[m.Version] = true
		status.Members = append(status.Members, m)
	}
	s.registry.Status.Etcd = status
	if len(versions) == 1 && status.Members[0].Version != "" {
		s.registry.Status.EtcdVersion = status.Members[0].Version
	}
}
