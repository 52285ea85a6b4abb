package etcd

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// timeoutError says that a member had this long to answer and did not.
type timeoutError time.Duration

func (e timeoutError) Error() string {
	return "timed out, no answer within " + time.Duration(e).String()
}

// readError says that a member answers but could not serve a linearizable read.
type readError struct {
	error
	led bool
}

func (e readError) Unwrap() error { return e.error }

// because puts the cause in the place of an error that came of it.
func because(err, cause error) error {
	var read readError
	if errors.As(err, &read) {
		return readError{cause, read.led}
	}
	return cause
}

// explain says of a member that it does what the error tells, in words for a
// person who does not know TLS by heart.
func explain(err error) string {
	var (
		read      readError
		timeout   timeoutError
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		op        *net.OpError
	)
	switch {
	case errors.As(err, &read) && !read.led:
		return "has no leader, as when too few members run to agree on one"
	case errors.As(err, &read):
		return "answers but does not complete a linearizable read"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "has a name that DNS does not resolve"
	case errors.As(err, &dns):
		return "has a name that DNS does not resolve now"
	case errors.As(err, &timeout):
		return "does not answer"
	case errors.As(err, &authority):
		return "presents a certificate that the CA given for etcd did not sign"
	case errors.As(err, &hostname):
		return "presents a certificate that is not valid for its name"
	case errors.As(err, &invalid):
		return "presents a certificate that is not valid"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections, so no etcd listens there"
	// TLS marks what the other side sent, but keeps the type of it to itself.
	case errors.As(err, &op) && op.Op == "remote error" && strings.Contains(err.Error(), "certificate"):
		return "refuses the client certificate"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "closed the connection"
	}
	return "fails"
}
