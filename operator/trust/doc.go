// Package trust reads, and decides about, a registry's certificate authorities: what is published
// of one that was replaced, and which certificates are to be issued again. It goes by
// certificates. All bundles are in PEM.
package trust
