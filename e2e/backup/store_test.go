package backup

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/framework/needs"
)

const (
	user, password = "backups", "correct-horse-battery-staple"
	bucket, prefix = "registry-backups", "prod/registries"
	pod, port      = "s3-0", 7070
)

// store is the S3 store of a test.
type store struct {
	t               *testing.T
	e               *framework.Env
	namespace, host string
	ca              []byte
}

// startStore starts a store with an empty bucket, and makes the Secret for it in the test's
// namespace.
func startStore(t *testing.T, e *framework.Env) *store {
	t.Helper()
	s := &store{t: t, e: e, namespace: e.Namespace + "-store"}
	s.host = "s3." + s.namespace + ".svc"
	e.Apply("store.yaml", map[string]string{
		"Namespace": s.namespace, "Host": s.host, "User": user, "Password": password,
		"Image": framework.TaggedImage(t, needs.S3Server.Name, needs.S3Server.Tag).Reference,
	})
	e.Eventually("the CA of the store to be issued", func(ctx context.Context) error {
		var secret corev1.Secret
		if err := e.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "s3-ca"}, &secret); err != nil {
			return err
		}
		if s.ca = secret.Data[corev1.TLSCertKey]; len(s.ca) == 0 {
			return errors.New("its Secret is empty")
		}
		return nil
	})
	s.waitReplicas(1)
	e.Eventually("the bucket to be made", func(ctx context.Context) error {
		return s.use(ctx, func(c *s3.Client) error {
			_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)})
			if errors.As(err, new(*types.BucketAlreadyOwnedByYou)) {
				return nil // by an attempt whose answer was lost
			}
			return err
		})
	})
	return s
}

// spec is what a registry names the store by.
func (s *store) spec() operatorv1alpha1.BackupStore {
	return operatorv1alpha1.BackupStore{S3: &operatorv1alpha1.S3Store{
		Bucket: bucket, Prefix: prefix, Endpoint: operatorv1alpha1.StoreEndpoint(fmt.Sprintf("https://%s:%d", s.host, port)),
		CABundle: s.ca, SecretRef: &operatorv1alpha1.LocalObjectReference{Name: "store"},
	}}
}

// use gives do a client of the store, past the operator.
func (s *store) use(ctx context.Context, do func(*s3.Client) error) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca)
	return s.e.Forward(ctx, s.namespace, pod, port, func(address string) error {
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			},
		}
		defer transport.CloseIdleConnections()
		return do(s3.New(s3.Options{
			Region: "us-east-1", UsePathStyle: true, BaseEndpoint: aws.String(fmt.Sprintf("https://%s:%d", s.host, port)),
			Credentials: credentials.NewStaticCredentialsProvider(user, password, ""), HTTPClient: &http.Client{Transport: transport},
			RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		}))
	})
}

// keys returns what is in the store below the prefix of backups, without that prefix.
func (s *store) keys() []string {
	s.t.Helper()
	var out []string
	s.e.Eventually("the store to be listed", func(ctx context.Context) error {
		out = nil
		return s.use(ctx, func(c *s3.Client) error {
			pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return err
				}
				for _, object := range page.Contents {
					key, below := strings.CutPrefix(aws.ToString(object.Key), prefix+"/")
					if !below {
						return fmt.Errorf("%s is outside of the prefix", aws.ToString(object.Key))
					}
					out = append(out, key)
				}
			}
			return nil
		})
	})
	return out
}

// scale stops the store, or starts it again with what it had.
func (s *store) scale(replicas int32) {
	s.t.Helper()
	set := &appsv1.StatefulSet{}
	set.Namespace, set.Name = s.namespace, "s3"
	s.e.Update(set, func() { set.Spec.Replicas = new(replicas) })
	s.waitReplicas(replicas)
}

func (s *store) waitReplicas(replicas int32) {
	s.t.Helper()
	s.e.Eventually(fmt.Sprintf("the store to have %d ready pods", replicas), func(ctx context.Context) error {
		var set appsv1.StatefulSet
		if err := s.e.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "s3"}, &set); err != nil {
			return err
		}
		if set.Status.ReadyReplicas != replicas || set.Status.Replicas != replicas || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("it has %+v", set.Status)
		}
		return nil
	})
}
