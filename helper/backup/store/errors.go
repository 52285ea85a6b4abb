package store

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/gcerrors"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
)

// ErrUnreachable is about a store that does not answer, or that can't answer now: what was asked
// may succeed as soon as it can. One that refuses is none of these.
var ErrUnreachable = errors.New("the store can't be reached")

// errSlow is why a request was given up.
var errSlow = fmt.Errorf("no answer within %s", answering)

// errNoBucket is why a write finds nothing: what is written need not be there.
var errNoBucket = errors.New("no such bucket")

// What to do about a failed request.
const (
	adviceBucket     = "there is no such bucket or container: create it, or correct its name or the region"
	adviceKey        = "the store does not accept the credentials: check that the Secret has the present key of an account that exists"
	adviceIdentity   = "there are no credentials: name a Secret with them, or a ServiceAccount that the platform gives an identity to"
	adviceRight      = "the account may not do that: permit it to list, read, write and delete objects below the prefix, and check that no retention or lock of the bucket forbids it"
	adviceRegion     = "the bucket is in another region: correct the region"
	adviceClock      = "the clocks of this node and of the store differ by minutes: correct the wrong one"
	adviceCA         = "the certificate of the endpoint is not signed by a CA that is trusted here: give the CA of the store"
	adviceName       = "the certificate of the endpoint is for another name: correct the endpoint"
	advicePlain      = "the endpoint does not speak TLS: correct its port"
	adviceDNS        = "DNS does not know the name of the endpoint: correct the endpoint or region, or the DNS of the cluster"
	adviceReach      = "the endpoint can't be reached: check its address, the store, and that network policies and firewalls let this pod out"
	adviceBusy       = "the store is overloaded or limits requests: it is retried, and resolves automatically if that passes"
	adviceBroken     = "the store fails: see its own log or status page"
	adviceRace       = "another request writes the same object at this moment: the next attempt finds what has won"
	adviceConditions = "the store does not support conditional writes (If-None-Match), without which a backup could be overwritten: update it, or use another one"
	adviceMode       = "the directory is not writable by user 65532 and group 65532: check the volume's mode, and that it is not mounted read-only"
	adviceSpace      = "the volume is full: enlarge its claim"
	adviceRefused    = "the store refuses the request, and its reason was lost on the way: check the credentials, what their account may do, and the clocks"
	adviceCut        = "the connection broke: it is begun again by the next attempt"
)

// byCode has what to do for an error code of S3 or Azure.
var byCode = map[string]string{
	"NoSuchBucket": adviceBucket, "ContainerNotFound": adviceBucket, "ContainerBeingDeleted": adviceBucket,
	"InvalidAccessKeyId": adviceKey, "SignatureDoesNotMatch": adviceKey, "ExpiredToken": adviceKey, "InvalidToken": adviceKey, "AuthenticationFailed": adviceKey, "InvalidAuthenticationInfo": adviceKey,
	"AccessDenied": adviceRight, "Forbidden": adviceRight, "AuthorizationPermissionMismatch": adviceRight, "AuthorizationFailure": adviceRight, "InsufficientAccountPermissions": adviceRight, "BlobImmutableDueToPolicy": adviceRight,
	"PermanentRedirect": adviceRegion, "AuthorizationHeaderMalformed": adviceRegion, "IllegalLocationConstraintException": adviceRegion, "MovedPermanently": adviceRegion,
	"RequestTimeTooSkewed": adviceClock, "RequestExpired": adviceClock,
	"SlowDown": adviceBusy, "ServerBusy": adviceBusy, "TooManyRequests": adviceBusy,
	"ConditionalRequestConflict": adviceRace,
	"NotImplemented":             adviceConditions,
}

// byStatus has what to do for an HTTP status whose code says nothing.
var byStatus = map[int]string{
	http.StatusMovedPermanently: adviceRegion, http.StatusUnauthorized: adviceKey, http.StatusForbidden: adviceRight,
	http.StatusTooManyRequests: adviceBusy, http.StatusServiceUnavailable: adviceBusy, http.StatusInternalServerError: adviceBroken, http.StatusBadGateway: adviceBroken, http.StatusGatewayTimeout: adviceBroken, http.StatusNotImplemented: adviceConditions,
}

// unreachable is what is said of a store that does not answer, or can't answer now.
var unreachable = []string{adviceDNS, adviceReach, adviceBusy, adviceBroken, adviceCut}

// failure is an error of a store.
type failure struct {
	text string
	// is is ErrExists, ErrAbsent or ErrUnreachable, or the end of a context; else nil.
	is error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.is }

// explain returns an error that says what failed at which store, why, and what to do.
func (s *Store) explain(doing string, err error) error {
	if explained := new(failure); errors.As(err, &explained) {
		return err
	}
	f := &failure{}
	why := advice(err)
	_, status := answer(err)
	switch code := gcerrors.Code(err); {
	case code == gcerrors.FailedPrecondition, status == http.StatusPreconditionFailed:
		f.is, why = ErrExists, "it is already there and is left as it is"
	case code == gcerrors.NotFound && why == "":
		f.is, why = ErrAbsent, "it is not there"
	case errors.Is(err, context.Canceled):
		f.is = context.Canceled
	case slices.Contains(unreachable, why):
		f.is = ErrUnreachable
	}
	if why != "" {
		why += " "
	}
	f.text = fmt.Sprintf("store %s%s: %s: %s(%s)", s.location, s.where(), doing, why, shorten(s.redact(err.Error())))
	return f
}

// explainWrite is explain for a write. That something is not there can only be the bucket,
// which Google Cloud Storage does not say.
func (s *Store) explainWrite(key string, err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound && s.config.Kind != Directory && advice(err) == "" {
		err = errors.Join(err, errNoBucket)
	}
	return s.explain("write "+key, err)
}

// Unconditional is the error of a store that has written an object which was there already,
// although it was to write it only if it was not.
func (s *Store) Unconditional(key string) error {
	return &failure{text: fmt.Sprintf("store %s%s: write %s: %s (it was written although it was there already)", s.location, s.where(), key, adviceConditions)}
}

// where says what else decides which store is reached.
func (s *Store) where() string {
	var parts []string
	for _, part := range []struct{ name, value string }{{"endpoint", s.config.Endpoint}, {"region", s.config.Region}, {"account", s.config.Account}} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// advice returns what to do about an error, empty when there is nothing to say.
func advice(err error) string {
	code, status := answer(err)
	text := cmp.Or(ofConnection(err), ofFiles(err), byCode[code], byStatus[status])
	if text == adviceCut {
		return ofCut(status)
	}
	return text
}

// answer returns the code and the HTTP status that a store has answered with.
func answer(err error) (code string, status int) {
	if api := smithy.APIError(nil); errors.As(err, &api) {
		code = api.ErrorCode()
	}
	if response := new(smithyhttp.ResponseError); errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	if response := new(azcore.ResponseError); errors.As(err, &response) {
		code, status = response.ErrorCode, response.StatusCode
	}
	if response := new(googleapi.Error); errors.As(err, &response) {
		status = response.Code
	}
	if errors.Is(err, storage.ErrBucketNotExist) || errors.Is(err, errNoBucket) {
		code = "NoSuchBucket"
	}
	return code, status
}

// ofCut says what to do about an answer of which only the status is known: 0 is none.
func ofCut(status int) string {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return adviceRefused
	case byStatus[status] != "":
		return byStatus[status]
	}
	return adviceCut
}

// ofConnection says what to do when no answer came.
func ofConnection(err error) string {
	identity, token := new(azidentity.AuthenticationFailedError), new(oauth2.RetrieveError)
	authority, name, invalid := x509.UnknownAuthorityError{}, x509.HostnameError{}, x509.CertificateInvalidError{}
	dns, operation := new(net.DNSError), new(net.OpError)
	timeout := net.Error(nil)
	switch {
	case errors.As(err, &identity), errors.As(err, &token):
		return adviceKey
	case strings.Contains(err.Error(), "get identity") && strings.Contains(err.Error(), "refresh cached credentials"), strings.Contains(err.Error(), "could not find default credentials"), strings.Contains(err.Error(), "no client ID specified"):
		return adviceIdentity // the SDKs have no type for it
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return adviceClock
	case errors.As(err, &authority), errors.As(err, &invalid):
		return adviceCA
	case errors.As(err, &name):
		return adviceName
	case errors.Is(err, http.ErrSchemeMismatch):
		return advicePlain
	case errors.As(err, &dns):
		return adviceDNS
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return adviceCut
	case errors.As(err, &operation), errors.Is(err, errSlow), errors.As(err, &timeout) && timeout.Timeout():
		return adviceReach
	}
	return ""
}

// ofFiles says what to do about a directory.
func ofFiles(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return adviceSpace
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return adviceMode
	}
	return ""
}

// shorten returns an error's text in one line, of which kubelet keeps the last 2048 bytes.
func shorten(text string) string {
	const most = 600
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// redact removes credentials from a text: a store, or a proxy before it, may answer with
// the request that it got.
func (s *Store) redact(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return text
}
