package authn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
	"k8s.io/klog/v2"
)

const (
	// reloadInterval is how often the file is checked. A mounted ConfigMap is
	// replaced by links, which file notifications see only by half.
	reloadInterval = 5 * time.Second
	// healthTimeout is how long a new configuration may take to reach its issuers.
	healthTimeout = time.Minute
	// drainTimeout is how long requests may still use a replaced configuration.
	drainTimeout = time.Minute
)

// Issuers authenticates tokens by the issuers that a file names (a structured
// AuthenticationConfiguration, KEP-3331) and follows changes of that file.
type Issuers struct {
	path     string
	serverID string
	current  atomic.Pointer[issuers]
}

var _ authenticator.Token = &Issuers{}

// issuers are those of one content of the file.
type issuers struct {
	content []byte
	tokens  authenticator.Token
	health  func() error
	stop    context.CancelFunc
}

// NewIssuers reads the file. The server's id is a label of the metrics of its
// reloads. The issuers are asked for their keys from now until ctx ends.
func NewIssuers(ctx context.Context, path, serverID string) (*Issuers, error) {
	metrics.RegisterMetrics()
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the authentication configuration: %w", err)
	}
	first, err := build(ctx, content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	i := &Issuers{path: path, serverID: serverID}
	i.current.Store(first)
	metrics.RecordAuthenticationConfigLastConfigInfo(serverID, string(content))
	return i, nil
}

// AuthenticateToken tells whose token it is.
func (i *Issuers) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return i.current.Load().tokens.AuthenticateToken(ctx, token)
}

// Run follows the file until ctx ends. A content that is wrong, or whose
// issuers can't be reached, is logged and counted, and the last good one stays.
func (i *Issuers) Run(ctx context.Context) {
	var refused []byte
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		content, err := os.ReadFile(i.path)
		if err == nil && (bytes.Equal(content, i.current.Load().content) || bytes.Equal(content, refused)) {
			return
		}
		if err == nil {
			err = i.replace(ctx, content)
		}
		if err == nil {
			refused = nil
			metrics.RecordAuthenticationConfigAutomaticReloadSuccess(i.serverID, string(content))
			klog.InfoS("The authentication configuration was reloaded", "file", i.path)
			return
		}
		if wrong := (invalid{}); errors.As(err, &wrong) {
			refused = content
		}
		metrics.RecordAuthenticationConfigAutomaticReloadFailure(i.serverID)
		klog.ErrorS(err, "The changed authentication configuration is not used; the last good one stays in force", "file", i.path)
	}, reloadInterval)
}

// replace puts a new content in force once its issuers are reached.
func (i *Issuers) replace(ctx context.Context, content []byte) error {
	next, err := build(ctx, content)
	if err != nil {
		return err
	}
	var unhealthy error
	if err := wait.PollUntilContextTimeout(ctx, time.Second, healthTimeout, true, func(context.Context) (bool, error) {
		unhealthy = next.health()
		return unhealthy == nil, nil
	}); err != nil {
		next.stop()
		return errors.Join(err, unhealthy)
	}
	last := i.current.Swap(next)
	time.AfterFunc(drainTimeout, last.stop)
	return nil
}

// invalid is an error that only another content can end.
type invalid struct{ error }

func (i invalid) Unwrap() error { return i.error }

func build(ctx context.Context, content []byte) (*issuers, error) {
	compiler := authenticationcel.NewDefaultCompiler()
	config, err := parse(content, compiler)
	if err != nil {
		return nil, invalid{err}
	}
	ctx, stop := context.WithCancel(ctx)
	out := &issuers{content: content, stop: stop}
	var tokens []authenticator.Token
	var checks []func() error
	for _, issuer := range config.JWT {
		options := oidc.Options{JWTAuthenticator: issuer, Compiler: compiler, SupportedSigningAlgs: oidc.AllValidSigningAlgorithms()}
		if options.CAContentProvider, err = issuerCA(issuer); err == nil {
			var one oidc.AuthenticatorTokenWithHealthCheck
			if one, err = oidc.New(ctx, options); err == nil {
				tokens, checks = append(tokens, one), append(checks, one.HealthCheck)
				continue
			}
		}
		stop()
		return nil, invalid{fmt.Errorf("issuer %s: %w", issuer.Issuer.URL, err)}
	}
	out.tokens = union.New(tokens...)
	out.health = func() error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check())
		}
		return errors.Join(errs...)
	}
	return out, nil
}

// issuerCA returns the CA that signs an issuer's certificate; nil means those
// that the system trusts.
func issuerCA(issuer apiserver.JWTAuthenticator) (oidc.CAContentProvider, error) {
	if issuer.Issuer.CertificateAuthority == "" {
		return nil, nil
	}
	return dynamiccertificates.NewStaticCAContent("issuer", []byte(issuer.Issuer.CertificateAuthority))
}
