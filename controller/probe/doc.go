// Package probe asks one API server, without credentials, whether it is ready and
// which version it runs.
//
// Anyone who can write a cluster chooses where this package connects to, so it is
// the place where that is limited: https only, GET /readyz and GET /version only, no
// redirects, no proxies that no administrator has named, at most 64 KiB of an answer, no
// address that the policy of package address refuses, and no text of an answer in a
// [Result] but a valid version.
package probe
