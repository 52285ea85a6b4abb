package clusterregistry

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/diagnose"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// serverPort is where each server's pod listens.
const serverPort = "6443"

// server is complete when all servers are up to date, and each of them
// answers the operator itself.
func (r *Reconciler) server(ctx context.Context, s *scope) verdict.Verdict {
	if v := r.unregister(ctx, s); !v.Complete() {
		return v
	}
	objects, turn := r.serversTurn(ctx, s)
	if err := unlessReadOnly(r.apply(ctx, s, objects...)); err != nil {
		return verdict.Failed(err)
	}
	deployment := &appsv1.Deployment{}
	if v := r.applied(ctx, s, render.StageServer, deployment); !v.Complete() {
		return v
	}
	pods, err := r.pods(ctx, s, componentServer)
	if err != nil {
		return verdict.Failed(err)
	}
	pods = running(pods)
	answers, err := r.askServers(ctx, s, pods, s.serverName(), s.trust.Serving)
	if err != nil {
		return verdict.Failed(err)
	}
	s.serversFailed = r.serversFailure(ctx, deployment, pods)
	serving := 0
	versions := map[string]bool{}
	var problems []string
	for _, answer := range answers {
		if answer.err != nil {
			problems = append(problems, fmt.Sprintf("pod %s is ready, but does not answer: %s", answer.pod, answer.err))
			continue
		}
		serving++
		versions[answer.version] = true
	}
	s.answering, s.serversAsked = serving, true
	// In a read-only pass, someone else may have scaled the Deployment.
	status, wanted, rolling := deployment.Status, s.registry.Spec.Server.Replicas, ""
	if status.ObservedGeneration < deployment.Generation {
		status.UpdatedReplicas = 0 // they are of an earlier spec
	}
	s.registry.Status.Server = operatorv1alpha1.ServerStatus{Replicas: status.Replicas, ReadyReplicas: int32(serving), UpdatedReplicas: status.UpdatedReplicas}
	if status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas < wanted || status.Replicas > status.UpdatedReplicas {
		rolling = fmt.Sprintf("servers: %d of %d updated", status.UpdatedReplicas, wanted)
		s.rolling = rolling
	}
	if v := r.renewTokens(ctx, s, deployment, pods); !v.Complete() {
		return v.DegradedIf(serving > 0)
	}
	// An old server that is terminating has been replaced already.
	staying := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	problems = append(r.diagnoser().Pods(ctx, staying), problems...)
	if len(pods) == 0 {
		problems = []string{r.diagnoser().Replicas(ctx, deployment)}
	}
	if rolling != "" && len(problems) == 0 {
		problems = []string{updating(status, wanted)}
	}
	if len(problems) > 0 || int32(serving) < wanted {
		if len(problems) == 0 {
			problems = []string{r.diagnoser().Replicas(ctx, deployment)}
		}
		return verdict.Waiting(s.orOutOfMemory(operatorv1alpha1.ReasonReplicasNotReady, staying), "%d of %d servers ready: %s", min(int32(serving), wanted), wanted, strings.Join(problems, "; ")).DegradedIf(serving > 0)
	}
	if len(versions) > 1 {
		return verdict.Waiting(operatorv1alpha1.ReasonReplicasNotReady, "the servers run different releases: %s", strings.Join(slices.Sorted(maps.Keys(versions)), ", ")).In(verdict.Soon).DegradedIf(true)
	}
	if !turn.Complete() {
		return turn
	}
	s.registry.Status.Version = answers[0].version
	if s.upgrade == nil && !s.readOnly {
		if err := r.recordRelease(ctx, s, s.registry.Status.Version); err != nil {
			return verdict.Failed(err)
		}
	}
	return s.memoryNoted(done, staying)
}

// updating says how far a Deployment has replaced its pods.
func updating(status appsv1.DeploymentStatus, wanted int32) string {
	message := fmt.Sprintf("%d of %d updated", status.UpdatedReplicas, wanted)
	switch old := status.Replicas - status.UpdatedReplicas; {
	case old == 1:
		message += ", 1 old replica terminating"
	case old > 1:
		message += fmt.Sprintf(", %d old replicas terminating", old)
	}
	return message
}

// crashes is how often a new server may fail until it is given up.
const crashes = 3

// serversFailure returns why the desired servers will not come up, as far
// as can be told; nothing as long as they may.
func (r *Reconciler) serversFailure(ctx context.Context, deployment *appsv1.Deployment, pods []corev1.Pod) string {
	image := deployment.Spec.Template.Spec.Containers[0].Image
	wanted := slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Spec.Containers[0].Image != image
	})
	for _, pod := range wanted {
		for _, status := range pod.Status.ContainerStatuses {
			// One that has failed and is not restarted yet has one more crash than restarts.
			if status.RestartCount+1 >= crashes && diagnose.Failure(status) != nil {
				return fmt.Sprintf("pod %s: %s", pod.Name, diagnose.Container(status))
			}
		}
	}
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return ""
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "ProgressDeadlineExceeded" {
			return strings.Join(append([]string{condition.Message}, r.diagnoser().Pods(ctx, wanted)...), "; ")
		}
	}
	return ""
}

// answer is what a server said of itself.
type answer struct {
	pod, address string
	version      string
	err          error
}

// askServers asks every ready server at its own address, whether its certificate
// is valid for the given name and signed by one of the CAs, and for its version.
func (r *Reconciler) askServers(ctx context.Context, s *scope, pods []corev1.Pod, name string, authorities []byte) ([]answer, error) {
	client, err := r.administrator(ctx, s)
	if err != nil {
		return nil, err
	}
	var answers []answer
	for i := range pods {
		if diagnose.Ready(&pods[i]) && pods[i].DeletionTimestamp == nil && pods[i].Status.PodIP != "" {
			answers = append(answers, answer{pod: pods[i].Name, address: net.JoinHostPort(pods[i].Status.PodIP, serverPort)})
		}
	}
	var all sync.WaitGroup
	for i := range answers {
		a := &answers[i]
		server := health.Server{Address: a.address, Name: name, CAs: authorities, Client: client}
		all.Go(func() { a.version, a.err = r.AskServer(ctx, server) })
	}
	all.Wait()
	return answers, nil
}

// administrator returns the certificate to show to an independent registry,
// which tells strangers nothing; nil for an aggregated one.
func (r *Reconciler) administrator(ctx context.Context, s *scope) (*tls.Certificate, error) {
	if s.registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
		return nil, nil
	}
	secret, err := r.secret(ctx, s.registry.Namespace, s.registry.Name+contract.AdminSuffix)
	if err != nil || secret == nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate in Secret %s: %w", secret.Name, err)
	}
	return &pair, nil
}

// independentConfig leads to an independent registry by its Service, as its
// administrator. It is asked no faster than the host is.
func (r *Reconciler) independentConfig(ctx context.Context, s *scope) (*rest.Config, error) {
	secret, err := r.secret(ctx, s.registry.Namespace, s.registry.Name+contract.AdminSuffix)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, fmt.Errorf("there is no Secret %s with the administrator's certificate", s.registry.Name+contract.AdminSuffix)
	}
	return &rest.Config{Host: "https://" + s.serverName(), QPS: r.Host.QPS, Burst: r.Host.Burst, TLSClientConfig: rest.TLSClientConfig{
		CAData: s.trust.Serving, CertData: secret.Data[corev1.TLSCertKey], KeyData: secret.Data[corev1.TLSPrivateKeyKey]}}, nil
}

// serverName is what the servers' certificate is valid for at least.
func (s *scope) serverName() string {
	return fmt.Sprintf("%s%s.%s.svc", s.registry.Name, contract.ServerSuffix, s.registry.Namespace)
}
