// Package handshake asks what a TLS server shows to its clients: its certificate, and the
// CAs whose clients it accepts. It trusts no one and sends nothing, so it works while CAs are
// being replaced, and tells whether they are.
package handshake

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"time"
)

// timeout bounds one handshake.
const timeout = 5 * time.Second

// Server is a TLS server.
type Server struct {
	// Address is where it listens, host and port.
	Address string
	// Client is the certificate to show where one is asked for, nil for none.
	Client *tls.Certificate
}

// Shown is what a server shows to a client. None of it is verified.
type Shown struct {
	// Chain is the server's certificate in PEM, and what follows it.
	Chain []byte
	// Accepts are the subjects of the CAs whose client certificates the server accepts, as
	// it has them loaded: raw, in DER.
	Accepts [][]byte
}

// Ask returns what a server shows.
func Ask(ctx context.Context, server Server) (Shown, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var shown Shown
	config := &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // what is shown is what is asked; nothing is sent
		MinVersion:         tls.VersionTLS12,
		GetClientCertificate: func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			shown.Accepts = request.AcceptableCAs
			if server.Client == nil {
				return &tls.Certificate{}, nil
			}
			return server.Client, nil
		},
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout}, Config: config}
	connection, err := dialer.DialContext(ctx, "tcp", server.Address)
	if err != nil {
		return Shown{}, fmt.Errorf("TLS handshake with %s: %w", server.Address, err)
	}
	defer func() { _ = connection.Close() }()
	var chain bytes.Buffer
	for _, certificate := range connection.(*tls.Conn).ConnectionState().PeerCertificates {
		chain.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	}
	shown.Chain = chain.Bytes()
	return shown, nil
}

// AcceptsAll reports whether the server accepts clients of each of the CAs.
func (s Shown) AcceptsAll(authorities []*x509.Certificate) bool {
	return len(authorities) > 0 && !slices.ContainsFunc(authorities, func(ca *x509.Certificate) bool { return !s.accepts(ca) })
}

// AcceptsOnly reports whether the server accepts clients of the CAs and of no others.
func (s Shown) AcceptsOnly(authorities []*x509.Certificate) bool {
	for _, subject := range s.Accepts {
		if !slices.ContainsFunc(authorities, func(ca *x509.Certificate) bool { return bytes.Equal(ca.RawSubject, subject) }) {
			return false
		}
	}
	return s.AcceptsAll(authorities)
}

func (s Shown) accepts(ca *x509.Certificate) bool {
	return slices.ContainsFunc(s.Accepts, func(subject []byte) bool { return bytes.Equal(subject, ca.RawSubject) })
}
