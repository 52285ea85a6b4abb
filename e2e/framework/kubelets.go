package framework

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/internal/contract"
)

// Kubelets plays the part of those who bring the servers of registries up, in
// one namespace: each Deployment gets its pods, of its latest template, and behind all
// of them stands one server that says it is ready, at an address of loopback. It shows
// the certificate of the registry that is asked for.
type Kubelets struct {
	// Away has the servers say that they are not ready, and the kubelets say so of their pods.
	Away atomic.Bool

	t         *testing.T
	client    client.Client
	namespace string
	ip        string
	server    *httptest.Server

	mu           sync.Mutex
	certificates map[string]*tls.Certificate // by the Deployment's name
	release      string                      // of the servers
}

// NewKubelets returns those of a namespace.
func NewKubelets(t *testing.T, c client.Client, namespace string) *Kubelets {
	t.Helper()
	k := &Kubelets{t: t, client: c, namespace: namespace, ip: LoopbackIP(t), certificates: map[string]*tls.Certificate{}}
	t.Cleanup(func() {
		if k.server != nil {
			k.server.Close()
		}
	})
	return k
}

// Run brings the pods to what the Deployments want.
func (k *Kubelets) Run(ctx context.Context) error {
	deployments, pods := &appsv1.DeploymentList{}, &corev1.PodList{}
	if err := k.client.List(ctx, deployments, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	if err := k.client.List(ctx, pods, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	secrets := &corev1.SecretList{}
	if len(deployments.Items) > 0 {
		if err := k.client.List(ctx, secrets, client.InNamespace(k.namespace)); err != nil {
			return err
		}
	}
	wanted := map[string]bool{}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if err := k.serve(ctx, d, secrets); err != nil {
			return err
		}
		for n := range *d.Spec.Replicas {
			name := fmt.Sprintf("%s-%d", d.Name, n)
			wanted[name] = true
			if err := k.pod(ctx, d, name, pods); err != nil {
				return err
			}
		}
		status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas}
		if !k.Away.Load() {
			status.ReadyReplicas, status.AvailableReplicas = status.Replicas, status.Replicas
		}
		if d.Status.ObservedGeneration != d.Generation || d.Status.Replicas != status.Replicas || d.Status.ReadyReplicas != status.ReadyReplicas {
			d.Status = status
			if err := k.client.Status().Update(ctx, d); err != nil {
				return err
			}
		}
	}
	for i := range pods.Items {
		if !wanted[pods.Items[i].Name] {
			if err := k.client.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// annotationTemplate is on pods, with the digest of the template that they are of.
const annotationTemplate = "kubelets.test/template"

// pod makes a pod of a Deployment, in the place of one of another template that is there.
func (k *Kubelets) pod(ctx context.Context, d *appsv1.Deployment, name string, there *corev1.PodList) error {
	template, err := json.Marshal(d.Spec.Template)
	if err != nil {
		return err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(template))
	if i := slices.IndexFunc(there.Items, func(p corev1.Pod) bool { return p.Name == name }); i >= 0 {
		old := &there.Items[i]
		if old.Annotations[annotationTemplate] == digest && old.Status.PodIP != "" { // which its status says last
			if ready := k.ready(); old.Status.Conditions[0].Status != ready {
				old.Status.Conditions[0].Status, old.Status.Conditions[0].LastTransitionTime = ready, metav1.Now()
				return k.client.Status().Update(ctx, old)
			}
			return nil
		}
		if err := k.client.Delete(ctx, old, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	annotations := map[string]string{annotationTemplate: digest}
	maps.Copy(annotations, d.Spec.Template.Annotations)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name, Labels: d.Spec.Template.Labels, Annotations: annotations}, Spec: d.Spec.Template.Spec}
	if err := k.client.Create(ctx, pod); err != nil {
		return err
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: k.ip, PodIPs: []corev1.PodIP{{IP: k.ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: k.ready(), LastTransitionTime: metav1.Now()}}}
	return k.client.Status().Update(ctx, pod)
}

// ready is what the kubelets say of pods, whose servers they ask.
func (k *Kubelets) ready() corev1.ConditionStatus {
	if k.Away.Load() {
		return corev1.ConditionFalse
	}
	return corev1.ConditionTrue
}

// serve serves with the certificate of a Deployment's registry, too.
func (k *Kubelets) serve(ctx context.Context, d *appsv1.Deployment, secrets *corev1.SecretList) error {
	name := d.Labels["app.kubernetes.io/instance"] + contract.ServingSuffix
	i := slices.IndexFunc(secrets.Items, func(s corev1.Secret) bool { return s.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no Secret %s yet", name)
	}
	secret := &secrets.Items[i]
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.certificates[d.Name] = &pair
	if strings.HasSuffix(d.Name, contract.ServerSuffix) {
		k.release = d.Labels["app.kubernetes.io/version"]
	}
	k.mu.Unlock()
	if k.server != nil {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(k.ip, "6443"))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if k.Away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, "ok")
	})
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		_ = json.NewEncoder(w).Encode(version.Info{GitVersion: k.release})
	})
	// httptest adds a certificate of its own, which would be shown to who asks for an IP address.
	ours := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{GetCertificate: k.certificate, MinVersion: tls.VersionTLS12}, nil
	}, MinVersion: tls.VersionTLS12}
	k.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0)}, TLS: ours} //nolint:gosec // it serves a test
	k.server.StartTLS()
	return nil
}

// certificate returns the one that is valid for the name that is asked for, or
// else any.
func (k *Kubelets) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var chosen *tls.Certificate
	for _, certificate := range k.certificates {
		if chosen == nil || certificate.Leaf.VerifyHostname(hello.ServerName) == nil {
			chosen = certificate
		}
	}
	return chosen, nil
}
