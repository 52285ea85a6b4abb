package probe

import "time"

// Outcome is what a probe has found.
type Outcome int

const (
	// NotAsked means that nothing was asked: there is no endpoint, or it is refused.
	NotAsked Outcome = iota
	// Failed means that the API server was not reached, or is not the one that the
	// entry's CA signs for.
	Failed
	// NotReady means that the API server says that it is not ready.
	NotReady
	// Ready means that the API server says that it is ready.
	Ready
	// Withheld means that the API server tells anonymous clients nothing.
	Withheld
	// Unexpected means that the answer is not one of a Kubernetes API server.
	Unexpected
)

// Reached reports whether the API server was reached and its certificate verified.
func (o Outcome) Reached() bool { return o != NotAsked && o != Failed }

// Result is what one probe has found.
type Result struct {
	Outcome Outcome
	// Reason is for a condition: a word in CamelCase.
	Reason string
	// Message is a sentence for people. It is the same for the same finding, and
	// has no text in it that the server has chosen.
	Message string
	// Version is what the API server runs, such as v1.37.1; empty when it is not known.
	Version string
	// Expires is the end of the serving certificate; zero when it is not known.
	Expires time.Time
}

// The reasons of results.
const (
	ReasonReady                   = "Ready"
	ReasonNotReady                = "NotReady"
	ReasonAnonymousRefused        = "AnonymousRefused"
	ReasonUnexpectedAnswer        = "UnexpectedAnswer"
	ReasonNoEndpoint              = "NoEndpoint"
	ReasonInvalidEndpoint         = "InvalidEndpoint"
	ReasonProxied                 = "Proxied"
	ReasonProxyFailed             = "ProxyFailed"
	ReasonAddressRefused          = "AddressRefused"
	ReasonDNSFailed               = "DNSFailed"
	ReasonConnectionRefused       = "ConnectionRefused"
	ReasonTimedOut                = "TimedOut"
	ReasonNoRoute                 = "NoRoute"
	ReasonConnectionFailed        = "ConnectionFailed"
	ReasonTLSFailed               = "TLSFailed"
	ReasonCertificateUntrusted    = "CertificateUntrusted"
	ReasonCertificateExpired      = "CertificateExpired"
	ReasonCertificateNotYetValid  = "CertificateNotYetValid"
	ReasonCertificateNameMismatch = "CertificateNameMismatch"
)
